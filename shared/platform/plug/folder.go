package plug

import (
	"context"
	"errors"
)

// MaxFolders is how many folders one answer names.
const MaxFolders = 5000

// Folder is where a plugin keeps its files: one for each ID that it was ever started with (Start).
type Folder struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
}

// FolderCall asks which folders there are, or removes some.
type FolderCall struct {
	After  Folder   `json:"after"`            // tells those that come after it, at most MaxFolders
	Remove []Folder `json:"remove,omitempty"` // instead: those that no plugin uses just now, with all that is in them
}

// Keeps tells whether plugins run where their files last: in Lambda they go with the machine.
func (c *Client) Keeps() bool { return c.Runs() && c.keeps }

// Folders tells which folders of plugins there are after one, in the order of their names, or which of those that it
// was to remove are gone.
func (c *Client) Folders(ctx context.Context, call FolderCall) ([]Folder, error) {
	a, err := c.Ask(ctx, Call{Folders: &call})
	if err != nil {
		return nil, err
	}
	if a.Folders == nil {
		return nil, FaultOf(errors.New("the program plugin is of another version: it does not know calls for folders"))
	}
	return a.Folders, nil
}

package plug

import (
	"context"
	"errors"
)

// MaxFolders limits the folders in one answer.
const MaxFolders = 5000

// Folder is the data folder of a plugin. There is one for each ID that was ever started (Start).
type Folder struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
}

// FolderCall lists folders, or removes some.
type FolderCall struct {
	After  Folder   `json:"after"`            // list up to MaxFolders folders after this one
	Remove []Folder `json:"remove,omitempty"` // instead: remove these with their content, unless a plugin is using them
}

// Keeps reports whether files of plugins persist: in Lambda they are lost with the execution environment.
func (c *Client) Keeps() bool { return c.Runs() && c.keeps }

// Folders returns the folders of plugins after the given one, sorted by name, or the removed ones of those to remove.
func (c *Client) Folders(ctx context.Context, call FolderCall) ([]Folder, error) {
	a, err := c.Ask(ctx, Call{Folders: &call})
	if err != nil {
		return nil, err
	}
	if a.Folders == nil {
		return nil, FaultOf(errors.New("the function plugin has another version: it does not support calls for folders"))
	}
	return a.Folders, nil
}

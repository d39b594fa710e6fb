package filesystem

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/fault"
)

const maxEntries = 1000

// Lister lists one level of a bucket: what follows prefix, which is passed to the store as it is, in the common
// prefixes (without the closing "/") and in the keys of one listing, and whether there were more.
type Lister func(ctx context.Context, bucket, prefix string) (dirs, files []string, truncated bool, err error)

// Entry is a folder or file.
type Entry struct {
	Name        string `json:"name"`
	Path        string `json:"path"`
	IsDirectory bool   `json:"isDirectory"`
	IsReadable  bool   `json:"isReadable"`
}

// Listing is what a folder holds: folders first, then without regard to case.
type Listing struct {
	CurrentPath string  `json:"currentPath" doc:"Empty for the list of roots"`
	ParentPath  *string `json:"parentPath" doc:"Null at a root"`
	Entries     []Entry `json:"entries" nullable:"false"`
	Truncated   bool    `json:"truncated" doc:"There is more than is shown"`
}

// drives are the roots as entries.
func drives(roots []Root) []Entry {
	out := make([]Entry, len(roots))
	for i, r := range roots {
		p := trimmed(r.Path)
		out[i] = Entry{Name: path.Base(p), Path: p, IsDirectory: true, IsReadable: true}
	}
	return out
}

// browse lists a folder below a root. BadRequest when it is outside, or not there.
func browse(ctx context.Context, roots []Root, list Lister, name string) (*Listing, error) {
	at, err := locate(roots, name)
	if err != nil {
		return nil, err
	}
	dirs, files, truncated, err := list(ctx, at.root.Bucket, at.prefix)
	if err != nil {
		return nil, unlisted(err)
	}
	if len(dirs) == 0 && len(files) == 0 && !at.top {
		if err := there(ctx, list, at); err != nil {
			return nil, err
		}
	}
	out := &Listing{CurrentPath: at.path, Truncated: truncated}
	if !at.top {
		parent := path.Dir(at.path)
		if strings.HasPrefix(at.path, scheme) {
			parent = at.path[:strings.LastIndex(at.path, "/")]
		}
		out.ParentPath = &parent
	}
	out.Entries = append(entries(at, dirs, true), entries(at, files, false)...)
	if len(out.Entries) > maxEntries {
		out.Entries, out.Truncated = out.Entries[:maxEntries], true
	}
	return out, nil
}

// Exists is nil where a library can be made of the folder, an Invalid fault where it is outside the roots or not there.
// A path s3://… names a prefix, which is there with the first object below it: that may be an upload to the library.
func Exists(ctx context.Context, roots []Root, list Lister, name string) error {
	at, err := locate(roots, name)
	if err != nil {
		return err
	}
	dirs, files, _, err := list(ctx, at.root.Bucket, at.prefix)
	if err != nil || len(dirs)+len(files) > 0 || at.top || strings.HasPrefix(at.path, scheme) {
		return err
	}
	return there(ctx, list, at)
}

// there tells an empty folder from one that does not exist: its parent shows it.
func there(ctx context.Context, list Lister, at place) error {
	dirs, files, _, err := list(ctx, at.root.Bucket, strings.TrimSuffix(at.prefix, "/"))
	switch {
	case err != nil:
		return unlisted(err)
	case slices.Contains(dirs, ""):
		return nil
	case slices.Contains(files, ""):
		return fault.Invalid("path", "is a file, not a folder")
	}
	return fault.Invalid("path", "does not exist")
}

func entries(at place, names []string, directories bool) []Entry {
	out := make([]Entry, 0, len(names))
	for _, name := range names {
		if name == "" || strings.HasPrefix(name, ".") || strings.Contains(name, "/") {
			continue // the folder's own marker, hidden names, and keys with empty parts
		}
		out = append(out, Entry{Name: name, Path: strings.TrimSuffix(at.path, "/") + "/" + name, IsDirectory: directories, IsReadable: true})
	}
	slices.SortFunc(out, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// unlisted says what a failed listing means: a bucket that is missing or closed is for the administrator to see to, and
// trying again does not help.
func unlisted(err error) error {
	var wrong *fault.Error
	switch {
	case errors.As(err, &wrong):
		return err
	case errors.Is(err, blob.ErrNotFound):
		wrong = fault.Invalid("path", "is not there: check that the folder or bucket exists and is mounted")
	case errors.Is(err, blob.ErrDenied):
		wrong = fault.Invalid("path", "may not be listed: check the permissions of the folder or bucket")
	}
	if wrong != nil {
		wrong.Err = err
		return wrong
	}
	e := fault.Wrap(err, fault.Unavailable, "The storage of the library folders does not answer; try again shortly")
	e.RetryAfter = 2 * time.Second
	return e
}

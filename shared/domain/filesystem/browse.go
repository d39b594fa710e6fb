package filesystem

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/fault"
)

// maxPages limits a listing, which must fit one response, to that many pages of a thousand entries.
const maxPages = 5

// Store lists buckets; see [blob.Store].
type Store interface {
	Folders(ctx context.Context, bucket, prefix, after string, pages int) (folders []string, objects []blob.Object, more bool, err error)
	Named(ctx context.Context, bucket, name string) (folder, object bool, err error)
}

// Entry is a folder or file.
type Entry struct {
	Name        string `json:"name"`
	Path        string `json:"path"`
	IsDirectory bool   `json:"isDirectory"`
	IsReadable  bool   `json:"isReadable" doc:"False if the name is not valid in a path: it contains a control character or a backslash, or is not UTF-8"`
}

// Listing is the content of a folder: folders first, ignoring case.
type Listing struct {
	CurrentPath string  `json:"currentPath" doc:"Path of the folder; empty for the list of roots"`
	ParentPath  *string `json:"parentPath" doc:"Path of the parent folder; null for a root"`
	Entries     []Entry `json:"entries" nullable:"false"`
	Truncated   bool    `json:"truncated" doc:"True if the folder has more entries than are listed"`
	Next        *string `json:"next" doc:"If truncated: send it as after to list the next entries"`
}

// drives returns the roots as entries.
func drives(roots []Root) []Entry {
	out := make([]Entry, len(roots))
	for i, r := range roots {
		p := trimmed(r.Path)
		out[i] = Entry{Name: path.Base(p), Path: p, IsDirectory: true, IsReadable: true}
	}
	return out
}

// browse lists a folder below a root; after is the Next of the previous listing, or "". BadRequest if the folder is
// outside, or missing.
func browse(ctx context.Context, roots []Root, store Store, name, after string) (*Listing, error) {
	at, err := Locate(roots, name)
	if err != nil {
		return nil, err
	}
	if err := Reach(ctx, store, at.Root.Bucket, at.Root.Prefix, at.Prefix); err != nil {
		return nil, err
	}
	folders, objects, more, err := store.Folders(ctx, at.Root.Bucket, at.Prefix, after, maxPages)
	if err != nil {
		return nil, at.Unlisted(err)
	}
	out := &Listing{CurrentPath: at.Path, Truncated: more}
	if key := last(folders, objects); more && key != "" {
		out.Next = new(strings.TrimPrefix(key, at.Prefix))
	}
	if !at.top {
		parent := path.Dir(at.Path)
		if strings.HasPrefix(at.Path, scheme) {
			parent = at.Path[:strings.LastIndex(at.Path, "/")]
		}
		out.ParentPath = &parent
	}
	files := make([]string, len(objects))
	for i, o := range objects {
		files[i] = o.Key
	}
	out.Entries = append(entries(at, folders, true), entries(at, files, false)...)
	return out, nil
}

// last returns the last key of a listing.
func last(folders []string, objects []blob.Object) (key string) {
	if len(folders) > 0 {
		key = folders[len(folders)-1]
	}
	if len(objects) > 0 {
		key = max(key, objects[len(objects)-1].Key)
	}
	return key
}

// Exists returns nil if a library can use the folder, and an Invalid fault if it is missing. A root, and a path s3://…,
// may be empty: its first object may be an upload to the library.
func (at Place) Exists(ctx context.Context, store Store) error {
	if at.top || strings.HasPrefix(at.Path, scheme) {
		folders, objects, _, err := store.Folders(ctx, at.Root.Bucket, at.Prefix, "", 1)
		if err != nil {
			return Unlisted(err)
		}
		if len(folders)+len(objects) == 0 {
			return nil
		}
	}
	return Reach(ctx, store, at.Root.Bucket, at.Root.Prefix, at.Prefix)
}

// Reach checks that every folder on the way from a root's prefix to another is listed by its parent, and returns an
// Invalid fault otherwise. A gateway follows a symbolic link when asked for what is behind it; this check keeps callers
// inside the root.
func Reach(ctx context.Context, store Store, bucket, root, prefix string) error {
	for at := folder(root); len(at) < len(prefix); {
		name, _, _ := strings.Cut(prefix[len(at):], "/")
		folder, object, err := store.Named(ctx, bucket, at+name)
		switch {
		case err != nil:
			return Unlisted(err)
		case !folder && object:
			return fault.Invalid("path", "is a file or a symbolic link, which Longbox does not follow: name a folder")
		case !folder && unclear(name):
			return fault.Invalid("path", "does not exist under this name: the folder's name is not UTF-8 or contains control characters; rename the folder")
		case !folder:
			return fault.Invalid("path", "does not exist%s", Accents(name))
		}
		at += name + "/"
	}
	return nil
}

// unclear reports whether a name, as it was listed, is not the real one: listings replace what is not UTF-8 and control
// characters by U+FFFD.
func unclear(name string) bool { return strings.ContainsRune(name, utf8.RuneError) }

// Accents returns a hint for a missing folder with accents in its name: the store compares bytes, and é has two
// encodings.
func Accents(name string) string {
	if norm.NFC.IsNormalString(name) && norm.NFD.IsNormalString(name) {
		return ""
	}
	return ": names with accents may be stored in another form; use the name that is listed by GET /api/v1/filesystem/browse"
}

// entries returns the folders or files with these full keys.
func entries(at Place, keys []string, directories bool) []Entry {
	out := make([]Entry, 0, len(keys))
	for _, key := range keys {
		name := strings.TrimSuffix(strings.TrimPrefix(key, at.Prefix), "/")
		if name == "" || strings.HasPrefix(name, ".") || strings.Contains(name, "/") {
			continue // the folder's own marker, hidden names, and keys with empty parts
		}
		full := strings.TrimSuffix(at.Path, "/") + "/" + name
		_, err := Clean(full)
		out = append(out, Entry{Name: name, Path: full, IsDirectory: directories, IsReadable: err == nil && !unclear(name)})
	}
	slices.SortFunc(out, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// Unlisted is Unlisted for a place that Reach has reached: the folders above it were listed, so only the folder itself
// is closed.
func (at Place) Unlisted(err error) error {
	if !blob.InternalError(err) || at.top {
		return Unlisted(err)
	}
	e := fault.Invalid("path", "cannot be listed: check that Longbox may read the folder")
	e.Err = err
	return e
}

// Unlisted turns a failed listing into a fault of the path: an administrator must fix a missing or closed bucket, and a
// retry does not help.
func Unlisted(err error) error {
	var wrong *fault.Error
	switch {
	case errors.As(err, &wrong):
		return err
	case errors.Is(err, blob.ErrNotFound):
		wrong = fault.Invalid("path", "was not found: check that the folder or bucket exists, is mounted, and is still offered as a library root")
	case errors.Is(err, blob.ErrDenied):
		wrong = fault.Invalid("path", "cannot be listed, because access is denied: check the permissions of the folder, or the permissions and the region of the bucket")
	}
	if wrong != nil {
		wrong.Err = err
		return wrong
	}
	return fault.Wrap(err, fault.Unavailable, "The storage of the library folders does not answer; try again shortly").After(2 * time.Second)
}

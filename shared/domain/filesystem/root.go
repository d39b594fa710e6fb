package filesystem

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Path limits: S3 keys have at most 1,024 bytes.
const (
	maxPath   = 2048
	maxPrefix = 1000
)

const scheme = "s3://"

// Root is a folder given to a tenant: an absolute path (or s3:// address) and the bucket that serves it. Prefix is
// empty or ends in "/" (which may be omitted).
type Root struct {
	Path   string `db:"path"`
	Bucket string `db:"bucket"`
	Prefix string `db:"prefix"`
}

// Roots adds the select of the entered tenant's roots, by path, to the batch.
func Roots(b *pgx.Batch, dst *[]Root) {
	db.All(b, dst, "select path, bucket, prefix from library_root where tenant_id = app.tenant() order by path")
}

// ParseRoot parses /folder=bucket, /folder=bucket/prefix, or s3://bucket/prefix, whose path is the address itself and
// may contain a =.
func ParseRoot(s string) (Root, error) {
	path, place := s, ""
	itself := strings.HasPrefix(s, scheme)
	if i := strings.LastIndex(s, "="); i >= 0 && !itself {
		path, place = s[:i], s[i+1:]
	} else if !itself {
		return Root{}, fmt.Errorf("%q must be /folder=bucket, /folder=bucket/prefix or s3://bucket/prefix", s)
	}
	clean, err := Clean(path)
	if err != nil {
		return Root{}, fmt.Errorf("%q: folder %w", s, err)
	}
	if itself {
		place = strings.TrimPrefix(clean, scheme)
	}
	bucket, prefix, _ := strings.Cut(place, "/")
	if bucket == "" {
		return Root{}, fmt.Errorf("%q must name a bucket: /folder=bucket, /folder=bucket/prefix or s3://bucket/prefix", s)
	}
	if len(folder(prefix)) > maxPrefix {
		return Root{}, fmt.Errorf("%q: the prefix is %d bytes long; the limit is %d", s, len(prefix), maxPrefix)
	}
	return Root{Path: clean, Bucket: bucket, Prefix: folder(prefix)}, nil
}

// String returns the form that ParseRoot parses.
func (r Root) String() string {
	place := r.Bucket + "/" + folder(r.Prefix)
	if trimmed(r.Path) == trimmed(scheme+place) {
		return scheme + place
	}
	return r.Path + "=" + place
}

// Place is a folder at or below a root.
type Place struct {
	Path   string // cleaned
	Root   Root
	Prefix string // of its keys in the root's bucket: "" or ending in "/"
	top    bool   // the root itself
}

// Resolve is Locate with only bucket and prefix.
func Resolve(roots []Root, path string) (bucket, prefix string, err error) {
	at, err := Locate(roots, path)
	return at.Root.Bucket, at.Prefix, err
}

// Locate finds an absolute path at or below one of the roots, or s3://bucket/prefix at or below the location of one.
// The longest root wins. Otherwise the error is a BadRequest for `path`.
func Locate(roots []Root, path string) (Place, error) {
	clean, err := Clean(path)
	if err != nil {
		return Place{}, fault.Invalid("path", "%s", err)
	}
	best, found := Place{}, -1
	for _, r := range roots {
		base, rest, ok := r.holds(clean)
		if !ok || len(base) <= found {
			continue
		}
		prefix := folder(r.Prefix)
		if rest != "" {
			prefix += rest + "/"
		}
		best, found = Place{Path: clean, Root: r, Prefix: prefix, top: rest == ""}, len(base)
	}
	if found < 0 {
		return Place{}, fault.Invalid("path", "is not in a folder that this server may read; GET /api/v1/filesystem/drives lists them")
	}
	if len(best.Prefix) > maxPrefix {
		return Place{}, fault.Invalid("path", "is %d bytes long below its bucket; the limit is %d", len(best.Prefix), maxPrefix)
	}
	return best, nil
}

// holds reports whether the cleaned path is the root or below it; base is the spelling of the root that it uses, and
// rest what follows.
func (r Root) holds(clean string) (base, rest string, ok bool) {
	for _, base := range []string{trimmed(r.Path), trimmed(scheme + r.Bucket + "/" + folder(r.Prefix))} {
		switch {
		case clean == base:
			return base, "", true
		case base == "/" && strings.HasPrefix(clean, "/"):
			return base, clean[1:], true
		case strings.HasPrefix(clean, base+"/"):
			return base, clean[len(base)+1:], true
		}
	}
	return "", "", false
}

func trimmed(p string) string {
	if t := strings.TrimRight(p, "/"); t != "" {
		return t
	}
	return "/"
}

func folder(prefix string) string {
	if p := strings.Trim(prefix, "/"); p != "" {
		return p + "/"
	}
	return ""
}

// Clean returns the path without empty parts, "." and a trailing slash. It rejects relative paths and everything that
// other programs may interpret differently: "..", backslashes, control characters, invalid UTF-8.
func Clean(name string) (string, error) {
	rest, cloud := strings.CutPrefix(name, scheme)
	switch {
	case name == "":
		return "", errors.New("is required")
	case len(name) > maxPath:
		return "", fmt.Errorf("is %d bytes long; the limit is %d", len(name), maxPath)
	case !utf8.ValidString(name):
		return "", errors.New("is not valid UTF-8")
	case strings.ContainsFunc(name, unicode.IsControl):
		return "", errors.New("must not contain control characters")
	case strings.Contains(name, `\`):
		return "", errors.New(`must not contain a backslash; separate folders with "/"`)
	case !cloud && !strings.HasPrefix(name, "/"):
		return "", errors.New("must be absolute (/srv/books) or s3://bucket/prefix")
	}
	for part := range strings.SplitSeq(rest, "/") {
		if part == ".." {
			return "", errors.New(`must not contain ".."`)
		}
	}
	if !cloud {
		return path.Clean(name), nil
	}
	rest = strings.TrimPrefix(path.Clean("/"+rest), "/")
	if rest == "" || strings.HasPrefix(name, scheme+"/") {
		return "", errors.New("must name a bucket: s3://bucket/prefix")
	}
	return scheme + rest, nil
}

package filesystem_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/filesystem"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

const browse = "/api/v1/filesystem/browse?path="

// listing is a store of keys that begin with their bucket, for example "books:a/1.cbz".
type listing []string

func (l listing) Folders(_ context.Context, bucket, prefix, after string, pages int) (folders []string, objects []blob.Object, more bool, err error) {
	switch bucket {
	case "broken":
		return nil, nil, false, errors.New("connection refused to 10.0.0.1")
	case "missing":
		return nil, nil, false, fmt.Errorf("list s3://missing/: %w", blob.ErrNotFound)
	case "closed":
		return nil, nil, false, fmt.Errorf("list s3://closed/: %w", blob.ErrDenied)
	}
	if strings.HasSuffix(prefix, "locked/") {
		return nil, nil, false, fmt.Errorf("list s3://%s/%s: %w", bucket, prefix, &blob.StatusError{Status: 500})
	}
	for _, key := range l {
		rest, ok := strings.CutPrefix(key, bucket+":"+prefix)
		if !ok || after != "" && rest <= after || folded(prefix, rest, folders) {
			continue
		}
		if len(folders)+len(objects) == 1000*pages {
			return folders, objects, true, nil
		}
		rest = strings.ToValidUTF8(rest, "\uFFFD") // as gateways do
		if name, _, is := strings.Cut(rest, "/"); !is {
			objects = append(objects, blob.Object{Key: prefix + rest})
		} else if f := prefix + name + "/"; f > prefix+after && !slices.Contains(folders, f) {
			folders = append(folders, f)
		}
	}
	return folders, objects, false, nil
}

// folded reports whether a key is in a folder that is listed.
func folded(prefix, rest string, folders []string) bool {
	name, _, is := strings.Cut(rest, "/")
	return is && slices.Contains(folders, prefix+name+"/")
}

func (l listing) Named(ctx context.Context, bucket, name string) (folder, object bool, err error) {
	folders, objects, _, err := l.Folders(ctx, bucket, name, "", 1)
	return slices.Contains(folders, name+"/"), slices.ContainsFunc(objects, func(o blob.Object) bool { return o.Key == name }), err
}

func serve(t *testing.T, list listing) *testkit.Server {
	s := testkit.Serve(t, func(a *httpapi.API, d *db.DB) { filesystem.Routes(a, d, list) })
	for _, r := range []struct {
		tenant               uuid.UUID
		path, bucket, prefix string
	}{{s.One, "/srv/books", "books", ""}, {s.One, "/srv/off", "broken", ""},
		{s.Two, "/srv/missing", "missing", ""}, {s.Two, "/srv/closed", "closed", ""}, {s.One, "s3://cloud/one", "cloud", "one/"}, {s.Two, "/srv/two", "two", ""}} {
		if _, err := s.DB.Owner.Pool().Exec(context.Background(),
			"insert into library_root (tenant_id, path, bucket, prefix) values ($1, $2, $3, $4)", r.tenant, r.path, r.bucket, r.prefix); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func names(m map[string]any) string {
	var out []string
	for _, e := range m["entries"].([]any) {
		entry := e.(map[string]any)
		name := entry["name"].(string)
		if entry["isDirectory"].(bool) {
			name += "/"
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

func TestBrowse(t *testing.T) {
	t.Parallel()
	s := serve(t, listing{"books:b/1.cbz", "books:A/x", "books:a/夏目漱石/1.epub", "books:Z.cbz", "books:c.cbz", "books:.hidden/x", "books:.DS_Store",
		"books:empty/", "books:odd/line\nbreak/1.cbz", "books:odd/plain/1.cbz", "books:odd/caf\xe9/1.cbz", "books:marker/", "books:marker/1.cbz", "cloud:one/x/1.cbz", "cloud:two/secret.cbz"})
	admin := s.User(t, "one", "admin")

	m := admin.Do("GET", "/api/v1/filesystem/drives?pageSize=2", nil).Want(200).Map()
	if first := m["data"].([]any)[0].(map[string]any); m["total"] != 3.0 || first["name"] != "books" || first["path"] != "/srv/books" ||
		first["isDirectory"] != true || first["isReadable"] != true {
		t.Errorf("drives: %v", m)
	}
	m = admin.Do("GET", "/api/v1/filesystem/browse", nil).Want(200).Map()
	if names(m) != "books/ off/ one/" || m["currentPath"] != "" || m["parentPath"] != nil {
		t.Errorf("roots: %v", m)
	}
	m = admin.Do("GET", browse+"/srv/books/", nil).Want(200).Map()
	if names(m) != "A/ a/ b/ empty/ marker/ odd/ c.cbz Z.cbz" || m["currentPath"] != "/srv/books" || m["parentPath"] != nil || m["truncated"] != false {
		t.Errorf("root: %v", m)
	}
	for path, want := range map[string][3]string{
		"/srv/books/a":              {"夏目漱石/", "/srv/books/a", "/srv/books"},
		"/srv/books/a/夏目漱石/":        {"1.epub", "/srv/books/a/夏目漱石", "/srv/books/a"},
		"/srv/books/marker":         {"1.cbz", "/srv/books/marker", "/srv/books"},
		"/srv/books/empty":          {"", "/srv/books/empty", "/srv/books"},
		"s3://books/b":              {"1.cbz", "s3://books/b", "s3://books"},
		"s3://cloud/one/x":          {"1.cbz", "s3://cloud/one/x", "s3://cloud/one"},
		"/srv/books/./a//夏目漱石/././": {"1.epub", "/srv/books/a/夏目漱石", "/srv/books/a"},
	} {
		m := admin.Do("GET", browse+url.QueryEscape(path), nil).Want(200).Map()
		if names(m) != want[0] || m["currentPath"] != want[1] || m["parentPath"] != want[2] {
			t.Errorf("%s: %v", path, m)
		}
		for _, e := range m["entries"].([]any) {
			if p := e.(map[string]any)["path"].(string); p != want[1]+"/"+e.(map[string]any)["name"].(string) {
				t.Errorf("%s: entry path %s", path, p)
			}
		}
	}
	for _, e := range admin.Do("GET", browse+"/srv/books/odd", nil).Want(200).Map()["entries"].([]any) {
		e := e.(map[string]any)
		admin.Do("GET", browse+url.QueryEscape(e["path"].(string)), nil).Want(map[bool]int{true: 200, false: 400}[e["isReadable"].(bool)])
	}
	if m := admin.Do("GET", browse+"/srv/books/odd/caf%EF%BF%BD", nil).Want(400).Map(); !strings.Contains(m["message"].(string), "is not UTF-8") {
		t.Errorf("a name that is not UTF-8: %v", m)
	}
	if m := admin.Do("GET", browse+"s3://cloud/one", nil).Want(200).Map(); m["parentPath"] != nil {
		t.Errorf("a root's parent: %v", m)
	}
}

func TestBrowseRefuses(t *testing.T) {
	t.Parallel()
	s := serve(t, listing{"books:a/1.cbz", "cloud:two/secret.cbz", "two:x/1.cbz"})
	admin := s.User(t, "one", "admin")
	for path, why := range map[string]string{
		"/srv/books/..": "..", "/srv/books/%00": "NUL", "/etc": "is not in a folder", "/srv/two": "is not in a folder", "s3://two/x": "is not in a folder", "s3://cloud/two": "is not in a folder",
		"s3://cloud": "is not in a folder", "/srv/books/nothing": "exist", "/srv/books/a/1.cbz": "file", "books": "absolute", `/srv/books\a`: "backslash",
		"/srv/books/%ff": "UTF-8", "/srv/books/%C3%89luard": "does not exist: names with accents may be stored in another form", "/" + strings.Repeat("x", 2100): "2048",
	} {
		m := admin.Do("GET", browse+path, nil).Want(400).Map()
		if !strings.Contains(m["message"].(string), why) || m["details"].([]any)[0].(map[string]any)["field"] != "path" {
			t.Errorf("%s: %v", path, m)
		}
	}
	r := admin.Do("GET", browse+"/srv/off", nil).Want(503)
	if strings.Contains(string(r.Body), "10.0.0.1") || r.Header.Get("Retry-After") == "" {
		t.Errorf("%s %v", r.Body, r.Header)
	}
}

// Errors about the bucket itself are not retryable.
func TestBrowseMissingOrForbiddenBucket(t *testing.T) {
	t.Parallel()
	admin := serve(t, listing{"two:locked/x"}).User(t, "two", "admin")
	for path, why := range map[string]string{
		"/srv/missing": "path: was not found", "/srv/missing/a": "path: was not found", "/srv/closed": "path: cannot be listed, because access is denied", "/srv/closed/a": "path: cannot be listed, because access is denied",
		"/srv/two/locked": "path: cannot be listed",
	} {
		r := admin.Do("GET", browse+path, nil).Want(400)
		if m := r.Map(); !strings.Contains(m["message"].(string), why) || m["details"].([]any)[0].(map[string]any)["field"] != "path" {
			t.Errorf("%s: %v", path, m)
		}
		if r.Header.Get("Retry-After") != "" || strings.Contains(string(r.Body), "s3://") {
			t.Errorf("%s: %s %v", path, r.Body, r.Header)
		}
	}
}

func TestManyEntries(t *testing.T) {
	t.Parallel()
	var keys []string
	for i := range 5100 {
		keys = append(keys, fmt.Sprintf("books:many/%04d.cbz", i))
		if i < 1200 {
			keys = append(keys, fmt.Sprintf("two:%04d.cbz", i))
		}
	}
	admin := serve(t, append(keys, "books:some/x", "books:some/y.cbz", "two:last/x")).User
	for _, c := range []struct {
		tenant, path string
		entries      int
		truncated    bool
		first        string
	}{{"one", "/srv/books/many", 5000, true, "0000.cbz"}, {"one", "/srv/books/some", 2, false, "x"}, {"two", "/srv/two", 1201, false, "last"}} {
		m := admin(t, c.tenant, "admin").Do("GET", browse+c.path, nil).Want(200).Map()
		all := m["entries"].([]any)
		if len(all) != c.entries || m["truncated"] != c.truncated || all[0].(map[string]any)["name"] != c.first {
			t.Errorf("%s: %d entries, truncated %v, first %v", c.path, len(all), m["truncated"], all[0])
		}
	}
}

// A folder with more entries than one response can list is listed completely, piece by piece.
func TestBrowseOn(t *testing.T) {
	t.Parallel()
	var keys listing
	for i := range 5100 {
		keys = append(keys, fmt.Sprintf("books:files/%04d.cbz", i), fmt.Sprintf("two:%04d/1.cbz", i), fmt.Sprintf("two:%04d/2.cbz", i))
	}
	s := serve(t, append(keys, "books:files/last/1.cbz", "two:last/1.cbz"))
	for tenant, path := range map[string]string{"one": "/srv/books/files", "two": "/srv/two"} {
		admin := s.User(t, tenant, "admin")
		first := admin.Do("GET", browse+path, nil).Want(200).Map()
		next, _ := first["next"].(string)
		if first["truncated"] != true || !strings.HasPrefix(next, "4999") {
			t.Fatalf("%s: truncated %v, next %v", path, first["truncated"], first["next"])
		}
		second := admin.Do("GET", browse+path+"&after="+url.QueryEscape(next), nil).Want(200).Map()
		if list := names(second); second["truncated"] != false || second["next"] != nil || len(second["entries"].([]any)) != 101 || !strings.Contains(list, "last/") ||
			strings.Contains(list, "4999") {
			t.Errorf("%s: %s, next %v", path, list, second["next"])
		}
	}
}

func TestOnlyAdministrators(t *testing.T) {
	t.Parallel()
	s := serve(t, listing{"two:x/1.cbz"})
	for _, path := range []string{"/api/v1/filesystem/drives", "/api/v1/filesystem/browse", browse + "/srv/books", browse + "..", browse + "/nothing"} {
		s.Anonymous(t, "one").Do("GET", path, nil).Want(401)
		s.User(t, "one", "maintainer").Do("GET", path, nil).Want(403)
	}
	m := s.User(t, "two", "admin").Do("GET", "/api/v1/filesystem/drives", nil).Want(200).Map()
	if m["total"] != 3.0 || m["data"].([]any)[2].(map[string]any)["path"] != "/srv/two" {
		t.Errorf("%v", m)
	}
}

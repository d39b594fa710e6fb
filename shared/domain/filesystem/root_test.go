package filesystem_test

import (
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/domain/filesystem"
	"github.com/longbox/longbox/shared/platform/fault"
)

var roots = []filesystem.Root{
	{Path: "/srv/books", Bucket: "books"},
	{Path: "/srv/books/manga/", Bucket: "manga", Prefix: "jp"},
	{Path: "/srv/日本", Bucket: "ja", Prefix: "/a/b/"},
	{Path: "s3://cloud/tenant-1", Bucket: "cloud", Prefix: "tenant-1/"},
}

func TestResolve(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ path, bucket, prefix string }{
		{"/srv/books", "books", ""},
		{"/srv/books/", "books", ""},
		{"/srv//books/./", "books", ""},
		{"/srv/books/a", "books", "a/"},
		{"/srv/books/a/b c/", "books", "a/b c/"},
		{"/srv/books/a.../..b/b..", "books", "a.../..b/b../"},
		{"/srv/books/%2e%2e/x", "books", "%2e%2e/x/"},
		{"/srv/books/․․/x", "books", "․․/x/"}, // one-dot leaders are a name, not a parent reference
		{"/srv/books/夏目漱石/é", "books", "夏目漱石/é/"},
		{"/srv/books/e\u0301", "books", "e\u0301/"}, // names are bytes: no normalisation
		{"/srv/books/manga", "manga", "jp/"},
		{"/srv/books/manga/x", "manga", "jp/x/"},
		{"/srv/books/mangaka", "books", "mangaka/"},
		{"/srv/日本/x", "ja", "a/b/x/"},
		{"s3://cloud/tenant-1", "cloud", "tenant-1/"},
		{"s3://cloud/tenant-1/x/", "cloud", "tenant-1/x/"},
		{"s3://cloud//tenant-1/./x", "cloud", "tenant-1/x/"},
		{"s3://books", "books", ""},
		{"s3://books/a", "books", "a/"},
		{"s3://manga/jp/x", "manga", "jp/x/"},
	} {
		bucket, prefix, err := filesystem.Resolve(roots, c.path)
		if err != nil || bucket != c.bucket || prefix != c.prefix {
			t.Errorf("%q: %q %q %v, want %q %q", c.path, bucket, prefix, err, c.bucket, c.prefix)
		}
	}
}

func TestResolveRefuses(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"", "/", "/srv", "/srv/book", "/srv/booksx", "/etc/passwd", "srv/books", "./srv/books", "books",
		"/srv/books/..", "/srv/books/../books", "/srv/books/a/../../../etc", "/srv/books/a/..", "/../srv/books", "..",
		`/srv/books\..\..\etc`, `/srv/books/a\b`, `C:\books`, "C:/books",
		"/srv/books/\x00", "/srv/books/a\nb", "/srv/books/\x7f", "/srv/books/\xff\xfe", "/srv/books/\u0085",
		"/srv/books/" + strings.Repeat("x", 2048), "/srv/books/" + strings.Repeat("é/", 400),
		"s3://", "s3:///", "s3:///books", "s3://cloud", "s3://cloud/", "s3://cloud/tenant-10", "s3://cloud/tenant-1/../tenant-2",
		"s3://manga", "s3://manga/j", "s3://other/x", "S3://books/a", "s3:/books/a", "http://books/a", "file:///srv/books",
		"/srv/BOOKS", "/srv/日", "~/books", "/SRV/books/a",
	} {
		bucket, prefix, err := filesystem.Resolve(roots, path)
		if !fault.Is(err, fault.BadRequest) || fault.From(err).Fields[0].Field != "path" {
			t.Errorf("%q: %q %q %v", path, bucket, prefix, err)
		}
		if bucket != "" || prefix != "" {
			t.Errorf("%q is refused with a place: %q %q", path, bucket, prefix)
		}
	}
	if _, _, err := filesystem.Resolve(nil, "/srv/books"); err == nil {
		t.Error("a tenant without roots can name one")
	}
}

func TestRootOfTheFilesystem(t *testing.T) {
	t.Parallel()
	all := []filesystem.Root{{Path: "/", Bucket: "all"}}
	for path, want := range map[string]string{"/": "", "//": "", "/a": "a/", "/a/b/": "a/b/"} {
		if bucket, prefix, err := filesystem.Resolve(all, path); err != nil || bucket != "all" || prefix != want {
			t.Errorf("%q: %q %q %v", path, bucket, prefix, err)
		}
	}
}

// The text for a root is parsed to that place, and the displayed form to the same.
func TestParseRoot(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]filesystem.Root{
		"/srv/books=books":             {Path: "/srv/books", Bucket: "books"},
		"/srv/books/=books/comics":     {Path: "/srv/books", Bucket: "books", Prefix: "comics/"},
		"/srv/a=b=books":               {Path: "/srv/a=b", Bucket: "books"},
		"s3://books":                   {Path: "s3://books", Bucket: "books"},
		"s3://books/comics/":           {Path: "s3://books/comics", Bucket: "books", Prefix: "comics/"},
		"s3://books//comics/./x":       {Path: "s3://books/comics/x", Bucket: "books", Prefix: "comics/x/"},
		"s3://books/year=2024/lang=en": {Path: "s3://books/year=2024/lang=en", Bucket: "books", Prefix: "year=2024/lang=en/"},
	} {
		got, err := filesystem.ParseRoot(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
		if again, err := filesystem.ParseRoot(got.String()); err != nil || again != want {
			t.Errorf("%s is shown as %s: %+v, %v", text, got, again, err)
		}
	}
}

// Every accepted path stays at or below a root's prefix, and has no ambiguous part.
func FuzzResolve(f *testing.F) {
	for _, s := range []string{"/srv/books/a", "s3://cloud/tenant-1/x", "/srv/books/../x", "//srv/./books//x/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		bucket, prefix, err := filesystem.Resolve(roots, path)
		if err != nil {
			return
		}
		under := map[string]string{"books": "", "manga": "jp/", "ja": "a/b/", "cloud": "tenant-1/"}
		base, ok := under[bucket]
		if !ok || !strings.HasPrefix(prefix, base) || (prefix != "" && !strings.HasSuffix(prefix, "/")) || strings.HasPrefix(prefix, "/") {
			t.Fatalf("%q: %q %q", path, bucket, prefix)
		}
		for part := range strings.SplitSeq(strings.TrimSuffix(prefix, "/"), "/") {
			if part == ".." || part == "." || (part == "" && prefix != "") {
				t.Fatalf("%q: %q", path, prefix)
			}
		}
		again, same, err := filesystem.Resolve(roots, "s3://"+bucket+"/"+prefix)
		if err != nil || again != bucket || same != prefix {
			t.Fatalf("%q: its own address %q %q gives %q %q %v", path, bucket, prefix, again, same, err)
		}
	})
}

package page

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/fault"
)

func TestFileIsOfItsType(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{"cbz": "application/zip", "cbr": "application/x-rar-compressed", "epub": "application/epub+zip",
		"pdf": "application/pdf", "cb7": "application/octet-stream", "cbt": "application/octet-stream"} {
		w := httptest.NewRecorder()
		i := &Index{Key: "S/a." + format, Format: format, Size: 1, Modified: time.Unix(1, 0)}
		if err := NewServer(Server{}).File(w, httptest.NewRequest("HEAD", "/", nil), i); err != nil || w.Code != 200 || w.Header().Get("Content-Type") != want {
			t.Errorf("%s: status %d as %q, want %q; %v", format, w.Code, w.Header().Get("Content-Type"), want, err)
		}
	}
}

// Conditional headers are evaluated before an unsatisfiable range.
func TestFileConditionsBeforeRange(t *testing.T) {
	t.Parallel()
	i := &Index{Key: "S/a.cbz", Format: "cbz", Size: 100, ETag: "x", Modified: time.Unix(1000, 0)}
	for _, c := range []struct {
		header, value, requested string
		want                     int
	}{
		{"If-None-Match", i.fileTag(), "bytes=200-", 304},
		{"If-None-Match", `"another"`, "bytes=200-", 416},
		{"If-Match", `"another"`, "bytes=200-", 412},
		{"If-Match", i.fileTag(), "bytes=200-", 416},
		{"If-Range", `"another"`, "bytes=200-", 200},
		{"Accept", "*/*", "bytes=100-", 416},
		{"Accept", "*/*", "bytes=-0", 416},
		{"Accept", "*/*", "bytes=99-", 206},
	} {
		r, w := httptest.NewRequest("HEAD", "/", nil), httptest.NewRecorder()
		r.Header.Set(c.header, c.value)
		r.Header.Set("Range", c.requested)
		err := NewServer(Server{}).File(w, r, i)
		got := w.Code
		if err != nil {
			got = fault.From(err).Code.Status()
		}
		if got != c.want || (got == 416) != (w.Header().Get("Content-Range") == "bytes */100") {
			t.Errorf("%s: %s with Range %s: %d, want %d; Content-Range %q", c.header, c.value, c.requested, got, c.want, w.Header().Get("Content-Range"))
		}
	}
}

// A file that the gateway lists but cannot open (it answers 500) is a link, or has wrong permissions: the store is
// fine.
func TestFileThatIsNotOpened(t *testing.T) {
	const none = `<ListBucketResult><Name>books</Name><IsTruncated>false</IsTruncated></ListBucketResult>`
	const some = `<ListBucketResult><Name>books</Name><IsTruncated>false</IsTruncated><CommonPrefixes><Prefix>T/</Prefix></CommonPrefixes></ListBucketResult>`
	t.Setenv("AWS_ACCESS_KEY_ID", "reader")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	for _, c := range []struct {
		name           string
		size, status   int    // of the response to HEAD
		root           string // listing of the library's folder
		want           fault.Code
		words, without string
	}{
		{"a link", 2000, 200, some, fault.Conflict, "has changed", "storage"},
		{"permissions", 100, 200, some, fault.Unavailable, "check its permissions", "storage"},
		{"permissions of its folder", 0, 500, some, fault.Unavailable, "check the permissions of the file's folder", "storage"},
		{"a store that fails", 0, 500, "", fault.Unavailable, "storage", "permissions"},
		{"gone", 0, 404, some, fault.NotFound, "is gone", "mounted"},
		{"gone with all others", 0, 404, none, fault.Unavailable, "check that its disk is mounted", "gone"},
	} {
		store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Query().Has("list-type") && c.root != "":
				_, _ = io.WriteString(w, c.root) // the test reports errors itself
				return
			case r.Method != http.MethodHead && c.status != 404:
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			w.Header().Set("Content-Length", strconv.Itoa(c.size))
			w.WriteHeader(c.status)
		}))
		defer store.Close()
		s := NewServer(Server{Finder: NewFinder(nil), Content: &content.Reader{Store: blob.Config{LibraryEndpoint: store.URL, Region: "us-east-1", PathStyle: true}.Library()}})
		i := &Index{Key: "S/a.epub", Bucket: "books", Format: "epub", Size: 100, Modified: time.Unix(1000, 0)}
		r := httptest.NewRequest("GET", "/", nil)
		_, ofContents := s.Contents(r, i)
		for what, err := range map[string]error{"the file": s.File(httptest.NewRecorder(), r, i), "its contents": ofContents,
			"a file in it": s.Resource(httptest.NewRecorder(), r, i, "a.xhtml")} {
			if f := fault.From(err); f.Code != c.want || !strings.Contains(f.Message, c.words) || strings.Contains(f.Message, c.without) {
				t.Errorf("%s, %s: %v", c.name, what, err)
			}
		}
	}
}

// A file in a folder that is overwritten during a slow download would be a mixture of both: the response is cut off.
func TestFileThatIsOverwritten(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "reader")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	for _, c := range []struct {
		name    string
		etag    string
		size, n int64
		later   int // status of later requests
		whole   bool
		asked   int32
	}{
		{"overwritten", "", longPart, longPart, 412, false, 2},
		{"cut short", "", longPart, longPart, 416, false, 2},
		{"a range of it", "", 3 * longPart, longPart, 412, false, 2},
		{"as it was", "", longPart, longPart, 206, true, 2},
		{"deleted, which changes no byte of it", "", longPart, longPart, 404, true, 2},
		{"so small that it was read at once", "", longPart, 1000, 412, true, 1},
		{"of a store that knows its version", `"x"`, longPart, longPart, 412, true, 1},
	} {
		var asked atomic.Int32
		store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var from, to int64
			if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to); err != nil {
				t.Error(err)
			}
			if asked.Add(1) > 1 && c.later != 206 {
				w.WriteHeader(c.later)
				return
			}
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, c.size))
			w.Header().Set("Content-Length", strconv.FormatInt(to-from+1, 10))
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(make([]byte, to-from+1)) // the test reports errors itself
		}))
		defer store.Close()
		s := NewServer(Server{Finder: NewFinder(nil), Content: &content.Reader{Store: blob.Config{LibraryEndpoint: store.URL, Region: "us-east-1", PathStyle: true}.Library()}})
		i := &Index{Key: "S/a.cbz", Bucket: "books", Format: "cbz", Size: c.size, ETag: c.etag, Modified: time.Unix(1000, 0)}
		r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
		r.Header.Set("Range", fmt.Sprintf("bytes=0-%d", c.n-1))
		cut := func() (cut any) {
			defer func() { cut = recover() }()
			if err := s.File(w, r, i); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			return nil
		}()
		if whole := int64(w.Body.Len()) == c.n; whole != c.whole || (cut == nil) != c.whole || asked.Load() != c.asked {
			t.Errorf("%s: %d bytes came, cut off: %v, %d requests to the store, want %d", c.name, w.Body.Len(), cut, asked.Load(), c.asked)
		}
	}
}

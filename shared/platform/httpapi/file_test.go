package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// serveTen responds with a file of ten bytes as the response to a request with the headers.
func serveTen(t *testing.T, headers ...string) (*httptest.ResponseRecorder, error) {
	t.Helper()
	const text = "0123456789"
	r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w.Header().Set("ETag", `"v1"`)
	w.Header().Set("Content-Type", "text/plain")
	err := ServeFile(w, r, int64(len(text)), time.Unix(1e9, 5e8), func(from, n int64) (io.ReadCloser, error) {
		if from+n > int64(len(text)) {
			t.Errorf("%v: opened %d bytes at %d", headers, n, from)
		}
		return io.NopCloser(strings.NewReader(text[from:min(from+n, int64(len(text)))])), nil
	})
	return w, err
}

func TestServeRanges(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]string{
		"": "200 0123456789", "bytes=3-": "206 3456789", "bytes=3-4": "206 34", "bytes=9-9": "206 9", "bytes=9-10": "206 9", "bytes=0-99": "206 0123456789",
		"bytes=-3": "206 789", "bytes=-10": "206 0123456789", "bytes=-99": "206 0123456789",
		"bytes=4-3": "200 0123456789", "bytes=0-1,4-5": "200 0123456789", "items=0-1": "200 0123456789", "bytes=x-1": "200 0123456789",
	} {
		w, err := serveTen(t, "Range", asked)
		if got := fmt.Sprint(w.Code, " ", w.Body); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", asked, got, err, want)
		}
	}
	for _, asked := range []string{"bytes=10-", "bytes=10-11", "bytes=-0"} {
		if w, err := serveTen(t, "Range", asked); err == nil || w.Header().Get("Content-Range") != "bytes */10" {
			t.Errorf("%s: %d %s, %v", asked, w.Code, w.Header(), err)
		}
	}
}

// A range is served only to a client whose copy is certainly of this version.
func TestIfRange(t *testing.T) {
	t.Parallel()
	at := time.Unix(1e9, 0).UTC()
	for copied, want := range map[string]int{`"v1"`: 206, `W/"v1"`: 200, `"v2"`: 200, "yesterday": 200,
		at.Format(http.TimeFormat): 206, at.Add(-time.Second).Format(http.TimeFormat): 200, at.Add(time.Second).Format(http.TimeFormat): 200} {
		if w, err := serveTen(t, "Range", "bytes=3-4", "If-Range", copied); err != nil || w.Code != want {
			t.Errorf("%s: %d, %v; want %d", copied, w.Code, err, want)
		}
	}
}

// A client can tell that a response is cut off: the connection is closed before the announced length.
func TestFileThatCannotBeReadToItsEnd(t *testing.T) {
	t.Parallel()
	defer func() {
		if p := recover(); p != http.ErrAbortHandler {
			t.Errorf("ended with %v", p)
		}
	}()
	body := io.MultiReader(strings.NewReader("0123"), iotest.ErrReader(errors.New("the store is away")))
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "text/plain")
	err := ServeFile(w, httptest.NewRequest("GET", "/", nil), 10, time.Time{}, func(int64, int64) (io.ReadCloser, error) {
		return io.NopCloser(body), nil
	})
	t.Errorf("ended as if it were complete: %v", err)
}

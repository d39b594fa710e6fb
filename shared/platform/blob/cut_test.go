package blob

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A response that the store breaks off is not reported with the error that format readers return for a truncated file.
func TestCutAnswerIsTroubleOfTheStore(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	store := func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Length", "1000")
		rw.Header().Set("Content-Range", "bytes 10-1009/2000")
		rw.WriteHeader(http.StatusPartialContent)
		_, _ = rw.Write(make([]byte, 500))
		if err := http.NewResponseController(rw).Flush(); err != nil {
			t.Error(err)
		}
		panic(http.ErrAbortHandler)
	}
	plain, _, _ := served(t, store)
	secure, _, _ := started(t, (*httptest.Server).StartTLS, store)
	for _, url := range []string{plain, secure} {
		s := Config{LibraryEndpoint: url, PathStyle: true, Region: "us-east-1"}.Library()
		o := Object{Key: "k", Size: 2000}
		for name, read := range map[string]func() error{
			"range": func() error { _, err := s.ReadRange(t.Context(), "b", o, 10, 1000); return err },
			"tail":  func() error { _, _, err := s.Tail(t.Context(), "b", "k", make([]byte, 2000)); return err },
			"copy": func() error {
				r, err := s.Range(t.Context(), "b", o, 10, 1000)
				if err != nil {
					return err
				}
				defer r.Close()
				_, err = io.Copy(io.Discard, r)
				return err
			},
		} {
			if err := read(); !errors.Is(err, ErrCut) || errors.Is(err, io.ErrUnexpectedEOF) || !Unreachable(err) {
				t.Errorf("%s from %s: %v", name, url, err)
			}
		}
	}
}

// A store, or a proxy in front of it, that answers with the whole object has not answered the range request.
func TestStoreWithoutRanges(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	const all = "0123456789abcdefghij"
	url, _, _ := served(t, func(rw http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(rw, all) })
	s := Config{LibraryEndpoint: url, PathStyle: true, Region: "us-east-1"}.Library()
	o := Object{Key: "k", Size: int64(len(all))}
	for _, c := range []struct{ at, n int64 }{{10, 5}, {0, 5}, {1, 19}} {
		if got, err := s.ReadRange(t.Context(), "b", o, c.at, c.n); !errors.Is(err, errRanges) {
			t.Errorf("%d bytes from %d: %q, %v", c.n, c.at, got, err)
		}
	}
	if got, err := s.ReadRange(t.Context(), "b", o, 0, int64(len(all))); err != nil || string(got) != all {
		t.Errorf("all of it: %q, %v", got, err)
	}
}

// An empty range needs no request: HTTP has no empty ranges, so a store would answer with the whole object.
func TestRangeOfNothing(t *testing.T) {
	t.Parallel()
	data, err := Config{LibraryEndpoint: "http://127.0.0.1:1", PathStyle: true, Region: "us-east-1"}.Library().ReadRange(t.Context(), "b", Object{Key: "k", Size: 10}, 5, 0)
	if err != nil || len(data) != 0 {
		t.Errorf("%q, %v", data, err)
	}
}

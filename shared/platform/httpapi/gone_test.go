package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/platform/fault"
)

// A disconnecting client is no server error, but an error in the meantime is. Not parallel: the log is global.
func TestGone(t *testing.T) {
	var out bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&out, nil)))
	defer slog.SetDefault(before)
	for _, c := range []struct {
		leaves bool
		err    error
		want   []string
	}{
		{true, context.Canceled, []string{`"level":"INFO","msg":"request"`, `"status":499`}},
		{true, fmt.Errorf("draw: %w", context.Canceled), []string{`"level":"INFO","msg":"request"`, `"status":499`}},
		{true, fault.Wrap(context.Canceled, fault.Unavailable, "try again"), []string{`"level":"INFO","msg":"request"`, `"status":499`}},
		{true, fault.New(fault.NotFound, "nothing"), []string{`"level":"INFO","msg":"request"`, `"status":404`}},
		{true, errors.New("broken"), []string{`"level":"ERROR","msg":"request"`, `"status":500`}},
		{false, context.Canceled, []string{`"level":"ERROR","msg":"request"`, `"status":500`}},
		{false, errors.Join(errors.New("one"), errors.New("two")), []string{`"level":"ERROR","msg":"request"`, `"status":500`, `"error":"one; two"`}},
		{false, fault.Wrap(errors.Join(errors.New("one"), errors.New("two")), fault.Unavailable, "three"), []string{`"level":"WARN","msg":"request"`, `"status":503`, `"cause":"one; two"`}},
		// What the query of docs/alarms.md shows.
		{false, fault.New(fault.Unavailable, "too much waits"), []string{`"level":"WARN","msg":"request"`, `"id":"`, `"tenant":"`, `"tenantId":"`,
			`"method":"GET"`, `"path":"/api/v1/`, `"status":503`, `"ms":`, `"cause":"too much waits"`}},
		{false, fault.New(fault.NotFound, "nothing"), []string{`"level":"INFO","msg":"request"`, `"status":404`}},
	} {
		ctx, leave := context.WithCancel(t.Context())
		fails := func() error {
			if c.leaves {
				leave()
			}
			return c.err
		}
		a := things(Config{})
		Register(a, Op{Method: "GET", Path: "/api/v1/json", ID: "getJSON", Summary: "JSON", Tag: "Things", Permission: Public},
			func(context.Context, *struct{}) (*None, error) { return nil, fails() })
		a.Handle(Op{Method: "GET", Path: "/api/v1/plain", ID: "getPlain", Summary: "Plain", Tag: "Things", Permission: Public},
			func(http.ResponseWriter, *http.Request) error { return fails() })
		for _, path := range []string{"/api/v1/json", "/api/v1/plain"} {
			out.Reset()
			a.Router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", path, nil))
			for _, part := range c.want {
				if !strings.Contains(out.String(), part) {
					t.Errorf("%s, %v, the client leaves: %v: want %s in %s", path, c.err, c.leaves, part, out.String())
				}
			}
		}
		leave()
	}
}

// reads is a body that ends with an error.
type reads struct {
	io.Reader
	err error
}

func (r reads) Read(p []byte) (int, error) {
	if n, err := r.Reader.Read(p); err == nil {
		return n, nil
	}
	return 0, r.err
}

// An incomplete body is the client's error. Not parallel: the log is global.
func TestBrokenBody(t *testing.T) {
	var out bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&out, nil)))
	defer slog.SetDefault(before)
	a := things(Config{})
	Register(a, Op{Method: "PUT", Path: "/api/v1/json", ID: "putJSON", Summary: "JSON", Tag: "Things", Permission: Public},
		func(_ context.Context, in *struct{ Body struct{ A int } }) (*None, error) { return nil, nil })
	for err, want := range map[error]int{io.ErrUnexpectedEOF: 400, errors.New("malformed chunked encoding"): 400, os.ErrDeadlineExceeded: 408, io.EOF: 204} {
		out.Reset()
		ctx, leave := context.WithCancel(t.Context())
		if want != 204 {
			leave() // as the server says when it cannot read on
		}
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(ctx, "PUT", "/api/v1/json", reads{strings.NewReader(`{"A":1}`), err})
		r.Header.Set("Content-Type", "application/json")
		a.Router.ServeHTTP(w, r)
		leave()
		if w.Code != want || want != 204 && w.Header().Get("Connection") != "close" || !strings.Contains(out.String(), `"level":"INFO"`) {
			t.Errorf("%v: %d %v %s, want %d; log %s", err, w.Code, w.Header(), w.Body, want, out.String())
		}
	}
}

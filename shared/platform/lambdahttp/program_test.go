package lambdahttp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/platform/lambdahttp"
	"github.com/longbox/longbox/shared/platform/requestid"
	"github.com/longbox/longbox/shared/testkit/lambdakit"
)

// The test program is the function too: started with ROLE set it does nothing but serve.
func TestMain(m *testing.M) {
	var err error
	switch os.Getenv("ROLE") {
	case "":
		os.Exit(m.Run())
	case "serve":
		err = lambdahttp.Serve(handler(), after)
	case "stream":
		err = lambdahttp.Stream(handler(), after)
	case "invoke":
		err = lambdahttp.Invoke(invoked, after)
	case "broken":
		err = errors.New("SETTING: must be set")
	}
	lambdahttp.Main("test", func() error { return err })
}

func after(ctx context.Context) {
	if _, ok := ctx.Deadline(); ok && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "after")
	}
}

func invoked(ctx context.Context, payload json.RawMessage) (any, error) {
	switch string(payload) {
	case `"panic"`:
		panic("on purpose")
	case `"error"`:
		return nil, errors.New("no such thing")
	}
	_, bounded := ctx.Deadline()
	return map[string]any{"got": payload, "id": requestid.Of(ctx), "bounded": bounded}, nil
}

// seen is what the handler received.
type seen struct {
	Method, Path, RawPath, Host, Remote, ID string
	TLS                                     bool
	Query, Header                           map[string][]string
	Body                                    []byte
}

// routes is a mux that changes nothing about the path; "" is what is left.
type routes map[string]http.HandlerFunc

func (m routes) HandleFunc(path string, h http.HandlerFunc) { m[path] = h }

func (m routes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h, ok := m[r.URL.Path]
	if !ok {
		h = m[""]
	}
	h(w, r)
}

func handler() http.Handler {
	mux := routes{}
	mux.HandleFunc("/panic", func(http.ResponseWriter, *http.Request) { panic("on purpose") })
	mux.HandleFunc("/nothing", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/abort", func(w http.ResponseWriter, r *http.Request) {
		write(w, 1<<20)
		panic(http.ErrAbortHandler)
	})
	mux.HandleFunc("/bytes", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.URL.Query().Get("n"))
		if err != nil {
			panic(err)
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		write(w, n)
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) { // heeds its context
		<-r.Context().Done()
		w.WriteHeader(http.StatusGatewayTimeout)
	})
	stuck := make(chan struct{})
	mux.HandleFunc("/stuck", func(http.ResponseWriter, *http.Request) { <-stuck })
	mux.HandleFunc("/stuck-body", func(w http.ResponseWriter, r *http.Request) { write(w, 1000); <-stuck })
	mux.HandleFunc("", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		for _, c := range []string{"a=1; Path=/", "b=2; Expires=Wed, 21 Oct 2026 07:28:00 GMT"} {
			w.Header().Add("Set-Cookie", c)
		}
		w.Header().Add("Vary", "Origin")
		w.Header().Add("Vary", "Accept")
		w.Header().Set("Content-Type", "application/json")
		if s := r.Header.Get("Want-Status"); s != "" {
			n, err := strconv.Atoi(s)
			if err != nil {
				panic(err)
			}
			w.WriteHeader(n)
		}
		if err := json.NewEncoder(w).Encode(seen{r.Method, r.URL.Path, r.URL.RawPath, r.Host, r.RemoteAddr, requestid.Of(r.Context()), r.TLS != nil,
			r.URL.Query(), r.Header, body}); err != nil {
			panic(err)
		}
	})
	return mux
}

// write writes n bytes that are no UTF-8 and differ by place.
func write(w io.Writer, n int) {
	for at := 0; at < n; at += 4096 {
		if _, err := w.Write(pattern(at, min(4096, n-at))); err != nil {
			return
		}
	}
}

func pattern(at, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte((at+i)*31>>3) | 0x80
	}
	return b
}

// output is what a program wrote, safe to read while it runs.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) count(s string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Count(o.b.Bytes(), []byte(s))
}

// program is this test program in a role.
func program(t testing.TB, role string, timeout time.Duration) (lambdakit.Program, *output) {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := &output{}
	return lambdakit.Program{Name: role, Path: path, Env: []string{"ROLE=" + role}, Timeout: timeout, Output: out}, out
}

// front serves requests through a program.
func front(t testing.TB, f *lambdakit.Front, role string, timeout time.Duration) (url string, out *output) {
	t.Helper()
	p, out := program(t, role, timeout)
	f.Function = lambdakit.New(p, 1)
	t.Cleanup(f.Function.Close)
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s.URL, out
}

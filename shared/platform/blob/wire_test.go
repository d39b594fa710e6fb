package blob

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// TestMain makes the certificate of TLS servers one that the system trusts.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		srv := httptest.NewTLSServer(nil)
		defer srv.Close()
		dir, err := os.MkdirTemp("", "")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		name := filepath.Join(dir, "trusted.pem")
		if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
			panic(err)
		}
		os.Setenv("SSL_CERT_FILE", name)
		return m.Run()
	}())
}

// served is a plain server that counts its connections.
func served(t *testing.T, h http.HandlerFunc) (url string, connections *atomic.Int64, srv *httptest.Server) {
	t.Helper()
	return started(t, (*httptest.Server).Start, h)
}

// started is such a server, plain or with TLS.
func started(t *testing.T, start func(*httptest.Server), h http.HandlerFunc) (url string, connections *atomic.Int64, srv *httptest.Server) {
	t.Helper()
	connections = new(atomic.Int64)
	srv = httptest.NewUnstartedServer(h)
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	start(srv)
	t.Cleanup(srv.Close)
	return srv.URL, connections, srv
}

func fetch(t *testing.T, w *wire, ctx context.Context, url string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.RoundTrip(req)
}

func pattern(n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(i * 7 >> 3)
	}
	return out
}

func TestWireReusesConnections(t *testing.T) {
	t.Parallel()
	data := pattern(300_000)
	url, connections, _ := served(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Length", strconv.Itoa(len(data)))
		_, _ = rw.Write(data)
	})
	w := newWire()
	for i := range 20 {
		res, err := fetch(t, w, t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if i%2 == 0 {
			_, err = io.Copy(&got, res.Body) // WriteTo
		} else {
			_, err = io.Copy(&got, struct{ io.Reader }{res.Body}) // Read
		}
		if err != nil || !bytes.Equal(got.Bytes(), data) {
			t.Fatalf("%d bytes, %v", got.Len(), err)
		}
		if err := errors.Join(res.Body.Close(), res.Body.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// Idle connections of a burst are closed after a while, even without further requests.
func TestWireClosesWhatIsIdle(t *testing.T) {
	t.Parallel()
	const many = 8
	closed := make(chan bool, many)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { rw.Header().Set("Content-Length", "0") }))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			closed <- true
		}
	}
	srv.Start()
	t.Cleanup(srv.Close)
	w := newWire()
	w.idleTimeout = 20 * time.Millisecond
	for range 2 { // a burst, and one after all was quiet
		var open []io.Closer
		for range many {
			res, err := fetch(t, w, t.Context(), srv.URL)
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, res.Body)
		}
		for _, c := range open {
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
		for n := range many {
			select {
			case <-closed:
			case <-time.After(10 * time.Second):
				t.Fatalf("%d of %d idle connections were closed", n, many)
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.idle) > 0 || w.sweeping {
		t.Errorf("%d addresses are remembered, a timer runs: %t", len(w.idle), w.sweeping)
	}
}

// TestWireBetweenConnections copies bodies to another connection, as a page goes to its reader.
func TestWireBetweenConnections(t *testing.T) {
	t.Parallel()
	data := pattern(3_000_000)
	from, _, _ := served(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Length", strconv.Itoa(len(data)))
		_, _ = rw.Write(data)
	})
	w := newWire()
	to, _, _ := served(t, func(rw http.ResponseWriter, r *http.Request) {
		res, err := fetch(t, w, r.Context(), from)
		if err != nil {
			t.Error(err)
			return
		}
		defer res.Body.Close()
		rw.Header().Set("Content-Length", strconv.Itoa(len(data)))
		if n, err := res.Body.(*body).CopyN(rw, int64(len(data))); err != nil || n != int64(len(data)) {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
	for range 3 {
		res, err := http.Get(to)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	}
}

func TestWireUnreadBodyIsNotReused(t *testing.T) {
	t.Parallel()
	url, connections, _ := served(t, func(rw http.ResponseWriter, r *http.Request) { _, _ = rw.Write(pattern(100_000)) })
	w := newWire()
	for range 3 {
		res, err := fetch(t, w, t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(res.Body, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	if n := connections.Load(); n != 3 {
		t.Errorf("%d connections for 3 bodies left unread", n)
	}
}

// TestStaleConnection uses an idle connection that the server has closed: callers do not notice.
func TestStaleConnection(t *testing.T) {
	url, connections, srv := served(t, func(rw http.ResponseWriter, r *http.Request) { rw.Header().Set("Content-Length", "0") })
	store := troubled(t, url)
	for range 3 {
		body, _, err := store.Get(t.Context(), "b", "k")
		if err != nil {
			t.Fatal(err)
		}
		body.Close()
		srv.CloseClientConnections()
	}
	if n := connections.Load(); n != 3 {
		t.Errorf("%d connections", n)
	}
}

func troubled(t *testing.T, url string) *Store {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s")
	return Config{LibraryEndpoint: url, Region: "us-east-1", PathStyle: true}.Library()
}

// TestThreeTriesOnFreshConnections has a server that throttles, then one that closes without a response. A read is
// tried three times, with new connections after the first. Over TLS, net/http by itself repeats a request whose kept
// connection ends without a response.
func TestThreeTriesOnFreshConnections(t *testing.T) {
	status := func(code int) func(http.ResponseWriter) {
		return func(rw http.ResponseWriter) { http.Error(rw, "SlowDown", code) }
	}
	closes := func(http.ResponseWriter) { panic(http.ErrAbortHandler) }
	for name, c := range map[string]struct {
		start    func(*httptest.Server)
		fails    func(http.ResponseWriter)
		repeated int64
	}{
		"503":         {(*httptest.Server).Start, status(http.StatusServiceUnavailable), 0},
		"429":         {(*httptest.Server).Start, status(http.StatusTooManyRequests), 0},
		"closes":      {(*httptest.Server).Start, closes, 0},
		"TLS, 503":    {(*httptest.Server).StartTLS, status(http.StatusServiceUnavailable), 0},
		"TLS, 429":    {(*httptest.Server).StartTLS, status(http.StatusTooManyRequests), 0},
		"TLS, closes": {(*httptest.Server).StartTLS, closes, 1},
	} {
		var broken atomic.Bool
		var requests atomic.Int64
		url, connections, _ := started(t, c.start, func(rw http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			if broken.Load() {
				c.fails(rw)
			}
		})
		store := troubled(t, url)
		read := func() error {
			body, _, err := store.Get(t.Context(), "b", "k")
			if err == nil {
				err = errors.Join(second(io.Copy(io.Discard, body)), body.Close())
			}
			return err
		}
		if err := read(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		broken.Store(true)
		if err := read(); !Unreachable(err) {
			t.Errorf("%s: %v is not taken for trouble of the store", name, err)
		}
		// The first read and the first try of the second share a connection.
		if n, conns := requests.Load(), connections.Load(); n != 1+attempts+c.repeated || conns != attempts+c.repeated {
			t.Errorf("%s: %d requests over %d connections", name, n, conns)
		}
	}
}

func second(_ int64, err error) error { return err }

// TestStoreAsksForPatience has a store that answers the first request of each kind with 429, where S3 sends 503.
func TestStoreAsksForPatience(t *testing.T) {
	var busy atomic.Bool
	url, _, _ := served(t, func(rw http.ResponseWriter, r *http.Request) {
		if busy.Swap(false) {
			http.Error(rw, "TooManyRequests", http.StatusTooManyRequests)
		}
	})
	store := troubled(t, url)
	for name, ask := range map[string]func() error{
		"put": func() error { return store.Put(t.Context(), "b", "k", "text/plain", []byte("x")) },
		"get": func() error {
			body, _, err := store.Get(t.Context(), "b", "k")
			if err == nil {
				err = body.Close()
			}
			return err
		},
	} {
		busy.Store(true)
		if err := ask(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWireShortBody(t *testing.T) {
	t.Parallel()
	url, _, _ := served(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Length", "1000")
		_, _ = rw.Write(pattern(400))
		_ = http.NewResponseController(rw).Flush()
		panic(http.ErrAbortHandler)
	})
	for _, read := range []func(io.Reader) (int64, error){
		func(r io.Reader) (int64, error) { return io.Copy(io.Discard, r) },
		func(r io.Reader) (int64, error) { return io.Copy(io.Discard, struct{ io.Reader }{r}) },
	} {
		res, err := fetch(t, newWire(), t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := read(res.Body); err == nil {
			t.Errorf("%d bytes of 1000 passed as whole", n)
		}
		res.Body.Close()
	}
}

func TestWireEndsWithItsContext(t *testing.T) {
	t.Parallel()
	begun, release := make(chan bool, 2), make(chan bool)
	url, _, _ := served(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			rw.Header().Set("Content-Length", "1000")
			_, _ = rw.Write(pattern(400))
			_ = http.NewResponseController(rw).Flush()
		}
		begun <- true
		<-release
	})
	t.Cleanup(func() { close(release) })
	for _, path := range []string{"/header", "/body"} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-begun; cancel() }()
		res, err := fetch(t, newWire(), ctx, url+path)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
		if err == nil {
			t.Errorf("%s went on after its request had ended", path)
		}
	}
}

func TestWireSilentServer(t *testing.T) {
	t.Parallel()
	release := make(chan bool)
	url, connections, _ := served(t, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) })
	w := newWire()
	w.within = 20 * time.Millisecond
	_, err := fetch(t, w, t.Context(), url)
	var slow net.Error
	if !errors.As(err, &slow) || !slow.Timeout() || connections.Load() != 1 {
		t.Errorf("%v after %d connections", err, connections.Load())
	}
}

// TestSilentStoreIsAskedOnce has a store with a hanging disk: three tries would take a minute.
func TestSilentStoreIsAskedOnce(t *testing.T) {
	release := make(chan bool)
	var requests atomic.Int64
	url, _, _ := served(t, func(http.ResponseWriter, *http.Request) { requests.Add(1); <-release })
	t.Cleanup(func() { close(release) })
	store := troubled(t, url)
	g := store.open().read
	g.within = 20 * time.Millisecond
	for _, c := range []*http.Client{g.client, g.fresh} {
		c.Transport.(*wire).within = g.within
	}
	for name, ask := range map[string]func() error{
		"read": func() error { _, _, err := store.Get(t.Context(), "b", "k"); return err },
		"list": func() error { _, _, _, err := store.Folders(t.Context(), "b", "", "", 1); return err },
	} {
		requests.Store(0)
		if err := ask(); !Unreachable(err) || requests.Load() != 1 {
			t.Errorf("%s: %v after %d requests", name, err, requests.Load())
		}
	}
}

// TestWireChunked reads an answer of unknown length; its connection is not used again.
func TestWireChunked(t *testing.T) {
	t.Parallel()
	url, connections, _ := served(t, func(rw http.ResponseWriter, r *http.Request) {
		for range 3 {
			_, _ = rw.Write(pattern(1000))
			_ = http.NewResponseController(rw).Flush()
		}
	})
	w := newWire()
	for range 2 {
		res, err := fetch(t, w, t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(res.Body); err != nil || len(got) != 3000 {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		res.Body.Close()
	}
	if n := connections.Load(); n != 2 {
		t.Errorf("%d connections", n)
	}
}

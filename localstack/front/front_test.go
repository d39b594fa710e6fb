package front

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestTarget(t *testing.T) {
	t.Parallel()
	cases := []struct{ method, path, want string }{
		{"GET", "/api/v1/events/stream", relay},
		{"GET", "/api/v1/tasks/stream", relay},
		{"GET", "/api/v1/scans/stream", relay},
		{"GET", "/api/v1/books/stream", api},
		{"GET", "/api/v1/events/stream/", api},
		{"POST", "/api/v1/events/stream", api},
		{"GET", "/api/v1/books/1/pages/3", media},
		{"HEAD", "/api/v1/books/1/pages/3", media},
		{"GET", "/api/v1/books/1/pages", api},
		{"GET", "/api/v1/books/1/pages/3/x", api},
		{"GET", "/api/v1/books/1/file", media},
		{"GET", "/api/v1/books/1/file/book.cbz", media},
		{"GET", "/api/v1/books/1/file/a/book.cbz", api},
		{"PUT", "/api/v1/books/1/file", api},
		{"GET", "/api/v1/series/1/file", api},
		{"GET", "/api/v1/series/1/download", media},
		{"GET", "/komga/api/v1/series/1/download", api},
		{"GET", "/api/v1/user/exports/series/1/download", media},
		{"GET", "/api/v1/user/exports/series/1", api},
		{"GET", "/komga/api/v1/user/exports/series/1/download", api},
		{"GET", "/api/v1/books/1/thumbnail", media},
		{"GET", "/api/v1/series/1/thumbnail", media},
		{"GET", "/api/v1/libraries/1/thumbnail", media},
		{"GET", "/api/v1/users/1/thumbnail", api},
		{"GET", "/api/v1/books", api},
		{"GET", "/health", api},
		{"GET", "/opds/books/1/pages/3", media},
		{"HEAD", "/opds/books/1/pages/stream/3", media},
		{"GET", "/opds/books/1/pages", api},
		{"POST", "/opds/books/1/pages/3", api},
		{"GET", "/opds/series/1", api},
		{"GET", "/api/v1/collections/1/thumbnail", media},
		{"GET", "/api/v1/readlists/1/thumbnail", media},
		{"GET", "/api/v1/users/1/thumbnail", api},
		{"GET", "/komga/api/v1/books/1/pages/3", media},
		{"GET", "/komga/api/v1/books/1/pages/3/thumbnail", media},
		{"GET", "/komga/api/v1/books/1/file", media},
		{"GET", "/komga/api/v1/books/1/file/book.cbz", media},
		{"GET", "/komga/api/v1/series/1/thumbnail", media},
		{"GET", "/komga/api/v1/books/1/pages", api},
		{"GET", "/komga/api/v1/events/stream", api},
		{"GET", "/komga/v2/api/v1/books/1/file", api},
		{"GET", "/opds", api},
		{"GET", "/", api},
		{"GET", "", api},
	}
	for _, c := range cases {
		if got := target(c.method, c.path); got != c.want {
			t.Errorf("%s %s goes to %s, want %s", c.method, c.path, got, c.want)
		}
	}
}

// seen is the request that a function behind the front got.
type seen struct {
	Function, Host, URI string
	Header              http.Header
}

// behind starts a function that returns the request it got.
func behind(t *testing.T, name string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewEncoder(w).Encode(seen{name, r.Host, r.RequestURI, r.Header}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func quiet(string, ...any) {}

// TestProxyTellsTheTruthAboutTheClient sends forged headers, also through trusted reverse proxies in front.
func TestProxyTellsTheTruthAboutTheClient(t *testing.T) {
	t.Parallel()
	targets := Targets{API: behind(t, api), Media: behind(t, media), Relay: behind(t, relay)}
	const uri = "/api/v1/books/1/pages/2?width=300;x&q=%zz&name=a%2Fb"
	for _, c := range []struct {
		trusted            int
		hops, proto        string // as the proxies report them
		client, wantsProto string
	}{
		{0, "203.0.113.9, 198.51.100.7", "https", "127.0.0.1", "http"},
		{1, "forged, 198.51.100.7", "https", "198.51.100.7", "https"},
		{1, "198.51.100.7", "http", "198.51.100.7", "http"},
		{2, "forged, 2001:db8::1, 198.51.100.7", "https", "2001:db8::1", "https"},
		{2, "forged", "", "127.0.0.1", "http"},
	} {
		proxy := httptest.NewServer(Proxy(targets, c.trusted, quiet))
		defer proxy.Close()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, proxy.URL+"/api/v1/books/1/pages/2", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.URL.RawQuery = strings.SplitN(uri, "?", 2)[1]
		req.Host = "acme.example.org"
		for _, name := range []string{"X-Forwarded-Host", "Forwarded", "X-Real-Ip", "X-Forwarded-Port", "True-Client-Ip"} {
			req.Header.Set(name, "forged")
		}
		req.Header.Set("X-Forwarded-For", c.hops)
		req.Header.Set("X-Forwarded-Proto", c.proto)
		req.Header.Set("Range", "bytes=0-9")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var got seen
		if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
			t.Fatal(err)
		}
		if got.Function != media || got.Host != "acme.example.org" || got.URI != uri {
			t.Errorf("got %+v", got)
		}
		for name, want := range map[string]string{
			"X-Forwarded-For": c.client, "X-Forwarded-Host": "acme.example.org", "X-Forwarded-Proto": c.wantsProto,
			"Forwarded": "", "X-Real-Ip": "", "X-Forwarded-Port": "", "True-Client-Ip": "", "Range": "bytes=0-9",
		} {
			if g := strings.Join(got.Header.Values(name), ","); g != want {
				t.Errorf("%+v: %s is %q, want %q", c, name, g, want)
			}
		}
	}
}

// rawStream is a function that hijacks its connection and writes events one by one, like the relay.
func rawStream(t *testing.T, events <-chan string, ended *atomic.Bool, done chan<- struct{}) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer close(done)
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(rw, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n")
		rw.Flush()
		gone := make(chan struct{})
		go func() {
			_, _ = io.Copy(io.Discard, conn)
			ended.Store(true)
			close(gone)
		}()
		for {
			select {
			case e := <-events:
				fmt.Fprintf(rw, "data: %s\n\n", e)
				rw.Flush()
			case <-gone:
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// A response may begin while the body of its request is still being sent. Neither interrupts the other.
func TestAnswerBeforeTheBodyHasPassed(t *testing.T) {
	t.Parallel()
	const before = 64 << 10
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		_, _ = w.Write(make([]byte, before))
		w.(http.Flusher).Flush()
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%d %v", n, err)
	}))
	defer backend.Close()
	address := strings.TrimPrefix(backend.URL, "http://")
	f := httptest.NewServer(Proxy(Targets{API: address, Media: address, Relay: address}, 0, quiet))
	defer f.Close()
	body, send := io.Pipe()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", f.URL+"/api/v1/books/list", body)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = send.Write([]byte("half")) }()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.CopyN(io.Discard, res.Body, before); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = send.Write([]byte("rest"))
		send.Close()
	}()
	if rest, err := io.ReadAll(res.Body); err != nil || string(rest) != "8 <nil>" {
		t.Errorf("the backend read %q, %v", rest, err)
	}
}

// A client that sends an incomplete body, or sends it too slowly, gets an error and never a success.
func TestBrokenBodies(t *testing.T) {
	t.Parallel()
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			t.Errorf("%s: the function was sent a whole body", r.URL.Path)
		}
	}))
	t.Cleanup(backend.Close)
	address := strings.TrimPrefix(backend.URL, "http://")
	f := httptest.NewUnstartedServer(Proxy(Targets{API: address, Media: address, Relay: address}, 0, func(format string, args ...any) {
		t.Errorf("reported: "+format, args...)
	}))
	f.Config.ReadTimeout = 500 * time.Millisecond
	f.Start()
	t.Cleanup(f.Close)
	for name, c := range map[string]struct {
		head, body string
		half       bool // the client closes its half of the connection
		want       int
	}{
		"ends early":        {"Content-Length: 5000", `{"a"`, true, 400},
		"is not sent":       {"Content-Length: 5000", ``, true, 400},
		"chunk without end": {"Transfer-Encoding: chunked", "5\r\n{\"a", true, 400},
		"chunk of no size":  {"Transfer-Encoding: chunked", "zz\r\n{}\r\n0\r\n\r\n", false, 400},
		"takes too long":    {"Content-Length: 5000", `{"a"`, false, 408},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", f.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "PUT /api/v1/user/preferences/x HTTP/1.1\r\nHost: a\r\n%s\r\n\r\n%s", c.head, c.body)
			if c.half {
				if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
					t.Fatal(err)
				}
			}
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			var answer struct{ Error, Message string }
			if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || res.StatusCode != c.want || !res.Close || answer.Message == "" {
				t.Errorf("%d %+v, close %v, %v, want %d", res.StatusCode, answer, res.Close, err, c.want)
			}
		})
	}
}

// A response that is sent before the whole request was read is the last one of its connection, because the rest of the
// body is not a request.
func TestEarlyAnswerIsTheLast(t *testing.T) {
	t.Parallel()
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer backend.Close()
	address := strings.TrimPrefix(backend.URL, "http://")
	f := httptest.NewServer(Proxy(Targets{API: address, Media: address, Relay: address}, 0, quiet))
	defer f.Close()
	chunk := "3e8\r\n" + strings.Repeat("x", 1000) + "\r\n"
	for range 20 {
		conn, err := net.Dial("tcp", f.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			fmt.Fprintf(conn, "POST /api/v1/books/list HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%s0\r\n\r\n", strings.Repeat(chunk, 3000))
		}()
		if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(conn)
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Error(err)
		}
		if !res.Close { // the body was read anyway
			<-sent
			fmt.Fprint(conn, "GET /api/v1/books HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			if res, err = http.ReadResponse(r, nil); err != nil {
				t.Fatal(err)
			}
		}
		// The connection may end with a reset, because there was more to read.
		if more, _ := io.ReadAll(r); res.StatusCode != 401 || len(more) > 0 {
			t.Errorf("%d, then %.60q", res.StatusCode, more)
		}
		conn.Close()
	}
}

// A connection is used again if the bodies of its requests were read.
func TestReadBodiesKeepTheConnection(t *testing.T) {
	t.Parallel()
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
	}))
	defer backend.Close()
	address := strings.TrimPrefix(backend.URL, "http://")
	f := httptest.NewServer(Proxy(Targets{API: address, Media: address, Relay: address}, 0, quiet))
	defer f.Close()
	for i := range 200 {
		var body io.Reader = strings.NewReader(strings.Repeat("x", i*100))
		if i%2 == 1 {
			body = io.MultiReader(body) // which is sent in chunks
		}
		res, err := http.Post(f.URL+"/api/v1/books/list", "text/plain", body)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 200 || res.Close {
			t.Fatalf("request %d: %d, the connection ends: %v", i, res.StatusCode, res.Close)
		}
	}
}

func TestStreamsPassAtOnceAndEndWithTheClient(t *testing.T) {
	t.Parallel()
	events, done := make(chan string), make(chan struct{})
	var ended atomic.Bool
	proxy := httptest.NewServer(Proxy(Targets{API: behind(t, api), Media: behind(t, media), Relay: rawStream(t, events, &ended, done)}, 0, quiet))
	defer proxy.Close()
	res, err := http.Get(proxy.URL + "/api/v1/events/stream")
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(res.Body)
	for i := range 3 {
		events <- fmt.Sprint(i) // Each must arrive before the next is sent: nothing is held back.
		if !lines.Scan() || lines.Text() != fmt.Sprintf("data: %d", i) || !lines.Scan() {
			t.Fatalf("event %d: got %q, %v", i, lines.Text(), lines.Err())
		}
	}
	if err := res.Body.Close(); err != nil {
		t.Fatal(err)
	}
	<-done
	if !ended.Load() {
		t.Error("the relay did not see the client leave")
	}
}

func TestFrontFromStartToEnd(t *testing.T) {
	t.Parallel()
	f, err := Listen("127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	if f.server.ReadTimeout <= 0 {
		t.Error("who announces a body and never sends it keeps the connection")
	}
	at := fmt.Sprintf("http://127.0.0.1:%d/health", f.Port())
	if _, err := Listen("127.0.0.1", f.Port()); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("port %d is in use", f.Port())) {
		t.Errorf("second Listen: %v", err)
	}
	if _, err := Listen("192.0.2.1", 80); err == nil || !strings.Contains(err.Error(), "192.0.2.1:80") || !strings.HasSuffix(err.Error(), ": choose another BIND or PORT") {
		t.Errorf("the address of another machine: %v", err)
	}
	expect(t, at, http.StatusServiceUnavailable, "Longbox is starting")

	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", f.Port()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	gone := conn.LocalAddr().String() // an address where nobody listens, or can listen while the connection is open
	var reports atomic.Int32
	report := func(string, ...any) { reports.Add(1) }
	f.Open(Targets{API: gone, Media: gone, Relay: gone}, 0, report)
	expect(t, at, http.StatusServiceUnavailable, "restarting")
	expect(t, at, http.StatusServiceUnavailable, "restarting")
	if n := reports.Load(); n != 1 {
		t.Errorf("%d reports of one broken function, want 1", n)
	}
	f.Open(Targets{API: behind(t, api), Media: behind(t, media), Relay: behind(t, relay)}, 0, quiet)
	expect(t, at, http.StatusOK, `"Function":"api"`)
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func expect(t *testing.T, url string, status int, text string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != status || !strings.Contains(string(body), text) {
		t.Errorf("got %s %s, want %d with %q", res.Status, body, status, text)
	}
	if status == http.StatusServiceUnavailable && (res.Header.Get("Retry-After") == "" || !json.Valid(body)) {
		t.Errorf("503 without Retry-After or with invalid JSON: %s", body)
	}
}

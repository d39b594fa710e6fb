// Package front is the public entry of the one-machine system. It is a reverse proxy that routes each request to its
// function, like the CDN and the API gateway in the cloud, and it serves the files of a web application.
package front

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/longbox/longbox/shared/platform/deaf"
	"github.com/longbox/longbox/shared/platform/hops"
)

// Targets are the backends: the addresses (host:port) of the functions, and a web application (nil: none).
type Targets struct {
	API, Media, Relay string
	Web               *Web
}

// Front listens from its creation on. It answers 503 until it is opened, then it proxies.
type Front struct {
	listener net.Listener
	server   *http.Server
	handler  atomic.Pointer[http.Handler]
	done     chan error
}

// Limits for receiving a request before a function sees it.
const (
	headerPatience = 10 * time.Second
	bodyPatience   = 30 * time.Second // includes the header
	headerLimit    = 64 << 10
	idlePatience   = 2 * time.Minute
)

// Listen opens the port. If the port is in use, the error says what to do.
func Listen(bind string, port int) (*Front, error) {
	config := net.ListenConfig{Control: deaf.Limit}
	l, err := config.Listen(context.Background(), "tcp", net.JoinHostPort(bind, fmt.Sprint(port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("port %d is in use by another program: choose another port, for example PORT=%d make run", port, port+1)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: choose another BIND or PORT", err)
	}
	f := &Front{listener: l, done: make(chan error, 1)}
	f.answer(http.HandlerFunc(starting))
	f.server = &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*f.handler.Load()).ServeHTTP(w, r) }),
		ReadHeaderTimeout: headerPatience, ReadTimeout: bodyPatience, MaxHeaderBytes: headerLimit, IdleTimeout: idlePatience,
		// No write timeout: event streams stay open for days. The kernel closes connections of clients that do not
		// read.
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // Disconnecting clients are normal.
	}
	go func() { f.done <- f.server.Serve(l) }()
	return f, nil
}

func (f *Front) answer(h http.Handler) { f.handler.Store(&h) }

// Port returns the port that the front listens on.
func (f *Front) Port() int { return f.listener.Addr().(*net.TCPAddr).Port }

// Open starts to proxy for clients behind this many trusted proxies. It calls report once per outage of a function.
func (f *Front) Open(t Targets, trusted int, report func(format string, args ...any)) {
	f.answer(Proxy(t, trusted, report))
}

// Drain stops accepting connections. Running requests continue until Close.
func (f *Front) Drain(ctx context.Context) { _ = f.server.Shutdown(ctx) } // The only error is that of ctx.

// Close closes the remaining connections.
func (f *Front) Close() error {
	if err := f.server.Close(); err != nil {
		return err
	}
	if err := <-f.done; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func starting(w http.ResponseWriter, _ *http.Request) { unavailable(w, "Longbox is starting") }

func unavailable(w http.ResponseWriter, message string) {
	w.Header().Set("Retry-After", "1")
	refuse(w, http.StatusServiceUnavailable, "ServiceUnavailable", message)
}

// refuse responds in the API's error format.
func refuse(w http.ResponseWriter, status int, word, message string) {
	later := ""
	if status == http.StatusServiceUnavailable {
		later = `,"retry_after":1`
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// The client may have left.
	_, _ = io.WriteString(w, `{"error":"`+word+`","message":"`+message+`","details":null`+later+"}")
}

// Proxy returns the handler that routes each request to its function, and passes on the client's address as reported by
// this many trusted proxies.
func Proxy(t Targets, trusted int, report func(format string, args ...any)) http.Handler {
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 2 * time.Second, Control: deaf.Near}).DialContext,
		MaxIdleConnsPerHost: 256, IdleConnTimeout: 30 * time.Second, // Shorter than the functions keep them.
		DisableCompression: true, // Bodies pass unchanged.
		WriteBufferSize:    32 << 10, ReadBufferSize: 32 << 10,
	}
	proxies := map[string]http.Handler{
		api:   to(api, t.API, transport, 32<<10, trusted, report),
		media: to(media, t.Media, transport, 256<<10, trusted, report), // For pages: fewer switches between the processes.
		relay: to(relay, t.Relay, transport, 4<<10, trusted, report),   // Held as long as a client is connected.
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if t.Web != nil && t.Web.has(r.Method, r.URL.Path) {
			t.Web.ServeHTTP(w, r)
			return
		}
		if r.ContentLength != 0 {
			b := &body{ReadCloser: r.Body}
			r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, b))
			r.Body = b
		}
		// Without full duplex, the first bytes of a response close the request's body while the transport may still be
		// reading it. The transport then drops the connection, which truncates the response. Some protocols lack the
		// option or do not need it.
		_ = http.NewResponseController(w).EnableFullDuplex()
		proxies[target(r.Method, r.URL.Path)].ServeHTTP(w, r)
	})
}

// to proxies requests to one function. It copies responses with buffers of this size.
func to(name, address string, transport http.RoundTripper, size, trusted int, report func(string, ...any)) http.Handler {
	base := &url.URL{Scheme: "http", Host: address}
	proxy := &httputil.ReverseProxy{
		Transport: transport, BufferPool: &bufferPool{size: size},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(base)
			p.Out.Host = p.In.Host // The host identifies the tenant.
			p.Out.URL.RawQuery = p.In.URL.RawQuery
			// The functions trust only the front, which sets these headers itself instead of passing on those of
			// clients or proxies. (Forwarded and X-Forwarded-For, -Host and -Proto are dropped already.)
			for _, h := range []string{"X-Real-Ip", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Scheme", "True-Client-Ip"} {
				p.Out.Header.Del(h)
			}
			p.SetXForwarded()
			p.Out.Header.Set("X-Forwarded-For", hops.Client(p.In, trusted))
			if hops.Secure(p.In, trusted) {
				p.Out.Header.Set("X-Forwarded-Proto", "https")
			}
		},
	}
	var broken atomic.Bool
	proxy.ErrorHandler = func(w http.ResponseWriter, r *http.Request, err error) {
		gone := r.Context().Err() != nil
		if b, ok := r.Context().Value(bodyKey{}).(*body); ok {
			if failure := b.failure(gone); failure != nil {
				refuseBody(w, failure)
				return
			}
		}
		if gone {
			panic(http.ErrAbortHandler) // Otherwise the client would get an empty 200.
		}
		if !broken.Swap(true) {
			report("Longbox: cannot reach %s: %v", name, err)
		}
		unavailable(w, "This part of Longbox is restarting; try again")
	}
	proxy.ModifyResponse = func(res *http.Response) error {
		broken.Store(false)
		if b, ok := res.Request.Context().Value(bodyKey{}).(*body); ok && !b.read.Load() {
			res.Header.Set("Connection", "close") // The rest of the body must not be read as the next request.
		}
		return nil
	}
	return proxy
}

// body is a request body that records its read error.
type body struct {
	io.ReadCloser
	read atomic.Bool // to its end
	mu   sync.Mutex
	err  error
}

type bodyKey struct{}

func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == io.EOF:
		b.read.Store(true)
	case err != nil:
		b.err = err
	}
	return n, err
}

// failure returns the error of a read. With ends it waits for a running read, which ends with the connection and the
// request.
func (b *body) failure(ends bool) error {
	if ends {
		b.mu.Lock()
	} else if !b.mu.TryLock() {
		return nil
	}
	defer b.mu.Unlock()
	return b.err
}

// refuseBody responds to a request with an incomplete body.
func refuseBody(w http.ResponseWriter, failure error) {
	w.Header().Set("Connection", "close") // The rest must not be read as the next request.
	if errors.Is(failure, os.ErrDeadlineExceeded) {
		refuse(w, http.StatusRequestTimeout, "RequestTimeout", "The body of the request took too long to arrive; send it again, or in smaller parts")
		return
	}
	refuse(w, http.StatusBadRequest, "BadRequest", "The body of the request did not arrive completely; send it again")
}

// bufferPool reuses the buffers for copying bodies.
type bufferPool struct {
	size int
	pool sync.Pool
}

func (b *bufferPool) Get() []byte {
	if buf, ok := b.pool.Get().(*[]byte); ok {
		return *buf
	}
	return make([]byte, b.size)
}

func (b *bufferPool) Put(buf []byte) { b.pool.Put(&buf) }

// Package front is the one door of the one-machine system: a reverse proxy that sends each request to the function
// that answers it, as the CDN and the API gateway do in the cloud, and the server of a web application's files.
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

// Targets are what is behind the front: the addresses (host:port) of the functions, and a web application (nil: none).
type Targets struct {
	API, Media, Relay string
	Web               *Web
}

// Front listens from its creation, answers 503 until it is opened, and proxies from then on.
type Front struct {
	listener net.Listener
	server   *http.Server
	handler  atomic.Pointer[http.Handler]
	done     chan error
}

// Limits of what a client may send before a function sees it.
const (
	headerPatience = 10 * time.Second
	bodyPatience   = 30 * time.Second // with the header
	headerLimit    = 64 << 10
	idlePatience   = 2 * time.Minute
)

// Listen takes the port. A port that is taken is an error that says what to do.
func Listen(bind string, port int) (*Front, error) {
	config := net.ListenConfig{Control: deaf.Limit}
	l, err := config.Listen(context.Background(), "tcp", net.JoinHostPort(bind, fmt.Sprint(port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("port %d is taken by another program: choose another one, for example PORT=%d make run", port, port+1)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: choose another BIND or PORT", err)
	}
	f := &Front{listener: l, done: make(chan error, 1)}
	f.answer(http.HandlerFunc(starting))
	f.server = &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*f.handler.Load()).ServeHTTP(w, r) }),
		ReadHeaderTimeout: headerPatience, ReadTimeout: bodyPatience, MaxHeaderBytes: headerLimit, IdleTimeout: idlePatience,
		// No write timeout: event streams stay open for days. Whoever reads nothing is cut off by the kernel.
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // Clients that hang up are no news.
	}
	go func() { f.done <- f.server.Serve(l) }()
	return f, nil
}

func (f *Front) answer(h http.Handler) { f.handler.Store(&h) }

// Port is the port the front listens on.
func (f *Front) Port() int { return f.listener.Addr().(*net.TCPAddr).Port }

// Open starts to proxy for clients that come through so many trusted proxies. Failures to reach a function are reported
// once each by report.
func (f *Front) Open(t Targets, trusted int, report func(format string, args ...any)) {
	f.answer(Proxy(t, trusted, report))
}

// Drain stops taking new connections. Requests under way go on until Close.
func (f *Front) Drain(ctx context.Context) { _ = f.server.Shutdown(ctx) } // Its only error is that of ctx.

// Close cuts what is left.
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

// refuse answers in the shape of every other error of the interface.
func refuse(w http.ResponseWriter, status int, word, message string) {
	later := ""
	if status == http.StatusServiceUnavailable {
		later = `,"retry_after":1`
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"error":"`+word+`","message":"`+message+`","details":null`+later+"}") // A client that left.
}

// Proxy is the handler that sends each request to its function, and tells it who the client is before so many trusted
// proxies.
func Proxy(t Targets, trusted int, report func(format string, args ...any)) http.Handler {
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 2 * time.Second, Control: deaf.Near}).DialContext,
		MaxIdleConnsPerHost: 256, IdleConnTimeout: 30 * time.Second, // Shorter than the functions keep them.
		DisableCompression: true, // Bodies pass as they are.
		WriteBufferSize:    32 << 10, ReadBufferSize: 32 << 10,
	}
	proxies := map[string]http.Handler{
		api:   to(api, t.API, transport, 32<<10, trusted, report),
		media: to(media, t.Media, transport, 256<<10, trusted, report), // Pages: fewer turns between the processes.
		relay: to(relay, t.Relay, transport, 4<<10, trusted, report),   // Held as long as somebody listens.
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
		// Else the first bytes of an answer close the body of the request, which the transport may still be reading to
		// its end: it then gives the connection up, and cuts the answer off. Not every protocol has the choice, or
		// needs it.
		_ = http.NewResponseController(w).EnableFullDuplex()
		proxies[target(r.Method, r.URL.Path)].ServeHTTP(w, r)
	})
}

// to sends requests to one function, and copies its answers through buffers of so many bytes.
func to(name, address string, transport http.RoundTripper, size, trusted int, report func(string, ...any)) http.Handler {
	base := &url.URL{Scheme: "http", Host: address}
	proxy := &httputil.ReverseProxy{
		Transport: transport, BufferPool: &bufferPool{size: size},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(base)
			p.Out.Host = p.In.Host // The host names the tenant.
			p.Out.URL.RawQuery = p.In.URL.RawQuery
			// The functions trust the front alone: it says itself what is true of what a client or a proxy says of hops
			// before it. (Forwarded and X-Forwarded-For, -Host and -Proto are dropped already.)
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
			panic(http.ErrAbortHandler) // Else it would be told 200, with nothing in it.
		}
		if !broken.Swap(true) {
			report("Longbox: %s cannot be reached: %v", name, err)
		}
		unavailable(w, "This part of Longbox is restarting, try again")
	}
	proxy.ModifyResponse = func(res *http.Response) error {
		broken.Store(false)
		if b, ok := res.Request.Context().Value(bodyKey{}).(*body); ok && !b.read.Load() {
			res.Header.Set("Connection", "close") // What is left of the body is not the next request.
		}
		return nil
	}
	return proxy
}

// body is that of a request, and what kept it from being read to its end.
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

// failure is the error of a read, of one that is under way too where it is about to end: with the connection, and the
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

// refuseBody answers a request whose body did not come whole.
func refuseBody(w http.ResponseWriter, failure error) {
	w.Header().Set("Connection", "close") // What comes after it is not the next request.
	if errors.Is(failure, os.ErrDeadlineExceeded) {
		refuse(w, http.StatusRequestTimeout, "RequestTimeout", "The body of the request took too long to arrive; send it again, or in smaller parts")
		return
	}
	refuse(w, http.StatusBadRequest, "BadRequest", "The body of the request did not come whole; send it again")
}

// bufferPool reuses the buffers that bodies are copied through.
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

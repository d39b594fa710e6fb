package blob

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/longbox/longbox/shared/platform/deaf"
)

// wire sends GET requests over plain HTTP connections of its own. The kernel can then move response bodies to another
// connection (splice) without a copy through this process. The transport of net/http does not expose its connections.
// TLS cannot be spliced; there net/http is used.
type wire struct {
	dial        net.Dialer
	within      time.Duration // limit of the wait for the store's next bytes
	maxIdle     int
	idleTimeout time.Duration

	mu       sync.Mutex
	idle     map[string][]*wireConn // by address; last used last
	sweeping bool                   // a timer will close connections that are idle for too long
}

// headerSize is the size of the first read: the header of a response and a little of its body. Both fit into one write
// of our response (net/http's server has a buffer of 4 KB).
const headerSize = 3 << 10

// longAnswer is larger than nearly every page. A longer response is usually a book, which may be read slowly. Shorter
// responses are buffered whole by the kernel, which takes fewer switches.
const longAnswer = 4 << 20

type wireConn struct {
	*net.TCPConn
	buffered *bufio.Reader
	used     time.Time
}

func newWire() *wire {
	return &wire{dial: net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}, within: answerWithin,
		maxIdle: maxIdleConns, idleTimeout: 90 * time.Second, idle: map[string][]*wireConn{}}
}

// RoundTrip sends a request without a body, once. On an idle connection it may fail because the server has closed it.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	address := req.URL.Host
	if req.URL.Port() == "" {
		address = net.JoinHostPort(req.URL.Hostname(), "80")
	}
	c, err := w.take(req.Context(), address)
	if err != nil {
		return nil, err
	}
	res, err := w.send(c, address, req)
	if err == nil {
		return res, nil
	}
	c.Close()
	if cause := req.Context().Err(); cause != nil {
		return nil, cause
	}
	return nil, err
}

// take returns an idle connection or opens a new one.
func (w *wire) take(ctx context.Context, address string) (c *wireConn, err error) {
	w.mu.Lock()
	for list := w.idle[address]; len(list) > 0; {
		c = list[len(list)-1]
		list = list[:len(list)-1]
		w.idle[address] = list
		if time.Since(c.used) < w.idleTimeout {
			w.mu.Unlock()
			return c, nil
		}
		c.Close()
	}
	w.mu.Unlock()
	conn, err := w.dial.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	tcp := conn.(*net.TCPConn) // "tcp" dials this type
	return &wireConn{TCPConn: tcp, buffered: bufio.NewReaderSize(tcp, headerSize)}, nil
}

func (w *wire) send(c *wireConn, address string, req *http.Request) (*http.Response, error) {
	if err := c.SetDeadline(time.Now().Add(w.within)); err != nil {
		return nil, err
	}
	// The deadline aborts pending reads and writes.
	stop := context.AfterFunc(req.Context(), func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	res, err := c.exchange(req)
	if err != nil {
		stop()
		return nil, err
	}
	if res.ContentLength < 0 || len(res.TransferEncoding) > 0 {
		res.Close = true
		res.Body = &ending{res.Body, func() error { return c.await(req.Context(), w.within) }, func() { stop(); c.Close() }}
		return res, nil
	}
	if res.ContentLength > longAnswer {
		if err := c.keepLittle(address); err != nil {
			stop()
			return nil, err
		}
		res.Close = true // the kernel's buffer size cannot be reset
	}
	res.Body = &body{ctx: req.Context(), wire: w, conn: c, address: address, stop: stop, left: res.ContentLength, last: res.Close}
	return res, nil
}

// exchange sends a request and reads the header of its response. Then it removes the deadline.
func (c *wireConn) exchange(req *http.Request) (*http.Response, error) {
	if err := req.Write(c); err != nil {
		return nil, err
	}
	res, err := http.ReadResponse(c.buffered, req)
	if err != nil {
		return nil, err
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	return res, req.Context().Err() // SetDeadline may just have undone the cancellation
}

// await sets the time limit for the next bytes of a response.
func (c *wireConn) await(ctx context.Context, within time.Duration) error {
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	return ctx.Err() // SetDeadline may just have undone the cancellation
}

// keepLittle makes the kernel buffer little of a response that is not read yet.
func (c *wireConn) keepLittle(address string) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	return deaf.Near("tcp", address, raw)
}

func (w *wire) put(address string, c *wireConn) {
	c.used = time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.idle[address]) >= w.maxIdle {
		c.Close()
		return
	}
	w.idle[address] = append(w.idle[address], c)
	if !w.sweeping {
		w.sweeping = true
		time.AfterFunc(w.idleTimeout, w.sweep)
	}
}

// sweep closes connections that were idle for too long, and runs again for the others.
func (w *wire) sweep() {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := time.Duration(-1)
	for address, list := range w.idle {
		for len(list) > 0 && time.Since(list[0].used) >= w.idleTimeout {
			list[0].Close()
			list[0], list = nil, list[1:]
		}
		if len(list) == 0 {
			delete(w.idle, address)
			continue
		}
		w.idle[address] = list
		if left := w.idleTimeout - time.Since(list[0].used); next < 0 || left < next {
			next = max(left, 0)
		}
	}
	if w.sweeping = next >= 0; w.sweeping {
		time.AfterFunc(next, w.sweep)
	}
}

// body is the rest of a response of known length.
type body struct {
	ctx     context.Context
	wire    *wire
	conn    *wireConn
	address string
	stop    func() bool
	left    int64
	last    bool // the server closes the connection after this response
	closed  bool
}

func (b *body) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	if err := b.conn.await(b.ctx, b.wire.within); err != nil {
		return 0, err
	}
	n, err := b.conn.buffered.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, cut(err)
}

// WriteTo writes the rest to w: first the buffered bytes, then directly from connection to connection if w is a
// connection or can read from one.
func (b *body) WriteTo(w io.Writer) (written int64, err error) { return b.CopyN(w, b.left) }

// CopyN writes the next n bytes to w like WriteTo.
func (b *body) CopyN(w io.Writer, n int64) (written int64, err error) {
	n = min(n, b.left)
	for n > 0 && err == nil {
		var m int64
		if k := int64(b.conn.buffered.Buffered()); k > 0 {
			var p []byte
			if p, err = b.conn.buffered.Peek(int(min(k, n))); err == nil {
				var some int
				some, err = w.Write(p)
				_, _ = b.conn.buffered.Discard(some) // the bytes are buffered
				m = int64(some)
			}
		} else {
			m, err = b.splice(w, n)
		}
		n -= m
		b.left -= m
		written += m
	}
	return written, err
}

// splice writes at most the next n bytes from connection to connection. The time limit for the store also runs while w
// accepts nothing. So the store has stalled only if it then has no bytes.
func (b *body) splice(w io.Writer, n int64) (int64, error) {
	until := time.Now().Add(b.wire.within)
	if err := b.conn.await(b.ctx, b.wire.within); err != nil {
		return 0, err
	}
	m, err := io.Copy(w, io.LimitReader(b.conn.TCPConn, n))
	switch {
	case err == nil && m < n:
		return m, ErrCut
	case errors.Is(err, os.ErrDeadlineExceeded) && !time.Now().Before(until):
		if err := b.conn.await(b.ctx, b.wire.within); err != nil {
			return m, err
		}
		_, err = b.conn.buffered.Peek(1)
		return m, cut(err)
	}
	return m, err
}

// Close returns the connection to the pool if the body was read to its end. Otherwise it closes the connection.
func (b *body) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	if stopped := b.stop(); b.left == 0 && !b.last && stopped && b.conn.buffered.Buffered() == 0 {
		b.wire.put(b.address, b.conn)
		return nil
	}
	return b.conn.Close()
}

// ending is a body of unknown length.
type ending struct {
	io.ReadCloser
	await func() error
	end   func()
}

func (e *ending) Read(p []byte) (int, error) {
	if err := e.await(); err != nil {
		return 0, err
	}
	return e.ReadCloser.Read(p)
}

// Close closes the connection first: net/http would read the rest of the response.
func (e *ending) Close() error {
	e.end()
	_ = e.ReadCloser.Close() // the connection is closed already
	return nil
}

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

// wire sends GET requests over plain HTTP connections of its own, so that the bodies of its answers can be handed
// to another connection by the kernel (splice) instead of being copied through this process: net/http's transport
// never shows its connection. TLS cannot be spliced; there net/http is used.
type wire struct {
	dial        net.Dialer
	within      time.Duration // how long the store may send nothing that is waited for
	maxIdle     int
	idleTimeout time.Duration

	mu       sync.Mutex
	idle     map[string][]*wireConn // by address; the last used last
	sweeping bool                   // a timer runs that closes those idle for too long
}

// headerSize is what is read at first: the header of an answer, and so little of its body that both fit into one write
// of the answer that it is handed on in (net/http's server has 4 KB for that).
const headerSize = 3 << 10

// longAnswer is more than a page has: a book, which somebody may read slowly. Pages come with fewer turns where all of
// one is kept.
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

// RoundTrip sends a request without a body, once: on a connection that had been idle it may fail because the server
// has closed that meanwhile.
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

// take is an idle connection or a new one.
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
	tcp := conn.(*net.TCPConn) // what "tcp" dials
	return &wireConn{TCPConn: tcp, buffered: bufio.NewReaderSize(tcp, headerSize)}, nil
}

func (w *wire) send(c *wireConn, address string, req *http.Request) (*http.Response, error) {
	if err := c.SetDeadline(time.Now().Add(w.within)); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(req.Context(), func() { _ = c.SetDeadline(time.Unix(1, 0)) }) // ends what is under way
	res, err := func() (*http.Response, error) {
		if err := req.Write(c); err != nil {
			return nil, err
		}
		return http.ReadResponse(c.buffered, req)
	}()
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	if err == nil {
		err = req.Context().Err() // its deadline may just have been taken back
	}
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
		res.Close = true // what the kernel keeps cannot be set back
	}
	res.Body = &body{ctx: req.Context(), wire: w, conn: c, address: address, stop: stop, left: res.ContentLength, last: res.Close}
	return res, nil
}

// await begins the time within which more of an answer must come.
func (c *wireConn) await(ctx context.Context, within time.Duration) error {
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	return ctx.Err() // its deadline may just have been taken back
}

// keepLittle has the kernel keep little of an answer that is not read yet.
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

// sweep closes connections that nobody has used for too long, and comes back for those that are left.
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

// body is the rest of an answer of known length.
type body struct {
	ctx     context.Context
	wire    *wire
	conn    *wireConn
	address string
	stop    func() bool
	left    int64
	last    bool // the server closes the connection after it
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

// WriteTo writes the rest to w: what is buffered here, then, where w is a connection or knows how to read from one,
// straight from connection to connection.
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
				_, _ = b.conn.buffered.Discard(some) // it is buffered
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

// splice writes at most the next n bytes from connection to connection. The time for the store's next bytes also passes
// while w takes nothing: only a store that has none then has stalled.
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

// Close gives the connection back when the body was read to its end, and else closes it.
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

// ending is a body whose length is not told.
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

// Close ends the connection first: net/http would read the rest of the answer.
func (e *ending) Close() error {
	e.end()
	_ = e.ReadCloser.Close() // of a connection that is closed
	return nil
}

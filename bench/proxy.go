package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// wire is a TCP proxy in front of Postgres that counts round trips: each ends with ReadyForQuery.
type wire struct {
	listener        net.Listener
	network, target string
	delay           time.Duration // of each response
	trips           atomic.Int64
}

// newWire proxies the server of a connection string.
func newWire(database string, delay time.Duration) (*wire, error) {
	c, err := pgconn.ParseConfig(database)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wire{listener: l, delay: delay}
	w.network, w.target = pgconn.NetworkAddress(c.Host, c.Port)
	go w.serve()
	return w, nil
}

func (w *wire) close() { w.listener.Close() }

// url returns the connection string for the proxy.
func (w *wire) url(database string) string {
	u, err := url.Parse(database)
	if err != nil {
		return database // It was parsed before.
	}
	u.Host = w.listener.Addr().String()
	q := u.Query()
	q.Del("host")
	q.Del("port")
	u.RawQuery = q.Encode()
	return u.String()
}

func (w *wire) serve() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return // Closed.
		}
		server, err := net.Dial(w.network, w.target)
		if err != nil {
			client.Close() // The client reports it.
			continue
		}
		go func() {
			_, _ = io.Copy(server, client) // Connections may end at any time.
			server.Close()
		}()
		go func() {
			_ = w.answers(client, server)
			client.Close()
		}()
	}
}

// answers copies the server's messages: a type byte and a length that includes itself.
func (w *wire) answers(client io.Writer, server io.Reader) error {
	in, out := bufio.NewReaderSize(server, 64<<10), bufio.NewWriterSize(client, 64<<10)
	for first := true; ; {
		head, err := in.Peek(5)
		if err != nil {
			return err
		}
		if first {
			time.Sleep(w.delay)
		}
		if first = head[0] == 'Z'; first {
			w.trips.Add(1)
		}
		length := int64(binary.BigEndian.Uint32(head[1:])) + 1
		if length < 5 {
			return fmt.Errorf("unexpected message of %d bytes", length)
		}
		if _, err := io.CopyN(out, in, length); err != nil {
			return err
		}
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

// countedBody counts the bytes read of a response: a client may stop early.
type countedBody struct {
	io.ReadCloser
	bytes *atomic.Int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes.Add(int64(n))
	return n, err
}

// counter is a proxy in front of an S3 endpoint that counts requests and bytes.
type counter struct {
	*httptest.Server
	requests, bytes   atomic.Int64
	gets, puts, lists atomic.Int64 // of requests
}

func newCounter(endpoint string) (*counter, error) {
	target, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	c := &counter{}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 128
	c.Server = httptest.NewServer(&httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // The signature covers it.
		},
		ModifyResponse: func(res *http.Response) error {
			c.requests.Add(1)
			switch r := res.Request; {
			case r.Method == http.MethodPut:
				c.puts.Add(1)
			case r.Method == http.MethodGet && r.URL.Query().Has("list-type"):
				c.lists.Add(1)
			case r.Method == http.MethodGet:
				c.gets.Add(1)
			}
			res.Body = &countedBody{res.Body, &c.bytes}
			return nil
		},
	})
	return c, nil
}

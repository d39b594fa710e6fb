package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

// link is a TCP connection to a service that a test can count and cut.
type link struct {
	target string
	addr   string
	trips  atomic.Int64 // ReadyForQuery messages of Postgres: the ends of round trips
	others atomic.Int64 // round trips that no request causes: see kept
	frozen atomic.Int64 // calls of freeze

	mu     sync.Mutex
	listen net.Listener // nil: cut
	conns  map[net.Conn]bool
}

// newLink listens in front of the service at the URL and returns the URL that leads through the link.
func newLink(t testing.TB, serviceURL string, postgres bool) (*link, string) {
	t.Helper()
	u, err := url.Parse(serviceURL)
	if err != nil {
		t.Fatal(err)
	}
	l := &link{target: u.Host, addr: testkit.Address(t), conns: map[net.Conn]bool{}}
	l.restore(t, postgres)
	t.Cleanup(l.cut)
	u.Host = l.addr
	return l, u.String()
}

// cut ends every connection and refuses new ones.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listen != nil {
		l.listen.Close()
		l.listen = nil
	}
	for c := range l.conns {
		c.Close()
	}
	clear(l.conns)
}

// freeze stops what goes over the present connections, which stay open, as a router does that forgot them.
func (l *link) freeze() { l.frozen.Add(1) }

// gate reads from a connection until it is frozen, and then waits for its end.
type gate struct {
	io.Reader
	link *link
	born int64
}

func (g *gate) Read(p []byte) (int, error) {
	n, err := g.Reader.Read(p)
	if g.link.frozen.Load() == g.born {
		return n, err
	}
	for err == nil {
		_, err = g.Reader.Read(p)
	}
	return 0, err
}

// restore listens on the same address again.
func (l *link) restore(t testing.TB, postgres bool) {
	t.Helper()
	listen, err := net.Listen("tcp", l.addr)
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	l.listen = listen
	l.mu.Unlock()
	go func() {
		for {
			client, err := listen.Accept()
			if err != nil {
				return // cut
			}
			go l.serve(listen, client, postgres)
		}
	}()
}

// silence accepts connections after a cut and never answers.
func (l *link) silence(t testing.TB) {
	t.Helper()
	listen, err := net.Listen("tcp", l.addr)
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	l.listen = listen
	l.mu.Unlock()
	go func() {
		for {
			client, err := listen.Accept()
			if err != nil {
				return // cut
			}
			if !l.hold(listen, client) {
				client.Close()
			}
		}
	}()
}

// hold records a connection, so that the next cut ends it. It returns false if the link is already cut.
func (l *link) hold(listen net.Listener, c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listen != listen {
		return false
	}
	l.conns[c] = true
	return true
}

func (l *link) serve(listen net.Listener, client net.Conn, postgres bool) {
	defer client.Close()
	server, err := net.Dial("tcp", l.target)
	if err != nil {
		return
	}
	defer server.Close()
	if !l.hold(listen, client) {
		return
	}
	defer func() { l.mu.Lock(); delete(l.conns, client); l.mu.Unlock() }()
	born := l.frozen.Load()
	asked, answered := &gate{client, l, born}, &gate{server, l, born}
	go func() {
		if postgres {
			l.questions(server, asked)
		} else {
			_, _ = io.Copy(server, asked) // if either side ends, both end
		}
		server.Close()
	}()
	if !postgres {
		_, _ = io.Copy(client, answered)
		return
	}
	in, out := bufio.NewReaderSize(answered, 64<<10), bufio.NewWriterSize(client, 64<<10)
	for {
		// Each message of the server has one byte for the type and four for the length, which includes itself.
		var head [5]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return
		}
		if head[0] == 'Z' {
			l.trips.Add(1)
		}
		if _, err := out.Write(head[:]); err != nil {
			return
		}
		if _, err := io.CopyN(out, in, int64(binary.BigEndian.Uint32(head[1:]))-4); err != nil {
			return
		}
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return
			}
		}
	}
}

// kept are statements that any request may have to send: the query for the tenant, once in five seconds, and the ping
// of a connection that was idle for a second.
var kept = [][]byte{[]byte("app.tenant_by_host("), []byte("-- ping")}

// questions forwards the client's messages and counts those that contain a statement of kept.
func (l *link) questions(server io.Writer, client io.Reader) {
	in, out := bufio.NewReaderSize(client, 64<<10), bufio.NewWriterSize(server, 64<<10)
	head := make([]byte, 4, 5) // the first message has no type
	for {
		if _, err := io.ReadFull(in, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[len(head)-4:])-4)
		if _, err := io.ReadFull(in, body); err != nil {
			return
		}
		// The pools prepare no statements, so each query contains its text.
		if asked := head[0]; len(head) == 5 && (asked == 'P' || asked == 'Q') && slices.ContainsFunc(kept, func(sql []byte) bool { return bytes.Contains(body, sql) }) {
			l.others.Add(1)
		}
		if _, err := out.Write(head); err != nil {
			return
		}
		if _, err := out.Write(body); err != nil {
			return
		}
		head = head[:5]
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return
			}
		}
	}
}

// cost returns the round trips of do, without those of kept. Nothing else may use the link at that time.
func (l *link) cost(do func()) int64 {
	trips, others := l.trips.Load(), l.others.Load()
	do()
	return l.trips.Load() - trips - (l.others.Load() - others)
}

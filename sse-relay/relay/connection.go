package relay

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/longbox/longbox/shared/platform/events"
)

// connection is one client. There may be tens of thousands: a field here is paid for by each.
type connection struct {
	socket *net.TCPConn
	raw    syscall.RawConn
	shard  *shard
	topic  *topic
	grant  *grant
	held   *held     // not nil until the request's goroutine has finished the start of the stream
	after  events.ID // deliver only what is newer
	queue  []byte    // what the socket did not take yet
	full   int64     // since when queue is not empty, Unix nanoseconds
	ping   int64     // when the next keep-alive is due, Unix nanoseconds
	atAll  int32     // place in shard.all
	atHere int32     // place in shard.topics[topic]
	fd     int32     // for the watcher
	serial uint32    // tells a reused fd apart
	gone   bool
}

// held keeps live events until the start of the stream, with what is replayed, is written.
type held struct {
	frames []*frame
	bytes  int
}

func newConnection(socket net.Conn, s *shard, t *topic, g *grant) (*connection, error) {
	tcp, ok := socket.(*net.TCPConn)
	if !ok {
		return nil, fmt.Errorf("a %T cannot be taken over: want a TCP connection", socket)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	// A small send buffer bounds what the kernel holds for a client that does not read.
	if err := errors.Join(tcp.SetWriteBuffer(64<<10), setUserTimeout(raw)); err != nil {
		return nil, err
	}
	return &connection{socket: tcp, raw: raw, shard: s, topic: t, grant: g, held: &held{}, fd: -1}, nil
}

// writer writes to sockets without waiting. It belongs to one goroutine and allocates nothing.
type writer struct {
	bytes   []byte
	written int
	err     error
	call    func(fd uintptr) bool
}

func newWriter() *writer {
	w := &writer{}
	w.call = func(fd uintptr) bool {
		for {
			w.written, w.err = syscall.Write(int(fd), w.bytes)
			if w.err != syscall.EINTR {
				return true // never wait for the socket
			}
		}
	}
	return w
}

// write returns how many bytes the socket took, which may be none.
func (w *writer) write(c *connection, bytes []byte) (int, error) {
	w.bytes = bytes
	if err := c.raw.Write(w.call); err != nil {
		return 0, err
	}
	if w.err == syscall.EAGAIN {
		return 0, nil
	}
	return max(w.written, 0), w.err
}

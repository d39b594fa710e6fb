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
	socket *net.TCPConn // until the stream has started; then nil, and fd is all there is
	shard  *shard
	topic  *topic
	grant  *grant
	held   *held     // live events until the stream has started; then nil
	after  events.ID // deliver only what is newer
	queue  []byte    // what the socket did not take yet
	full   int64     // since when the socket takes none of queue, Unix nanoseconds
	ping   int64     // when the next keep-alive is due, Unix nanoseconds
	atAll  int32     // place in shard.all
	atHere int32     // place in shard.topics[topic]
	fd     int32     // -1 until the stream has started
	serial uint32    // tells the watcher a reused fd apart
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
	// A small send buffer bounds what the kernel holds for a client that does not read.
	if err := tcp.SetWriteBuffer(64 << 10); err != nil {
		return nil, err
	}
	return &connection{socket: tcp, shard: s, topic: t, grant: g, held: &held{}, fd: -1}, nil
}

// detach leaves the socket to a bare file descriptor, which costs half a kilobyte less than what
// the net package and the runtime keep for it. It does not block.
func (c *connection) detach() error {
	raw, err := c.socket.SyscallConn()
	if err != nil {
		return err
	}
	fd, failed := -1, error(nil)
	if err := raw.Control(func(old uintptr) {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		if fd, failed = syscall.Dup(int(old)); failed == nil {
			syscall.CloseOnExec(fd)
		}
	}); err != nil || failed != nil {
		return errors.Join(err, failed)
	}
	c.fd = int32(fd)
	err = c.socket.Close()
	c.socket = nil
	return errors.Join(err, setUserTimeout(fd))
}

// write returns how many bytes the socket took, which may be none. It never waits.
func (c *connection) write(bytes []byte) (int, error) {
	for {
		n, err := syscall.Write(int(c.fd), bytes)
		switch err {
		case nil:
			return n, nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, nil
		default:
			return 0, err
		}
	}
}

func (c *connection) close() {
	if c.fd >= 0 {
		_ = syscall.Close(int(c.fd)) // there is nothing to do about an error, the descriptor is gone
		c.fd = -1
	}
	if c.socket != nil {
		_ = c.socket.Close() // an error says that it is closed already
	}
}

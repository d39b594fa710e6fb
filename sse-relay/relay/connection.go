package relay

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/longbox/longbox/shared/platform/events"
)

// connection is one client. There may be tens of thousands, so each field costs memory.
type connection struct {
	socket *net.TCPConn // until the stream has started; then nil, and only fd is left
	shard  *shard
	seat             // to give back
	held   *held     // live events until the stream has started; then nil
	after  events.ID // the client's place: deliver only newer events
	queue  []byte    // bytes that the socket has not accepted yet
	full   int64     // since when the socket accepts nothing, Unix nanoseconds
	ping   int64     // time of the next keep-alive, Unix nanoseconds
	atAll  int32     // index in shard.all
	atHere int32     // index in shard.topics[topic]
	fd     int32     // -1 until the stream has started
	serial uint32    // distinguishes a reused fd, for the watcher
	gone   bool
}

// held buffers live events until the start of the stream and the replay are written.
type held struct {
	frames []*frame
	bytes  int
}

func newConnection(socket net.Conn, s *shard, at seat) (*connection, error) {
	tcp, ok := socket.(*net.TCPConn)
	if !ok {
		return nil, fmt.Errorf("a %T cannot be taken over: want a TCP connection", socket)
	}
	// A small send buffer limits the kernel memory of a client that does not read.
	if err := tcp.SetWriteBuffer(64 << 10); err != nil {
		return nil, err
	}
	return &connection{socket: tcp, shard: s, seat: at, held: &held{}, fd: -1}, nil
}

// detach reduces the socket to a bare file descriptor, which saves half a kilobyte of the net package and the runtime.
// It does not block.
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

// write returns how many bytes the socket accepted, possibly none. It never blocks.
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
		_ = syscall.Close(int(c.fd)) // an error cannot be handled, the descriptor is gone
		c.fd = -1
	}
	if c.socket != nil {
		_ = c.socket.Close() // an error means that it is closed already
	}
}

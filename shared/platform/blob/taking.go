package blob

import (
	"context"
	"net"
	"time"
)

// taking dials connections whose other side must go on taking what it is sent: nothing else ends a request whose body
// the store has stopped to read, as one does whose disk hangs.
func taking(dial func(ctx context.Context, network, address string) (net.Conn, error), within time.Duration) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &takenConn{conn, within}, nil
	}
}

type takenConn struct {
	net.Conn
	within time.Duration
}

// Write implements net.Conn: each piece has its own time, so that a slow store has all that it needs.
func (c *takenConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.within)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

package blob

import (
	"context"
	"net"
	"time"
)

// taking dials connections with a write timeout. Without it, a request never ends when the store stops reading the
// body, as one with a hanging disk does.
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

// Write implements net.Conn. Each write has its own deadline, so that a slow store has enough time.
func (c *takenConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.within)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

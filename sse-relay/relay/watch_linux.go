package relay

import (
	"context"
	"fmt"
	"sync"
	"syscall"
)

// watcher detects clients that close their connection, with one epoll set for all.
type watcher struct {
	set    int
	mu     sync.Mutex
	serial uint32
	byFD   []*connection
}

func newWatcher() (*watcher, error) {
	set, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create an epoll set: %w", err)
	}
	return &watcher{set: set}, nil
}

// add watches c until it is removed. It must be removed before its descriptor is closed.
func (w *watcher) add(c *connection) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for int(c.fd) >= len(w.byFD) {
		w.byFD = append(w.byFD, nil)
	}
	w.serial++
	c.serial = w.serial
	event := syscall.EpollEvent{Events: syscall.EPOLLRDHUP | syscall.EPOLLONESHOT, Fd: c.fd, Pad: int32(c.serial)}
	if err := syscall.EpollCtl(w.set, syscall.EPOLL_CTL_ADD, int(c.fd), &event); err != nil {
		return fmt.Errorf("watch a connection: %w", err)
	}
	w.byFD[c.fd] = c
	return nil
}

// remove forgets c. Closing the descriptor removes it from the epoll set.
func (w *watcher) remove(c *connection) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.fd >= 0 && int(c.fd) < len(w.byFD) && w.byFD[c.fd] == c {
		w.byFD[c.fd] = nil
	}
}

// run reports closed connections to their shards until ctx ends.
func (w *watcher) run(ctx context.Context) error {
	defer syscall.Close(w.set)
	seen := make([]syscall.EpollEvent, 256)
	for ctx.Err() == nil {
		n, err := syscall.EpollWait(w.set, seen, 250)
		if err != nil && err != syscall.EINTR {
			return fmt.Errorf("wait for closed connections: %w", err)
		}
		for _, event := range seen[:max(n, 0)] {
			w.mu.Lock()
			c := w.byFD[event.Fd]
			w.mu.Unlock()
			if c != nil && c.serial == uint32(event.Pad) {
				c.shard.send(ctx, func(s *shard) { s.drop(c, closedByClient) })
			}
		}
	}
	return nil
}

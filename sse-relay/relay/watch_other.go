//go:build !linux

package relay

import "context"

// watcher does nothing here: the second keep-alive detects a closed connection.
type watcher struct{}

func newWatcher() (*watcher, error)              { return &watcher{}, nil }
func (w *watcher) add(*connection) error         { return nil }
func (w *watcher) remove(*connection)            {}
func (w *watcher) run(ctx context.Context) error { <-ctx.Done(); return nil }

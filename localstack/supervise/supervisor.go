package supervise

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"
)

// Supervisor starts children and holds what they share: the console, the log folder and the ledger.
type Supervisor struct {
	console *Console
	logDir  string
	ledger  *ledger
	unnoted atomic.Bool // the last change of the ledger could not be written
	calls   chan func()
}

// leftoverGrace is the time that a process of a killed supervisor gets to end by itself.
const leftoverGrace = 20 * time.Second

// New makes a supervisor that logs to <dir>/log and records its children in <dir>/processes.json. It first ends the
// processes that a killed supervisor left behind. The caller must hold the lock of dir.
func New(ctx context.Context, dir string, console *Console) (*Supervisor, error) {
	logDir := filepath.Join(dir, "log")
	if err := os.MkdirAll(logDir, 0o750); err != nil {
		return nil, fmt.Errorf("log folder: %w", err)
	}
	l, err := openLedger(ctx, filepath.Join(dir, "processes.json"), leftoverGrace)
	if err != nil {
		return nil, err
	}
	s := &Supervisor{console: console, logDir: logDir, ledger: l, calls: make(chan func())}
	go s.starter()
	return s, nil
}

// noted reports a failure to write the ledger once, until a write succeeds.
func (s *Supervisor) noted(err error) {
	if failed := err != nil; failed != s.unnoted.Swap(failed) && failed {
		s.console.Say("Longbox: %v", err)
	}
}

// starter runs on one operating system thread for the life of the supervisor. The kernel sends a child its death signal
// when the thread that started it ends, so no child may be started from a thread of Go's pool.
func (s *Supervisor) starter() {
	runtime.LockOSThread()
	for f := range s.calls {
		f()
	}
}

// onStarter runs f on the starter's thread.
func (s *Supervisor) onStarter(f func() error) error {
	result := make(chan error, 1)
	s.calls <- func() { result <- f() }
	return <-result
}

// Close ends the starter thread. The kernel kills children that still run: stop them before.
func (s *Supervisor) Close() { close(s.calls) }

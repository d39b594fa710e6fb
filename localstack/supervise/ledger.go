package supervise

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// ledger is the list of living children on disk. After a supervisor was killed, the next one reads from it which
// children may still be ending, and waits for them instead of starting a second server on the same files.
type ledger struct {
	mu      sync.Mutex
	path    string
	entries map[string]entry
}

// entry identifies one process. Process ids are reused, but the pair of id and start time is unique.
type entry struct {
	PID   int            `json:"pid"`
	Start string         `json:"start"`
	Stop  syscall.Signal `json:"stop"`
}

func (l *ledger) set(name string, e entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries[name] = e
	return l.write()
}

func (l *ledger) remove(name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, name)
	return l.write()
}

func (l *ledger) write() error {
	raw, err := json.Marshal(l.entries)
	if err != nil {
		return fmt.Errorf("process list: %w", err)
	}
	if err := os.WriteFile(l.path+".new", raw, 0o600); err != nil {
		return fmt.Errorf("process list: %w", err)
	}
	if err := os.Rename(l.path+".new", l.path); err != nil {
		return fmt.Errorf("process list: %w", err)
	}
	return nil
}

// openLedger reads the list of a killed supervisor, ends the living processes (with a signal, after grace by force),
// and starts an empty list.
func openLedger(ctx context.Context, path string, grace time.Duration) (*ledger, error) {
	l := &ledger{path: path, entries: map[string]entry{}}
	raw, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrPermission):
		return nil, fmt.Errorf("process list: %w: another user started Longbox on this DATA_DIR; change its owner back with chown -R, or start as that user", err)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("process list: %w", err)
	}
	left := map[string]entry{}
	if err == nil && json.Unmarshal(raw, &left) != nil {
		left = nil // Truncated by a full disk: nothing is known, but the servers have locks of their own.
	}
	for name, e := range left {
		if e.elsewhere(filepath.Dir(path)) {
			continue
		}
		if err := e.end(ctx, grace); err != nil {
			return nil, fmt.Errorf("%s of an earlier start (process %d) is still running: %w", name, e.PID, err)
		}
	}
	return l, nil
}

func (e entry) end(ctx context.Context, grace time.Duration) error {
	if !e.alive() {
		return nil
	}
	if err := syscall.Kill(e.PID, e.Stop); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	if e.gone(ctx, grace) {
		return nil
	}
	if err := ctx.Err(); err != nil { // the caller has left: the process continues to end by itself
		return err
	}
	if err := syscall.Kill(e.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	if !e.gone(ctx, grace) {
		return errors.New("it does not end, not even by SIGKILL")
	}
	return nil
}

func (e entry) gone(ctx context.Context, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return poll(ctx, func(context.Context) error {
		if e.alive() {
			return errors.New("still alive")
		}
		return nil
	}) == nil
}

func (e entry) alive() bool {
	start, ok := startTime(e.PID)
	return ok && start == e.Start
}

// elsewhere reports whether the process certainly works outside dir. Every child works in dir, so the list was then
// copied while its Longbox ran, and that one must not be stopped.
func (e entry) elsewhere(dir string) bool {
	ours, err := os.Stat(dir)
	if err != nil {
		return false
	}
	for at := "/proc/" + strconv.Itoa(e.PID) + "/cwd"; ; at += "/.." {
		its, err := os.Stat(at)
		if err != nil || os.SameFile(its, ours) {
			return false
		}
		if above, err := os.Stat(at + "/.."); err != nil || os.SameFile(its, above) {
			return err == nil
		}
	}
}

// startTime reads field 22 of /proc/<pid>/stat (clock ticks since boot). It reports false for a process that is gone or
// a zombie.
func startTime(pid int) (string, bool) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", false
	}
	_, rest, ok := bytes.Cut(raw, []byte(") ")) // The name, in parentheses, may contain spaces.
	if !ok {
		return "", false
	}
	fields := bytes.Fields(rest)
	if len(fields) < 20 || fields[0][0] == 'Z' {
		return "", false
	}
	return string(fields[19]), true
}

// poll calls f until it succeeds or ctx ends: every 20 ms, after some seconds twice a second. It returns the last error
// of f that is not the end of ctx itself.
func poll(ctx context.Context, f func(context.Context) error) error {
	var last error
	for pause, began := 20*time.Millisecond, time.Now(); ; {
		err := f(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		if time.Since(began) > 5*time.Second {
			pause = 500 * time.Millisecond
		}
		select {
		case <-ctx.Done():
			return last
		case <-time.After(pause):
		}
	}
}

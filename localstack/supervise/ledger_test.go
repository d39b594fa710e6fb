package supervise

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// sleeper starts a process that works in dir and runs until it is ended.
func sleeper(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env, cmd.Dir = []string{"CHILD=silent"}, dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

func writeLedger(t *testing.T, dir string, e entry) string {
	t.Helper()
	raw, err := json.Marshal(map[string]entry{"postgres": e})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "processes.json")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLeftoverIsEnded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	work := filepath.Join(dir, "tmp")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := sleeper(t, work)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	start, ok := startTime(cmd.Process.Pid)
	if !ok {
		t.Fatal("no start time of a living process")
	}
	path := writeLedger(t, dir, entry{PID: cmd.Process.Pid, Start: start, Stop: syscall.SIGTERM})
	if _, err := openLedger(t.Context(), path, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || err.Error() != "signal: terminated" {
		t.Errorf("it ended with %v, want its stop signal", err)
	}
}

// A cancelled wait does not kill a database that is still writing.
func TestCancelledWaitKillsNobody(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := sleeper(t, dir)
	start, ok := startTime(cmd.Process.Pid)
	if !ok {
		t.Fatal("no start time of a living process")
	}
	path := writeLedger(t, dir, entry{PID: cmd.Process.Pid, Start: start, Stop: syscall.SIGCONT}) // which does not end it
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := openLedger(ctx, path, 10*time.Second); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want the end of the wait", err)
	}
	time.Sleep(50 * time.Millisecond)
	if _, alive := startTime(cmd.Process.Pid); !alive {
		t.Error("it was killed")
	}
}

func TestStrangerWithTheSameIDIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := sleeper(t, dir)
	path := writeLedger(t, dir, entry{PID: cmd.Process.Pid, Start: "1", Stop: syscall.SIGKILL})
	if _, err := openLedger(t.Context(), path, time.Second); err != nil {
		t.Fatal(err)
	}
	if _, alive := startTime(cmd.Process.Pid); !alive {
		t.Error("a process that is not ours was ended")
	}
}

// If a data folder is copied while Longbox runs on it, the copy lists the processes of that Longbox.
func TestProcessOfTheOriginalOfACopyIsLeftAlone(t *testing.T) {
	t.Parallel()
	cmd := sleeper(t, t.TempDir())
	start, ok := startTime(cmd.Process.Pid)
	if !ok {
		t.Fatal("no start time of a living process")
	}
	path := writeLedger(t, t.TempDir(), entry{PID: cmd.Process.Pid, Start: start, Stop: syscall.SIGKILL})
	if _, err := openLedger(t.Context(), path, time.Second); err != nil {
		t.Fatal(err)
	}
	if _, alive := startTime(cmd.Process.Pid); !alive {
		t.Error("a process of another data folder was ended")
	}
}

func TestDamagedLedgerIsIgnored(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "processes.json")
	if err := os.WriteFile(path, []byte(`{"postgres":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openLedger(t.Context(), path, time.Second); err != nil {
		t.Error(err)
	}
}

// If the list cannot be written, this is reported once, and again after a successful write.
func TestUnwrittenListIsToldOnce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := &Supervisor{console: NewConsole(&out)}
	full := errors.New("no space left")
	for _, err := range []error{nil, full, full, nil, full} {
		s.noted(err)
	}
	s.console.Flush()
	if n := strings.Count(out.String(), "no space left"); n != 2 {
		t.Errorf("told %d times: %s", n, out.String())
	}
}

package supervise

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/longbox/longbox/localstack/port"
)

// screen is a console's writer for several goroutines.
type screen struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(b)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

func newSupervisor(t *testing.T) (*Supervisor, *screen, string) {
	t.Helper()
	dir, out := t.TempDir(), &screen{}
	s, err := New(t.Context(), dir, NewConsole(out))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, out, dir
}

func address(t *testing.T) string {
	t.Helper()
	ports, err := port.Free(1)
	if err != nil {
		t.Fatal(err)
	}
	return "127.0.0.1:" + strconv.Itoa(ports[0])
}

func ask(address string) (pid int, err error) {
	res, err := http.Get("http://" + address)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(body))
}

func TestStartWaitsAndStopEndsGracefully(t *testing.T) {
	t.Parallel()
	s, _, dir := newSupervisor(t)
	at := address(t)
	p, err := s.Start(t.Context(), child("polite", "polite", at))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ask(at); err != nil {
		t.Errorf("not ready after Start: %v", err)
	}
	p.Stop()
	p.Stop() // A second call does no harm.
	if _, err := ask(at); err == nil {
		t.Error("still answers after Stop")
	}
	logged(t, filepath.Join(dir, "log", "polite.log"), "goodbye")
}

func TestNice(t *testing.T) {
	t.Parallel()
	s, _, _ := newSupervisor(t)
	at := address(t)
	spec := child("polite", "polite", at)
	spec.Nice = 7
	p, err := s.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	pid, err := ask(at)
	if err != nil {
		t.Fatal(err)
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		t.Fatalf("%v, %v", threads, err)
	}
	for _, path := range threads {
		stat, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		if nice := strings.Fields(after)[16]; nice != "7" { // proc(5): field 19
			t.Errorf("%s: %s", path, nice)
		}
	}
	if session, err := unix.Getsid(pid); err != nil || session != pid {
		t.Errorf("process %d is in session %d, %v", pid, session, err)
	}
	group, err := os.ReadFile(fmt.Sprintf("/proc/%d/autogroup", pid))
	// If the file does not exist, the kernel does not distribute processor time by session.
	if !errors.Is(err, os.ErrNotExist) && !strings.HasSuffix(string(group), " nice 7\n") {
		t.Errorf("the session: %q, %v", group, err)
	}
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		spec func(t *testing.T) Spec
		want []string
	}{
		"dies": {func(t *testing.T) Spec { return child("dying", "dying", address(t)) },
			[]string{"dying ended at start (exit status 3)", "first line | ERROR no database port=5432", "dying.log"}},
		"never answers": {func(t *testing.T) Spec {
			spec := child("silent", "silent", address(t))
			spec.Patience = 100 * time.Millisecond
			return spec
		}, []string{"silent does not answer after 100ms"}},
		"no such program": {func(t *testing.T) Spec {
			spec := child("missing", "silent", "")
			spec.Path = "/nonexistent/program"
			return spec
		}, []string{"missing cannot be started", "/nonexistent/program"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _, _ := newSupervisor(t)
			_, err := s.Start(t.Context(), c.spec(t))
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
		})
	}
}

// If a child ends because the disk is full, the caller can recognize that by the error.
func TestStartWithoutRoom(t *testing.T) {
	t.Parallel()
	for mode, noRoom := range map[string]bool{"full": true, "short": true, "small": false, "dying": false} {
		s, _, _ := newSupervisor(t)
		if _, err := s.Start(t.Context(), child(mode, mode, address(t))); err == nil || errors.Is(err, syscall.ENOSPC) != noRoom {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

func TestKilledChildIsStartedAgain(t *testing.T) {
	t.Parallel()
	s, out, _ := newSupervisor(t)
	at := address(t)
	p, err := s.Start(t.Context(), child("worker", "polite", at))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	first, err := ask(at)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		second, err := ask(at)
		if err == nil && second == first {
			return fmt.Errorf("process %d still answers", first)
		}
		return err
	})
	s.console.Flush()
	if want := "worker ended (signal: killed)"; !strings.Contains(out.String(), want) {
		t.Errorf("console %q lacks %q", out.String(), want)
	}
}

func TestStubbornChildIsKilledAfterItsGrace(t *testing.T) {
	t.Parallel()
	s, out, _ := newSupervisor(t)
	at := address(t)
	spec := child("stubborn", "stubborn", at)
	spec.Grace = 50 * time.Millisecond
	p, err := s.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	p.Stop()
	if _, err := ask(at); err == nil {
		t.Error("still answers")
	}
	s.console.Flush()
	if !strings.Contains(out.String(), "stubborn did not end within 50ms; killing it") {
		t.Errorf("console says %q", out.String())
	}
}

// A requested new run starts beside the former one, which finishes what it has begun.
func TestRenewedChildFinishesWhatItHasBegun(t *testing.T) {
	t.Parallel()
	s, _, dir := newSupervisor(t)
	at, renew, hold := address(t), make(chan string), filepath.Join(t.TempDir(), "hold")
	if err := os.WriteFile(hold, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	spec := child("gateway", "draining", at)
	spec.Env = append(spec.Env, "HOLD="+hold)
	spec.Renew, spec.Drain = renew, time.Minute
	p, err := s.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	first, err := ask(at)
	if err != nil {
		t.Fatal(err)
	}
	renew <- "another disk"
	second := 0
	eventually(t, func() (err error) {
		if second, err = ask(at); err == nil && second == first {
			return errors.New("it still answers itself")
		}
		return err
	})
	if _, alive := startTime(first); second == first || !alive {
		t.Errorf("process %d answers; the one before, %d, lives on: %v", second, first, alive)
	}
	name := fmt.Sprintf("gateway before %d", first)
	listed := func() string {
		raw, err := os.ReadFile(filepath.Join(dir, "processes.json"))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if got := listed(); !strings.Contains(got, name) || !strings.Contains(got, fmt.Sprintf(`"gateway":{"pid":%d,`, second)) {
		t.Errorf("the next start would know of %s", got)
	}
	if err := os.Remove(hold); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if got := listed(); strings.Contains(got, name) {
			return fmt.Errorf("still listed: %s", got)
		}
		return nil
	})
	if again, err := ask(at); err != nil || again != second {
		t.Errorf("process %d answers, want %d: %v", again, second, err)
	}
	p.Stop()
	if got := listed(); got != "{}" {
		t.Errorf("left: %s", got)
	}
}

// Stopping the child also waits for the former run, which gets its grace time.
func TestStopEndsWhatWasRenewed(t *testing.T) {
	t.Parallel()
	s, _, dir := newSupervisor(t)
	at, renew, hold := address(t), make(chan string), filepath.Join(t.TempDir(), "hold")
	if err := os.WriteFile(hold, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	spec := child("gateway", "draining", at)
	spec.Env = append(spec.Env, "HOLD="+hold)
	spec.Renew, spec.Drain, spec.Grace = renew, time.Hour, time.Second
	p, err := s.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	first, err := ask(at)
	if err != nil {
		t.Fatal(err)
	}
	renew <- "another disk"
	eventually(t, func() error {
		if pid, err := ask(at); err != nil || pid == first {
			return fmt.Errorf("process %d answers: %v", pid, err)
		}
		return nil
	})
	p.Stop()
	if _, alive := startTime(first); alive {
		t.Error("the life before goes on")
	}
	if raw, err := os.ReadFile(filepath.Join(dir, "processes.json")); err != nil || string(raw) != "{}" {
		t.Errorf("left: %s, %v", raw, err)
	}
}

func TestRunOnce(t *testing.T) {
	t.Parallel()
	s, _, dir := newSupervisor(t)
	if err := s.RunOnce(t.Context(), child("once", "once", "")); err != nil {
		t.Fatal(err)
	}
	logged(t, filepath.Join(dir, "log", "once.log"), "done")
	err := s.RunOnce(t.Context(), child("migrate", "dying", ""))
	if err == nil || !strings.Contains(err.Error(), "no database") {
		t.Errorf("got %v, want the last line of the log", err)
	}
}

func TestChildrenDieWithAKilledSupervisor(t *testing.T) {
	t.Parallel()
	dir, at := t.TempDir(), address(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = []string{"CHILD=supervisor", "DIR=" + dir, "ADDRESS=" + at, "GORACE=" + os.Getenv("GORACE")}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "started\n" {
		t.Fatalf("supervisor says %q, %v", line, err)
	}
	pid, err := ask(at)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the supervisor was not killed")
	}
	eventually(t, func() error {
		if _, alive := startTime(pid); alive {
			return fmt.Errorf("child %d outlives its supervisor", pid)
		}
		return nil
	})
	s, err := New(t.Context(), dir, NewConsole(io.Discard))
	if err != nil {
		t.Fatalf("a start after the kill: %v", err)
	}
	s.Close()
}

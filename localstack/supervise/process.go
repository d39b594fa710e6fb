package supervise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/longbox/longbox/localstack/account"
)

// Environment returns the environment of a third-party server, without the user's settings for other ones (PG…).
func Environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "TZ=UTC"}
}

// Spec describes one child.
type Spec struct {
	Name    string // For messages, and the name of the log file.
	Path    string
	Args    []string
	Env     []string
	Dir     string
	Account account.Account
	// ReadAll gives the child the capability to read every file (see account).
	ReadAll bool
	// Quiet keeps its warnings off the console, for servers with their own log format.
	Quiet bool
	// Nice is the child's nice value, 0 (none) to 19: it yields to others when the CPUs are busy.
	Nice int
	// Stop is the signal that ends it gracefully. After Grace it is killed.
	Stop  syscall.Signal
	Grace time.Duration
	// Orphan is the signal that the kernel sends it when the supervisor dies.
	Orphan syscall.Signal
	// Ready is called every 20 ms until it returns nil, for at most Patience.
	Ready    func(context.Context) error
	Patience time.Duration
	// Renew requests a restart of a running child, with the reason. With Drain, the old run may finish its work for
	// that long while the new one takes new work. Without it, the old run ends first.
	Renew <-chan string
	Drain time.Duration
}

// Process is a child that is kept running until it is stopped.
type Process struct {
	spec Spec
	s    *Supervisor
	log  *logFile

	stop    chan struct{} // Closed by Stop.
	once    sync.Once
	stopped chan struct{}  // Closed when the child is gone permanently.
	retired sync.WaitGroup // Old runs that are finishing their work.
}

// run is one run of a child.
type run struct {
	cmd  *exec.Cmd
	note entry // In the ledger.
	tail *tail
	done chan struct{} // Closed after err is set and the output is written.
	err  error
}

// Start starts a child and waits until it is ready. From then on it is restarted whenever it ends. If it ends before,
// or is not ready in time, the error contains the last lines of its log.
func (s *Supervisor) Start(ctx context.Context, spec Spec) (*Process, error) {
	log, err := openLog(filepath.Join(s.logDir, spec.Name+".log"))
	if err != nil {
		return nil, err
	}
	p := &Process{spec: spec, s: s, log: log, stop: make(chan struct{}), stopped: make(chan struct{})}
	r, err := p.start()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	if err := p.await(ctx, r); err != nil {
		p.end(r)
		return nil, errors.Join(err, log.Close())
	}
	go p.keep(r)
	return p, nil
}

// RunOnce starts a child and waits for its end. If it fails, the error contains the last lines of its log.
func (s *Supervisor) RunOnce(ctx context.Context, spec Spec) (err error) {
	log, err := openLog(filepath.Join(s.logDir, spec.Name+".log"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	p := &Process{spec: spec, s: s, log: log}
	r, err := p.start()
	if err != nil {
		return err
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		p.end(r)
		return ctx.Err()
	}
	if err := s.ledger.remove(spec.Name); err != nil {
		return err
	}
	if r.err != nil {
		return p.failure("failed", r)
	}
	return nil
}

// start begins one run.
func (p *Process) start() (*run, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.spec.Name, err)
	}
	cmd := p.spec.Account.Command(p.spec.ReadAll, p.spec.Dir, p.spec.Path, p.spec.Args...)
	cmd.Env = p.spec.Env
	cmd.Stdout, cmd.Stderr = in, in
	cmd.SysProcAttr.Pdeathsig = p.spec.Orphan
	err = p.s.onStarter(cmd.Start)
	in.Close() // The child has its own copy.
	if err != nil {
		out.Close()
		return nil, fmt.Errorf("%s cannot be started: %w", p.spec.Name, err)
	}
	r := &run{cmd: cmd, tail: &tail{}, done: make(chan struct{})}
	if err := lower(cmd.Process.Pid, p.spec.Nice); err != nil {
		p.s.console.Say("Longbox: cannot lower the priority of %s: %v", p.spec.Name, err)
	}
	start, _ := startTime(cmd.Process.Pid) // Not found: it has already ended, and the entry matches nothing.
	r.note = entry{PID: cmd.Process.Pid, Start: start, Stop: p.spec.Stop}
	p.s.noted(p.s.ledger.set(p.spec.Name, r.note))
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		copyLines(out, func(line []byte) { p.line(r, line) })
	}()
	go func() {
		r.err = cmd.Wait()
		select { // Wait for its last output, unless a grandchild holds the pipe open.
		case <-copied:
		case <-time.After(time.Second):
		}
		out.Close()
		close(r.done)
	}()
	return r, nil
}

// lower sets the nice value of a process and its children. On Linux the value belongs to each thread and is inherited
// from its creator: a second pass finds threads created during the first. Where Linux schedules by session, it only
// counts within the process's session, so the session gets it too.
func lower(pid, nice int) error {
	if nice == 0 {
		return nil
	}
	refused := lowerSession(pid, nice)
	for range 2 {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return err
		}
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil {
				return err
			}
			if err := syscall.Setpriority(syscall.PRIO_PROCESS, id, nice); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
	}
	return refused
}

// lowerSession sets the nice value of the session that a process leads (sched(7), "The autogroup feature"). The kernel
// accepts one such change per tenth of a second, whoever makes it.
func lowerSession(pid, nice int) error {
	for try := 1; ; try++ {
		err := os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte(strconv.Itoa(nice)), 0)
		switch {
		// The kernel has no autogroup, or the process has ended.
		case err == nil, errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ESRCH):
			return nil
		case !errors.Is(err, syscall.EAGAIN), try == 10:
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (p *Process) line(r *run, line []byte) {
	show := r.tail.add(string(line))
	// A full disk must not stop the child. The console still shows what matters.
	_, _ = p.log.Write(line)
	if show && !p.spec.Quiet {
		p.s.console.child(p.spec.Name, line)
	}
}

// await waits until the child is ready.
func (p *Process) await(ctx context.Context, r *run) error {
	if p.spec.Ready == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.spec.Patience)
	defer cancel()
	go func() { // The end of the child ends the wait.
		select {
		case <-r.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	slow := time.AfterFunc(3*time.Second, func() { p.s.console.Say("Longbox: waiting for %s", p.spec.Name) })
	defer slow.Stop()
	err := poll(ctx, p.spec.Ready)
	select {
	case <-r.done:
		return p.failure("ended at start", r)
	default:
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s does not answer after %v (%w); its last output: %s (the whole log is in %s)",
			p.spec.Name, p.spec.Patience, err, cmp.Or(r.tail.String(), "nothing"), p.log.path)
	}
	return err
}

func (p *Process) failure(what string, r *run) error {
	err := fmt.Errorf("%s %s (%s): %s (the whole log is in %s)", p.spec.Name, what, state(r.err), cmp.Or(r.tail.String(), "it wrote no reason"), p.log.path)
	if r.tail.noSpace() {
		return full{err}
	}
	return err
}

// full is the error of a child whose disk is full.
type full struct{ error }

// Is makes it match syscall.ENOSPC.
func (full) Is(target error) bool { return target == syscall.ENOSPC }

func state(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// end stops one run: gracefully, then, after the grace period, by force together with its whole process group.
func (p *Process) end(r *run) {
	p.finish(r)
	p.s.noted(p.s.ledger.remove(p.spec.Name))
}

// finish does the same for a run that is no longer in the ledger.
func (p *Process) finish(r *run) {
	select {
	case <-r.done:
	default:
		_ = r.cmd.Process.Signal(p.spec.Stop) // An error means that it has ended, which the wait below notices.
		select {
		case <-r.done:
		case <-time.After(p.spec.Grace):
			p.s.console.Say("Longbox: %s did not end within %v; killing it", p.spec.Name, p.spec.Grace)
			_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL)
			<-r.done
		}
	}
}

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

// Environment is that of a server that is not ours: settings that the user has for other ones (PG…) are kept away.
func Environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "TZ=UTC"}
}

// Spec describes one child.
type Spec struct {
	Name    string // In messages, and the name of the log file.
	Path    string
	Args    []string
	Env     []string
	Dir     string
	Account account.Account
	// ReadAll gives the child the capability to read every file (see account).
	ReadAll bool
	// Quiet keeps its warnings off the console: servers with logs of their own format.
	Quiet bool
	// Nice makes the child give way to others while processors are short: 0 (none) to 19.
	Nice int
	// Stop is the signal that ends it gracefully; after Grace it is killed.
	Stop  syscall.Signal
	Grace time.Duration
	// Orphan is the signal the kernel sends it when the supervisor dies.
	Orphan syscall.Signal
	// Ready is asked every 20 ms, for at most Patience, until it returns nil.
	Ready    func(context.Context) error
	Patience time.Duration
	// Renew asks for a new life of a child that runs, and says why. For Drain the life before may go on with what it has
	// begun, while the new one takes what is new; without, it ends first.
	Renew <-chan string
	Drain time.Duration
}

// Process is one child that is kept running until it is stopped.
type Process struct {
	spec Spec
	s    *Supervisor
	log  *logFile

	stop    chan struct{} // Closed by Stop.
	once    sync.Once
	stopped chan struct{}  // Closed when the child is gone for good.
	retired sync.WaitGroup // Lives that go on with what they have begun.
}

// run is one life of a child.
type run struct {
	cmd  *exec.Cmd
	note entry // In the ledger.
	tail *tail
	done chan struct{} // Closed after err is set and the output is written.
	err  error
}

// Start starts a child and waits until it is ready; from then on it is started again whenever it ends.
// A child that ends before, or is not ready in time, is an error that holds the last lines of its log.
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

// RunOnce starts a child, waits for its end and returns an error with the last lines of its log unless it succeeded.
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

// start begins one life.
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
		p.s.console.Say("Longbox: %s runs with the priority of the others: %v", p.spec.Name, err)
	}
	start, _ := startTime(cmd.Process.Pid) // Not found: it has ended already, and the entry matches nothing.
	r.note = entry{PID: cmd.Process.Pid, Start: start, Stop: p.spec.Stop}
	p.s.noted(p.s.ledger.set(p.spec.Name, r.note))
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		copyLines(out, func(line []byte) { p.line(r, line) })
	}()
	go func() {
		r.err = cmd.Wait()
		select { // What it wrote last, unless a grandchild holds the pipe open.
		case <-copied:
		case <-time.After(time.Second):
		}
		out.Close()
		close(r.done)
	}()
	return r, nil
}

// lower gives a process and what it starts the nice value. On Linux that is each thread's own, inherited from the one
// that makes it: a second look finds those made during the first. It counts within the process's session alone where
// Linux shares the processors out by session, so that the session has it too.
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

// lowerSession gives the session that a process leads the nice value (sched(7), "The autogroup feature"). The kernel
// takes one such value in a tenth of a second, whoever sends it.
func lowerSession(pid, nice int) error {
	for try := 1; ; try++ {
		err := os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte(strconv.Itoa(nice)), 0)
		switch {
		case err == nil, errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ESRCH): // a kernel without it, or the process has ended
			return nil
		case !errors.Is(err, syscall.EAGAIN), try == 10:
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (p *Process) line(r *run, line []byte) {
	show := r.tail.add(string(line))
	// A full disk must not stop the child, and the console still shows what matters.
	_, _ = p.log.Write(line)
	if show && !p.spec.Quiet {
		p.s.console.child(p.spec.Name, line)
	}
}

// await waits until the child answers.
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
		return fmt.Errorf("%s does not answer after %v (%w); it said last: %s (all of it is in %s)", p.spec.Name, p.spec.Patience, err, cmp.Or(r.tail.String(), "nothing"), p.log.path)
	}
	return err
}

func (p *Process) failure(what string, r *run) error {
	err := fmt.Errorf("%s %s (%s): %s (all of it is in %s)", p.spec.Name, what, state(r.err), cmp.Or(r.tail.String(), "it did not say why"), p.log.path)
	if r.tail.noSpace() {
		return full{err}
	}
	return err
}

// full is the error of a child that the disk has no room for.
type full struct{ error }

// Is lets it count as syscall.ENOSPC.
func (full) Is(target error) bool { return target == syscall.ENOSPC }

func state(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// end stops one life: gracefully, then, after the grace, by force together with its whole process group.
func (p *Process) end(r *run) {
	p.finish(r)
	p.s.noted(p.s.ledger.remove(p.spec.Name))
}

// finish does that for a life that has left its place in the list of the living.
func (p *Process) finish(r *run) {
	select {
	case <-r.done:
	default:
		_ = r.cmd.Process.Signal(p.spec.Stop) // An error means that it has ended, which the wait below sees.
		select {
		case <-r.done:
		case <-time.After(p.spec.Grace):
			p.s.console.Say("Longbox: %s did not end within %v and is killed", p.spec.Name, p.spec.Grace)
			_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL)
			<-r.done
		}
	}
}

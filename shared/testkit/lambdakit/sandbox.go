package lambdakit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Program is a function as it is deployed.
type Program struct {
	Name    string
	Path    string        // of the built program
	Root    string        // root folder of the process, which contains Path; "": this machine's
	Env     []string      // NAME=value; the environment of this process is not passed on
	Timeout time.Duration // per invocation; zero: 30 s
	Output  io.Writer     // output of the program; nil discards it
	Thawed  bool          // keep the process running between invocations
}

// Sandbox is one process of a function. It handles one invocation at a time.
type Sandbox struct {
	Init time.Duration // from the start of the process to its first request for an invocation

	program Program
	process *exec.Cmd
	server  *http.Server
	work    chan *invocation
	asked   chan struct{} // the process waits for work
	failed  chan error    // the process reports that it cannot start
	ended   chan struct{} // the process has ended
	waitErr error

	mu      sync.Mutex
	current *invocation
	count   int
}

// invocation is one payload and its result.
type invocation struct {
	id       string
	payload  []byte
	deadline time.Time
	answer   chan answer
}

type answer struct {
	body   io.Reader // read to its end before the process gets its response
	header http.Header
	fault  *Fault
	done   chan struct{} // closed when body is no longer read
	// trailer returns the trailer, once the body was read.
	trailer func() http.Header
}

// initPatience is Lambda's time limit for the first request.
const initPatience = 10 * time.Second

// Start starts a process and waits until it requests an invocation.
func Start(ctx context.Context, p Program) (*Sandbox, error) {
	if p.Timeout == 0 {
		p.Timeout = 30 * time.Second
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Sandbox{program: p, work: make(chan *invocation), asked: make(chan struct{}, 1), failed: make(chan error, 1), ended: make(chan struct{})}
	mux := http.NewServeMux()
	const base = "/2018-06-01/runtime/"
	mux.HandleFunc("GET "+base+"invocation/next", s.next)
	mux.HandleFunc("POST "+base+"invocation/{id}/response", s.response)
	mux.HandleFunc("POST "+base+"invocation/{id}/error", s.error)
	mux.HandleFunc("POST "+base+"init/error", s.initError)
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.server.Serve(l) }() // ends with Close
	s.process = exec.Command(p.Path)
	s.process.Env = append([]string{"AWS_LAMBDA_RUNTIME_API=" + l.Addr().String(), "AWS_LAMBDA_FUNCTION_NAME=" + p.Name,
		"AWS_LAMBDA_FUNCTION_VERSION=$LATEST", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=1024", "_HANDLER=bootstrap", "LAMBDA_TASK_ROOT=/var/task",
		"AWS_LAMBDA_INITIALIZATION_TYPE=on-demand", "PATH=" + os.Getenv("PATH"), "TZ=:UTC"}, p.Env...)
	s.process.Stdout, s.process.Stderr = p.Output, p.Output
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Chroot: p.Root}
	began := time.Now()
	if err := s.process.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", p.Name, err), s.server.Close())
	}
	go func() {
		s.waitErr = s.process.Wait()
		close(s.ended)
	}()
	select {
	case <-s.asked:
		s.Init = time.Since(began)
		s.freeze()
		return s, nil
	case err = <-s.failed:
	case <-s.ended:
		err = fmt.Errorf("it ended before its first invocation: %w", cause(s.waitErr))
	case <-time.After(initPatience):
		err = fmt.Errorf("no question for an invocation in %s", initPatience)
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.Close()
	return nil, fmt.Errorf("%s: init: %w", p.Name, err)
}

func cause(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// PID returns the process id.
func (s *Sandbox) PID() int { return s.process.Process.Pid }

// Alive reports whether the process can take another invocation.
func (s *Sandbox) Alive() bool {
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// Close ends the process.
func (s *Sandbox) Close() {
	_ = s.process.Process.Kill() // an error means that it has ended
	<-s.ended
	_ = s.server.Close() // closes listeners and connections; errors do not matter
}

func (s *Sandbox) freeze() { s.signal(syscall.SIGSTOP) }
func (s *Sandbox) thaw()   { s.signal(syscall.SIGCONT) }

func (s *Sandbox) signal(sig syscall.Signal) {
	if !s.program.Thawed {
		_ = s.process.Process.Signal(sig) // an error means that it has ended
	}
}

// next blocks until there is an invocation. A request for the next one completes the previous one.
func (s *Sandbox) next(w http.ResponseWriter, r *http.Request) {
	select {
	case s.asked <- struct{}{}:
	default:
		http.Error(w, "asked twice", http.StatusConflict)
		return
	}
	select {
	case v := <-s.work:
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Lambda-Runtime-Aws-Request-Id", v.id)
		h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(v.deadline.UnixMilli(), 10))
		h.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:eu-central-1:123456789012:function:"+s.program.Name)
		h.Set("Lambda-Runtime-Trace-Id", "Root=1-00000000-000000000000000000000000;Sampled=0")
		_, _ = w.Write(v.payload) // the end of the process shows that it is gone
	case <-r.Context().Done():
	}
}

// take returns the invocation with the id in the path, if it still waits for its response.
func (s *Sandbox) take(w http.ResponseWriter, r *http.Request) *invocation {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.current
	if v == nil || v.id != r.PathValue("id") {
		http.Error(w, `{"errorType":"InvalidRequestID","errorMessage":"no such invocation"}`, http.StatusBadRequest)
		return nil
	}
	s.current = nil
	return v
}

func (s *Sandbox) response(w http.ResponseWriter, r *http.Request) {
	if v := s.take(w, r); v != nil {
		a := answer{body: r.Body, header: r.Header, done: make(chan struct{}), trailer: func() http.Header { return r.Trailer }}
		v.answer <- a
		<-a.done
		w.WriteHeader(http.StatusAccepted)
	}
}

func (s *Sandbox) error(w http.ResponseWriter, r *http.Request) {
	if v := s.take(w, r); v != nil {
		v.answer <- answer{fault: readFault(r.Body)}
		w.WriteHeader(http.StatusAccepted)
	}
}

func (s *Sandbox) initError(w http.ResponseWriter, r *http.Request) {
	select {
	case s.failed <- readFault(r.Body):
	default:
	}
	w.WriteHeader(http.StatusAccepted)
}

// Fault is an error that a function reports instead of a response.
type Fault struct {
	Type    string `json:"errorType"`
	Message string `json:"errorMessage"`
}

func (f *Fault) Error() string { return f.Type + ": " + f.Message }

func readFault(r io.Reader) *Fault {
	f := &Fault{}
	if err := json.NewDecoder(io.LimitReader(r, 1<<20)).Decode(f); err != nil {
		f = &Fault{Type: "Runtime.Unreadable", Message: err.Error()}
	}
	return f
}

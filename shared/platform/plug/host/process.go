package host

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/platform/plug"
)

// Limits of a process's output and input.
const (
	maxLine     = 1 << 20   // bytes per message
	maxOutput   = 100 << 20 // bytes in total
	worn        = 50 << 20  // bytes after which the process is replaced
	maxManifest = 256 << 10
	maxUnread   = 1024    // messages that the process has not read
	maxWaiting  = 8 << 20 // total bytes of these
	maxEarly    = 16      // requests of the process before its first call
	farewell    = 5 * time.Second
	startTime   = 2 * time.Minute // npx and uvx first download the program
)

// process is a running plugin.
type process struct {
	cmd      *exec.Cmd
	manifest json.RawMessage
	out      chan []byte   // lines to send
	ended    chan struct{} // closed when the process has ended; why then says how
	said     stderr
	taken    atomic.Int64 // bytes read from the process
	unread   atomic.Int64 // bytes still to be sent
	dying    atomic.Bool

	serving chan struct{} // holds one token: for the caller whose desk is open

	mu      sync.Mutex
	why     *plug.Fault
	reaped  bool // the process id may belong to another process
	next    int64
	waiting map[int64]chan message
	desk    *desk     // nil: the process may request nothing now
	greeted bool      // it is initialized
	served  bool      // it has had a call
	early   []message // its requests between these two
}

// message is a JSON-RPC message of any kind.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

const (
	methodNotFound = -32601 // JSON-RPC code
	rateLimited    = -32001 // code of the plugin protocol
)

// start runs a plugin and initializes it, within startTime and before ctx ends.
func start(ctx context.Context, cmd *exec.Cmd, s *plug.Start, init map[string]any) (*process, *plug.Fault) {
	p := &process{cmd: cmd, out: make(chan []byte, maxUnread), ended: make(chan struct{}), serving: make(chan struct{}, 1), waiting: map[int64]chan message{}}
	p.said.log = slog.With("plugin", s.Name, "tenant", s.Tenant)
	if err := p.launch(); err != nil {
		return nil, plug.Failed(plug.SpawnFailed, "The plugin cannot be started: %v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	result, fault := p.ask(ctx, "initialize", init)
	if fault == nil {
		fault = checkManifest(result)
	}
	if fault != nil {
		p.kill()
		if fault.Code == plug.RPCFailed {
			fault = plug.Failed(plug.InitFailed, "The plugin failed to initialize: %s", fault.Message)
		}
		return nil, fault
	}
	p.manifest = result
	return p, nil
}

// checkManifest returns why the response to initialize is not a usable manifest, or nil.
func checkManifest(data json.RawMessage) *plug.Fault {
	var m struct {
		Name            string
		ProtocolVersion string
		Capabilities    *json.RawMessage
	}
	switch err := json.Unmarshal(data, &m); {
	case len(data) > maxManifest:
		return plug.Failed(plug.InitFailed, "The plugin's manifest is larger than %d bytes", maxManifest)
	case err != nil:
		return plug.Failed(plug.InitFailed, "The plugin's manifest is not valid: %v", err)
	case m.Name == "" || m.Capabilities == nil:
		return plug.Failed(plug.InitFailed, "The plugin's manifest must have a name and capabilities")
	case m.ProtocolVersion != "1" && !strings.HasPrefix(m.ProtocolVersion, "1."):
		return plug.Failed(plug.InitFailed, "The plugin speaks version %q of the protocol, Longbox speaks 1", m.ProtocolVersion)
	}
	return nil
}

// spawner is a permanent thread: the kernel kills a child when the thread that started it ends (prctl(2),
// PR_SET_PDEATHSIG).
var spawner = sync.OnceValue(func() chan<- func() {
	jobs := make(chan func())
	go func() {
		runtime.LockOSThread()
		for job := range jobs {
			job()
		}
	}()
	return jobs
})

// launch starts the process and the goroutines for its pipes. The pipes are files, so that the end of the process is
// noticed even if its children hold them open.
func (p *process) launch() error {
	in, say, err := os.Pipe()
	if err != nil {
		return err
	}
	hear, out, err := os.Pipe()
	if err != nil {
		return errors.Join(err, in.Close(), say.Close())
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = in, out, &p.said
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.cmd.WaitDelay = time.Second
	done := make(chan error, 1)
	spawner() <- func() { done <- p.cmd.Start() }
	err = <-done
	in.Close()
	out.Close()
	if err != nil {
		return errors.Join(err, say.Close(), hear.Close())
	}
	// When memory runs out, the kernel should kill plugins first.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", p.cmd.Process.Pid), []byte("1000"), 0) // not on all systems
	heard := make(chan struct{})
	go p.speak(say)
	go func() {
		p.listen(hear)
		close(heard)
	}()
	go p.finish(say, hear, heard)
	return nil
}

// ask sends a request and waits for its response. A process that does not answer in time is ended, and its other
// callers get the same error. A caller that leaves earlier does not end it.
func (p *process) ask(ctx context.Context, method string, params any) (json.RawMessage, *plug.Fault) {
	body, err := json.Marshal(params)
	if err != nil {
		return nil, plug.Failed(plug.RPCFailed, "The parameters of %s cannot be written: %v", method, err)
	}
	if string(body) == "null" {
		body = nil
	}
	answer := make(chan message, 1)
	p.mu.Lock()
	p.next++
	id := p.next
	p.waiting[id] = answer
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.waiting, id)
		p.mu.Unlock()
	}()
	p.send(message{ID: json.RawMessage(fmt.Sprint(id)), Method: method, Params: body})
	select {
	case m := <-answer:
		return result(m)
	case <-p.ended:
		select {
		case m := <-answer: // its last response
			return result(m)
		default:
			return nil, p.why
		}
	case <-ctx.Done():
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, plug.Failed(plug.Unavailable, "The request was cancelled before the plugin answered")
		}
		p.said.log.Warn("plugin stopped: it did not answer in time", "method", method)
		p.end(plug.Failed(plug.Unavailable, "The plugin was stopped because it did not answer another request in time; try again"))
		return nil, plug.Failed(plug.TimedOut, "The plugin did not answer %s in time and was stopped", method)
	}
}

// result returns the content of a response.
func result(m message) (json.RawMessage, *plug.Fault) {
	if m.Error == nil {
		return m.Result, nil
	}
	f := plug.Failed(plug.RPCFailed, "%s", cut.Brief(m.Error.Message, 1000))
	f.RPC = m.Error.Code
	if f.RPC == rateLimited {
		var data struct{ RetryAfterSeconds float64 }
		_ = json.Unmarshal(m.Error.Data, &data) // the delay is optional
		f.Code, f.RetryAfter = plug.Limited, int(min(max(data.RetryAfterSeconds, 0), 3600))
	}
	if f.Message == "" {
		f.Message = fmt.Sprintf("The plugin answers with the error %d and no message", f.RPC)
	}
	return nil, f
}

// send queues a message. A process that leaves too many unread is ended.
func (p *process) send(m message) {
	m.Version = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		p.fail("a message to it cannot be encoded: " + err.Error())
		return
	}
	line = append(line, '\n')
	if p.unread.Add(int64(len(line))) <= maxWaiting {
		select {
		case p.out <- line:
			return
		default:
		}
	}
	p.fail("it does not read its input")
}

// speak writes messages until the process has ended.
func (p *process) speak(to io.Writer) {
	for {
		select {
		case line := <-p.out:
			p.unread.Add(-int64(len(line)))
			_, _ = to.Write(line) // a broken pipe means that the process ended, which finish notices
		case <-p.ended:
			return
		}
	}
}

// listen reads messages of the process until its output ends.
func (p *process) listen(from io.Reader) {
	limited := &io.LimitedReader{R: from, N: maxOutput}
	in := bufio.NewScanner(limited)
	in.Buffer(make([]byte, 0, 64<<10), maxLine)
	for in.Scan() {
		p.taken.Store(maxOutput - limited.N)
		line := bytes.TrimSpace(in.Bytes())
		if len(line) == 0 {
			continue
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil || m.Version != "2.0" {
			p.fail(fmt.Sprintf("it wrote a line that is not a JSON-RPC 2.0 message: %s", cut.Brief(string(line), 200)))
			return
		}
		p.take(m)
	}
	switch {
	case errors.Is(in.Err(), bufio.ErrTooLong):
		p.fail(fmt.Sprintf("it wrote a line of more than %d bytes", maxLine))
	case limited.N == 0:
		p.fail(fmt.Sprintf("it wrote more than %d bytes", maxOutput))
	}
}

// take passes a response to its caller, and answers a request.
func (p *process) take(m message) {
	if m.Method != "" {
		asks := len(m.ID) > 0 && string(m.ID) != "null"
		p.mu.Lock()
		if asks && p.greeted && !p.served && len(p.early) < maxEarly {
			p.early = append(p.early, m)
			p.mu.Unlock()
			return
		}
		write := p.desk.answer(m)
		p.mu.Unlock()
		if asks {
			p.send(write())
		}
		return
	}
	var id int64
	if json.Unmarshal(m.ID, &id) != nil {
		return
	}
	p.mu.Lock()
	answer := p.waiting[id]
	delete(p.waiting, id)
	p.greeted = p.greeted || answer != nil // initialize is the first request
	p.mu.Unlock()
	if answer != nil {
		answer <- m
	}
}

// fail ends the process because of what it did.
func (p *process) fail(what string) {
	p.end(plug.Failed(plug.ProcessEnded, "The plugin was stopped: %s", what))
}

// end ends the process and records why, unless a reason is recorded.
func (p *process) end(why *plug.Fault) {
	p.mu.Lock()
	if p.why == nil {
		p.why = why
	}
	p.mu.Unlock()
	p.kill()
}

// finish waits for the end of the process and of its output, then tells all callers.
func (p *process) finish(say, hear *os.File, heard <-chan struct{}) {
	for { // kills its process group while its process id is still its own
		if err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	p.kill()
	p.mu.Lock()
	p.reaped = true
	p.mu.Unlock()
	err := p.cmd.Wait()
	p.said.flush()
	_ = hear.SetReadDeadline(time.Now().Add(time.Second)) // its children may hold its output open
	<-heard
	p.mu.Lock()
	if p.why == nil {
		state := "it has ended"
		if err != nil {
			state = err.Error()
		}
		if last := p.said.last(); last != "" {
			state += ": " + last
		}
		p.why = plug.Failed(plug.ProcessEnded, "The plugin has stopped (%s)", state)
	}
	p.mu.Unlock()
	close(p.ended)
	say.Close()
	hear.Close()
}

// kill kills the process and its group.
func (p *process) kill() {
	p.dying.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may just have ended by itself
	}
}

// stop asks the process to exit, and kills it if it does not.
func (p *process) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	_, _ = p.ask(ctx, "shutdown", nil) // it ends whatever it answers
	select {
	case <-p.ended:
	case <-ctx.Done():
	}
	p.kill()
	<-p.ended
}

// gone reports whether the process has ended, or is about to.
func (p *process) gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return p.dying.Load()
	}
}

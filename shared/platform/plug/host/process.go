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

// Bounds of what a process says, and is told.
const (
	maxLine     = 1 << 20   // bytes of one message
	maxOutput   = 100 << 20 // bytes of all of them
	worn        = 50 << 20  // then another process takes its place
	maxManifest = 256 << 10
	maxUnread   = 1024    // messages that it has not read
	maxWaiting  = 8 << 20 // bytes of them
	maxEarly    = 16      // requests of it before it serves a call
	farewell    = 5 * time.Second
	startTime   = 2 * time.Minute // npx and uvx fetch what they run first
)

// process is a plugin that runs.
type process struct {
	cmd      *exec.Cmd
	manifest json.RawMessage
	out      chan []byte   // lines for it
	ended    chan struct{} // closed when it has ended; then why says how
	said     stderr
	taken    atomic.Int64 // bytes that it has said
	unread   atomic.Int64 // bytes that are to be told to it
	dying    atomic.Bool

	serving chan struct{} // holds one: for whom of those who ask the desk is open

	mu      sync.Mutex
	why     *plug.Fault
	reaped  bool // its number may be somebody else's
	next    int64
	waiting map[int64]chan message
	desk    *desk     // nil: the process may ask for nothing now
	greeted bool      // it has initialized
	served  bool      // a call
	early   []message // requests of it in between
}

// message is one of JSON-RPC, of any kind.
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
	methodNotFound = -32601 // of JSON-RPC
	rateLimited    = -32001 // of the plugins' protocol
)

// start runs a plugin and lets it initialize, within startTime and before ctx ends.
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
			fault = plug.Failed(plug.InitFailed, "The plugin does not initialize: %s", fault.Message)
		}
		return nil, fault
	}
	p.manifest = result
	return p, nil
}

// checkManifest tells what keeps an answer to initialize from being a manifest that Longbox can work with.
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
		return plug.Failed(plug.InitFailed, "The plugin's manifest is none: %v", err)
	case m.Name == "" || m.Capabilities == nil:
		return plug.Failed(plug.InitFailed, "The plugin's manifest must have a name and capabilities")
	case m.ProtocolVersion != "1" && !strings.HasPrefix(m.ProtocolVersion, "1."):
		return plug.Failed(plug.InitFailed, "The plugin speaks version %q of the protocol, Longbox speaks 1", m.ProtocolVersion)
	}
	return nil
}

// spawner is a thread that stays: the kernel ends a child with the thread that has started it (prctl(2),
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

// launch starts the process and those who listen and speak to it. Its pipes are files, so that its own end is seen also
// where something that it has started holds them open.
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
	// Where memory runs out, plugins go first.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", p.cmd.Process.Pid), []byte("1000"), 0) // not everywhere
	heard := make(chan struct{})
	go p.speak(say)
	go func() {
		p.listen(hear)
		close(heard)
	}()
	go p.finish(say, hear, heard)
	return nil
}

// ask sends a request and waits for its answer. A process that has not answered when the time is over is ended, and who
// else waits for it is told so; who leaves before only leaves.
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
		case m := <-answer: // its last word
			return result(m)
		default:
			return nil, p.why
		}
	case <-ctx.Done():
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, plug.Failed(plug.Unavailable, "Nobody waits for the answer of the plugin any more")
		}
		p.end(plug.Failed(plug.Unavailable, "The plugin was ended, because it did not answer another request in time; try again"))
		return nil, plug.Failed(plug.TimedOut, "The plugin has not answered %s in time and was ended", method)
	}
}

// result is what an answer says.
func result(m message) (json.RawMessage, *plug.Fault) {
	if m.Error == nil {
		return m.Result, nil
	}
	f := plug.Failed(plug.RPCFailed, "%s", cut.Brief(m.Error.Message, 1000))
	f.RPC = m.Error.Code
	if f.RPC == rateLimited {
		var data struct{ RetryAfterSeconds float64 }
		_ = json.Unmarshal(m.Error.Data, &data) // it need not say when
		f.Code, f.RetryAfter = plug.Limited, int(min(max(data.RetryAfterSeconds, 0), 3600))
	}
	if f.Message == "" {
		f.Message = fmt.Sprintf("The plugin answers with the error %d and says nothing", f.RPC)
	}
	return nil, f
}

// send gives a message to who speaks; a process that reads none of many is ended.
func (p *process) send(m message) {
	m.Version = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		p.fail("a message to it cannot be written: " + err.Error())
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
	p.fail("it does not read what it is told")
}

// speak writes messages until the process has ended.
func (p *process) speak(to io.Writer) {
	for {
		select {
		case line := <-p.out:
			p.unread.Add(-int64(len(line)))
			_, _ = to.Write(line) // a broken pipe is the end of the process, which finish sees
		case <-p.ended:
			return
		}
	}
}

// listen takes what the process says until its output ends.
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
			p.fail(fmt.Sprintf("it has written a line that is no message of JSON-RPC 2.0: %s", cut.Brief(string(line), 200)))
			return
		}
		p.take(m)
	}
	switch {
	case errors.Is(in.Err(), bufio.ErrTooLong):
		p.fail(fmt.Sprintf("it has written a line of more than %d bytes", maxLine))
	case limited.N == 0:
		p.fail(fmt.Sprintf("it has written more than %d bytes", maxOutput))
	}
}

// take gives an answer to who waits for it, and answers a request.
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
	p.greeted = p.greeted || answer != nil // initialize is the first that it is asked
	p.mu.Unlock()
	if answer != nil {
		answer <- m
	}
}

// fail says what the process has done, and ends it.
func (p *process) fail(what string) {
	p.end(plug.Failed(plug.ProcessEnded, "The plugin was ended: %s", what))
}

// end says why the process is ended, unless that was said, and ends it.
func (p *process) end(why *plug.Fault) {
	p.mu.Lock()
	if p.why == nil {
		p.why = why
	}
	p.mu.Unlock()
	p.kill()
}

// finish waits for the end of the process, then for what it has said before, and tells everybody.
func (p *process) finish(say, hear *os.File, heard <-chan struct{}) {
	for { // those of its group end with it, while its number is still its own
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
	_ = hear.SetReadDeadline(time.Now().Add(time.Second)) // what it has started may hold its output open
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

// kill ends the process and those of its group at once.
func (p *process) kill() {
	p.dying.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may end by itself just now
	}
}

// stop asks the process to end, and ends it if it does not.
func (p *process) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	_, _ = p.ask(ctx, "shutdown", nil) // whatever it answers: it ends
	select {
	case <-p.ended:
	case <-ctx.Done():
	}
	p.kill()
	<-p.ended
}

// gone tells whether the process has ended, or is about to.
func (p *process) gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return p.dying.Load()
	}
}

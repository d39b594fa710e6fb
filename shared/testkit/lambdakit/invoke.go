package lambdakit

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Limits of Lambda's synchronous invocations, in bytes.
const (
	maxPayload = 6 << 20 // of a request, and of a buffered response
)

// Invoke invokes the process and returns its whole response. A *Fault is an error of the function, or means that the
// process ended or exceeded its time.
func (s *Sandbox) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	stream, err := s.Stream(ctx, payload)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	var out bytes.Buffer
	if n, err := io.Copy(&out, io.LimitReader(stream, maxPayload+1)); err != nil {
		return nil, err
	} else if n > maxPayload {
		return nil, &Fault{Type: "Function.ResponseSizeTooLarge", Message: "Response payload size exceeded maximum allowed payload size (6291556 bytes)."}
	}
	if err := stream.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Stream is a response that is being streamed. Close must be called; it waits until the process requests more work.
type Stream struct {
	Header http.Header // of the process' own POST

	s      *Sandbox
	answer answer
	timer  *time.Timer
	late   <-chan struct{}
	err    error
	closed bool
}

// Stream invokes the process and returns its response as a stream.
func (s *Sandbox) Stream(ctx context.Context, payload []byte) (*Stream, error) {
	if len(payload) > maxPayload {
		return nil, &Fault{Type: "RequestEntityTooLarge", Message: fmt.Sprintf("a payload of %d bytes", len(payload))}
	}
	s.mu.Lock()
	s.count++
	v := &invocation{id: fmt.Sprintf("00000000-0000-4000-8000-%012d", s.count), payload: payload, deadline: time.Now().Add(s.program.Timeout),
		answer: make(chan answer, 1)}
	s.current = v
	s.mu.Unlock()
	s.thaw()
	late := make(chan struct{})
	timer := time.AfterFunc(s.program.Timeout, func() {
		close(late)
		_ = s.process.Process.Kill() // an error means that it has ended
	})
	fail := func(err error) (*Stream, error) {
		timer.Stop()
		return nil, err
	}
	select {
	case s.work <- v:
	case <-s.ended:
		return fail(s.gone(late))
	}
	select {
	case a := <-v.answer:
		stream := &Stream{Header: a.header, s: s, answer: a, timer: timer, late: late}
		if a.fault != nil {
			return nil, errors.Join(a.fault, stream.idle())
		}
		return stream, nil
	case <-s.ended:
		return fail(s.gone(late))
	case <-ctx.Done():
		s.Close() // a process in an unknown state is useless
		return fail(ctx.Err())
	}
}

// gone returns why the process ended.
func (s *Sandbox) gone(late <-chan struct{}) *Fault {
	select {
	case <-late:
		return &Fault{Type: "Sandbox.Timedout", Message: fmt.Sprintf("Task timed out after %.2f seconds", s.program.Timeout.Seconds())}
	default:
		return &Fault{Type: "Runtime.ExitError", Message: "the process ended: " + cause(s.waitErr).Error()}
	}
}

// Read reads the response. If the function breaks it off, it ends with a *Fault, never with io.EOF.
func (t *Stream) Read(p []byte) (int, error) {
	if t.err != nil {
		return 0, t.err
	}
	n, err := t.answer.body.Read(p)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		t.err = io.EOF
		if f := t.fault(); f != nil {
			t.err = f
		}
	default: // the connection broke
		<-t.s.ended
		t.err = t.s.gone(t.late)
	}
	if n > 0 {
		return n, nil
	}
	return 0, t.err
}

// fault returns the error in the trailers.
func (t *Stream) fault() *Fault {
	h := t.answer.trailer()
	kind := h.Get("Lambda-Runtime-Function-Error-Type")
	if kind == "" {
		return nil
	}
	body, err := base64.StdEncoding.DecodeString(h.Get("Lambda-Runtime-Function-Error-Body"))
	if err != nil {
		return &Fault{Type: kind, Message: err.Error()}
	}
	f := readFault(bytes.NewReader(body))
	f.Type = kind
	return f
}

// Close stops reading and waits until the process requests more work or has ended.
func (t *Stream) Close() error {
	if t.closed {
		return nil
	}
	t.closed = true
	if t.err == nil { // closed before the end: nobody reads the rest
		if _, err := io.Copy(io.Discard, t.answer.body); err != nil {
			t.err = err
		}
	}
	close(t.answer.done)
	return t.idle()
}

func (t *Stream) idle() error {
	defer t.timer.Stop()
	select {
	case <-t.s.asked:
		t.s.freeze()
	case <-t.s.ended:
		if f := t.s.gone(t.late); f.Type == "Sandbox.Timedout" {
			return f
		}
	}
	return nil
}

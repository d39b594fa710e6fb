package lambdakit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Function runs as many processes as are needed concurrently, up to a limit. Beyond it, invocations wait.
type Function struct {
	program Program
	slots   chan struct{}

	mu    sync.Mutex
	free  []*Sandbox
	all   map[*Sandbox]bool
	inits []time.Duration
}

// New makes a function with at most concurrency processes. None starts before it is needed.
func New(p Program, concurrency int) *Function {
	return &Function{program: p, slots: make(chan struct{}, concurrency), all: map[*Sandbox]bool{}}
}

// Close ends every process.
func (f *Function) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.all {
		s.Close()
	}
	clear(f.all)
	f.free = nil
}

// Inits returns the init times of the processes started so far.
func (f *Function) Inits() []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]time.Duration{}, f.inits...)
}

// PIDs returns the ids of the processes.
func (f *Function) PIDs() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []int
	for s := range f.all {
		out = append(out, s.PID())
	}
	return out
}

// acquire returns a free process, or starts one.
func (f *Function) acquire(ctx context.Context) (*Sandbox, error) {
	select {
	case f.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	f.mu.Lock()
	for len(f.free) > 0 {
		s := f.free[len(f.free)-1]
		f.free = f.free[:len(f.free)-1]
		if s.Alive() {
			f.mu.Unlock()
			return s, nil
		}
		f.drop(s)
	}
	f.mu.Unlock()
	s, err := Start(ctx, f.program)
	if err != nil {
		<-f.slots
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all[s] = true
	f.inits = append(f.inits, s.Init)
	return s, nil
}

func (f *Function) drop(s *Sandbox) {
	delete(f.all, s)
	s.Close()
}

func (f *Function) release(s *Sandbox) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.Alive() && f.all[s] {
		f.free = append(f.free, s)
	} else {
		f.drop(s)
	}
	<-f.slots
}

// Invoke invokes the function with a payload and returns its response.
func (f *Function) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	s, err := f.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer f.release(s)
	return s.Invoke(ctx, payload)
}

// Call invokes the function with a value as JSON and decodes its response into out, unless that is nil.
func (f *Function) Call(ctx context.Context, in, out any) error {
	payload, err := json.Marshal(in)
	if err != nil {
		return err
	}
	answer, err := f.Invoke(ctx, payload)
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%s answers %.200q: %w", f.program.Name, answer, err)
	}
	return nil
}

// IsFault reports whether err is an error of the function, or the end of its process.
func IsFault(err error) bool { return errors.As(err, new(*Fault)) }

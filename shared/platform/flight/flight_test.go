package flight

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// group runs calls with one key, and lets the test decide what happens in the work.
type group struct {
	Group[int]
	calls int // of work
	begin chan struct{}
	end   chan struct{}
}

func newGroup() *group {
	return &group{begin: make(chan struct{}), end: make(chan struct{})}
}

func (g *group) do(ctx context.Context) (int, error) {
	return g.Do(ctx, "key", time.Minute, func(ctx context.Context, begin func()) (int, error) {
		g.calls++
		n := g.calls
		select {
		case <-g.begin:
			begin()
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		select {
		case <-g.end:
			return n, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	})
}

func TestCallersShareTheWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup()
		results := make(chan int, 5)
		for range 5 {
			go func() {
				n, err := g.do(t.Context())
				if err != nil {
					t.Error(err)
				}
				results <- n
			}()
		}
		synctest.Wait()
		close(g.begin)
		close(g.end)
		for range 5 {
			if n := <-results; n != 1 {
				t.Errorf("result of call %d, want 1", n)
			}
		}
		if n, err := g.do(t.Context()); n != 2 || err != nil {
			t.Errorf("a later call gets %d, %v; want new work", n, err)
		}
	})
}

func TestWorkEndsWithItsLastCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup()
		call := func() (leave func() error) {
			ctx, cancel := context.WithCancel(t.Context())
			left := make(chan error, 1)
			go func() {
				_, err := g.do(ctx)
				left <- err
			}()
			synctest.Wait()
			return func() error {
				cancel()
				defer synctest.Wait()
				return <-left
			}
		}
		first, second := call(), call()
		if err := first(); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that left gets %v", err)
		}
		third := call()
		if g.calls != 1 {
			t.Errorf("%d calls of work although a caller was still waiting", g.calls)
		}
		_, _ = second(), third()
		last := call()
		if g.calls != 2 {
			t.Errorf("%d calls of work, want a second one: everybody had left before it began", g.calls)
		}
		_ = last()
	})
}

// Work that has begun goes on without callers, for the next one.
func TestBegunWorkGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup()
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := g.do(ctx)
			left <- err
		}()
		g.begin <- struct{}{}
		synctest.Wait()
		leave()
		<-left
		go func() { g.end <- struct{}{} }()
		if n, err := g.do(t.Context()); n != 1 || err != nil {
			t.Errorf("%d, %v; want the result of the work that had begun", n, err)
		}
	})
}

func TestLimitAndPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		if _, err := newGroup().do(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the end of the work's time", err)
		}
		var g Group[int]
		_, err := g.Do(t.Context(), "key", time.Minute, func(context.Context, func()) (int, error) { panic("on purpose") })
		if err == nil || !strings.HasPrefix(err.Error(), "panic: on purpose") {
			t.Errorf("%v, want the panic", err)
		}
	})
}

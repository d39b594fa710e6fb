package plugin

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/plug"
)

func TestRetries(t *testing.T) {
	t.Parallel()
	limited := &limit{error: fault.New(fault.TooManyRequests, "wait"), wait: 60}
	var at retries
	for n := range 30 {
		want := min(time.Minute<<min(n, 10), longestWait)
		if wait, ok := at.exactly(limited, false); !ok || wait != want || at.Refusals != 0 {
			t.Errorf("wait %d for the rate limit: %v, want %v", n, wait, want)
		}
	}
	at = retries{}
	if wait, ok := at.again(limited, false); !ok || wait < time.Minute || wait >= 3*time.Minute {
		t.Errorf("%v, %v", wait, ok)
	}
	at.Since = time.Now().Add(-mostWaiting - time.Minute)
	if _, ok := at.again(limited, true, fault.TooManyRequests); ok {
		t.Error("it waits forever")
	}
	at = retries{}
	busy := fault.New(fault.TooManyRequests, "busy").After(4 * time.Minute)
	for n := range mostRefusals {
		want := 4 * time.Minute * time.Duration(n+1)
		if wait, ok := at.again(busy, false, fault.Conflict, fault.TooManyRequests); !ok || wait != want {
			t.Errorf("refusal %d: %v, want %v", n, wait, want)
		}
	}
	if _, ok := at.again(busy, true, fault.TooManyRequests); ok {
		t.Error("it is refused too often, and goes on")
	}
	at = retries{}
	if wait, ok := at.again(busy, true); !ok || wait != 0 || at.Refusals != 1 {
		t.Errorf("interrupted: %v, %v", wait, ok)
	}
	for _, err := range []error{busy, nil} {
		if _, ok := at.again(err, false, fault.Conflict); ok || at.Refusals != 1 {
			t.Errorf("%v is retried", err)
		}
	}
}

// Requests of a task end before the function that runs plugins reports a timeout, which would count as the plugin's
// failure.
func TestTasksLeaveBeforeTheTimeout(t *testing.T) {
	t.Parallel()
	pause := make(chan struct{})
	close(pause)
	end := time.Now().Add(plug.Margin + 1200*time.Millisecond)
	ctx, cancel := context.WithDeadline(task.WithPause(t.Context(), pause), end)
	defer cancel()
	asking, stop := patience(ctx)
	defer stop()
	<-asking.Done()
	if left := time.Until(end); left < plug.Margin {
		t.Errorf("%s were left", left)
	}
}

// Checkpoints of all tasks have the same names for the same things.
func TestCheckpoints(t *testing.T) {
	t.Parallel()
	const stored = `{"since":"2026-01-02T03:04:05Z","waits":3,"refusals":2,"found":"7","after":"a","cursor":"c"}`
	var match waiting
	var run refreshing
	var sync syncPlace
	for _, at := range []any{&match, &run, &sync} {
		if err := json.Unmarshal([]byte(stored), at); err != nil {
			t.Fatal(err)
		}
	}
	want := retries{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), 3, 2}
	if match.retries != want || run.retries != want || sync.retries != want || match.Found != "7" || run.After != "a" || sync.Cursor != "c" {
		t.Errorf("%+v, %+v, %+v", match, run, sync)
	}
}

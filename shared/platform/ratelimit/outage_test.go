package ratelimit

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/platform/events/redistest"
)

var bucket = Bucket{Key: "b", Rate: 10, Burst: 50}

// passed is what a request gets while Redis is lost.
var passed = Result{Allowed: true, Limit: 50, Remaining: 50, Degraded: true}

// noProbe ends probing before it begins.
func noProbe(context.Context, time.Duration) bool { return false }

// blackHole accepts connections, reads nothing and never answers; it counts
// connections.
func blackHole(t testing.TB) (url string, connections *atomic.Int64) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	connections = new(atomic.Int64)
	var mu sync.Mutex
	var held []net.Conn
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			mu.Lock()
			held = append(held, conn)
			mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		ln.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, conn := range held {
			conn.Close()
		}
	})
	return "redis://" + ln.Addr().String(), connections
}

func TestRefused(t *testing.T) {
	t.Parallel()
	l := limiter(t, client(t, nowhere(t)))
	for range 1000 {
		if got := l.Take(t.Context(), bucket, []string{"g"}); got != passed {
			t.Fatalf("got %+v", got)
		}
	}
	if l.Healthy() {
		t.Error("healthy without Redis")
	}
}

func TestBlackHole(t *testing.T) {
	t.Parallel()
	url, connections := blackHole(t)
	l := limiter(t, client(t, url))
	l.breaker.pause = noProbe
	start := time.Now()
	if got := l.Take(t.Context(), bucket, []string{"g"}); got != passed {
		t.Fatalf("got %+v", got)
	}
	if took := time.Since(start); took < answerWithin/2 || took > 5*time.Second { // the client itself would wait for ten
		t.Errorf("the first request waited %v", took)
	}
	for range 1000 {
		if got := l.Take(t.Context(), bucket, []string{"g"}); got != passed {
			t.Fatalf("got %+v", got)
		}
	}
	if n := connections.Load(); n > 1 { // who waits in vain gives up the connection
		t.Errorf("requests went on asking: %d connections", n)
	}
}

func TestHangUpDoesNotTrip(t *testing.T) {
	t.Parallel()
	l, _ := withRedis(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := l.Take(ctx, bucket, []string{"g"}); got.Degraded || !got.Allowed || got.Generation == "" {
		t.Errorf("a client that hung up is not counted: %+v", got)
	}
	if !l.Healthy() {
		t.Error("a client that hung up tripped the breaker")
	}
}

func TestErrorReplyDoesNotTrip(t *testing.T) {
	t.Parallel()
	l, rdb := withRedis(t)
	var log bytes.Buffer
	l.log = slog.New(slog.NewTextHandler(&log, nil))
	demand := func(replicas string) { // Redis refuses to write while it has fewer
		t.Helper()
		if err := rdb.ConfigSet(t.Context(), "min-replicas-to-write", replicas).Err(); err != nil {
			t.Fatal(err)
		}
	}
	demand("1")
	for range 100 {
		if got := l.Take(t.Context(), bucket, []string{"g"}); got != passed {
			t.Errorf("got %+v", got)
		}
	}
	if !l.Healthy() {
		t.Error("an answer of Redis tripped the breaker")
	}
	if n := strings.Count(log.String(), "NOREPLICAS"); n != 1 {
		t.Errorf("the log was told %d times of 100 refusals: %s", n, log.String())
	}
	demand("0")
	if got := l.Take(t.Context(), bucket, []string{"g"}); got.Degraded {
		t.Errorf("once it writes again: %+v", got)
	}
}

// TestForeignValue finds something else under the bucket's key: it is replaced.
func TestForeignValue(t *testing.T) {
	t.Parallel()
	l, rdb := withRedis(t)
	if err := rdb.LPush(t.Context(), "b", "not a number").Err(); err != nil {
		t.Fatal(err)
	}
	if got := l.Take(t.Context(), bucket, []string{"g"}); got.Degraded || got.Remaining != 49 {
		t.Errorf("got %+v", got)
	}
	if err := rdb.Set(t.Context(), "b", "not a number", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got := l.Take(t.Context(), bucket, []string{"g"}); got.Degraded || got.Remaining != 49 {
		t.Errorf("got %+v", got)
	}
}

func TestComesBack(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Stop(t)
	l := limiter(t, client(t, server.URL))
	l.within = 10 * time.Second // a refusal comes at once all the same
	if got := l.Take(t.Context(), bucket, []string{"g"}); got != passed {
		t.Fatalf("got %+v", got)
	}
	server.Run(t)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	giveUp := time.After(20 * time.Second)
	for !l.Healthy() {
		select {
		case <-tick.C:
		case <-giveUp:
			t.Fatal("Redis is back and was not noticed")
		}
	}
	if got := l.Take(t.Context(), bucket, []string{"g"}); got.Degraded || got.Remaining != 49 || got.Generation == "" {
		t.Errorf("after the return: %+v", got)
	}
}

// TestProbing trips a breaker from many sides and steps its clock by hand.
func TestProbing(t *testing.T) {
	t.Parallel()
	var running, most, pings atomic.Int64
	answers := make(chan error)
	pauses := make(chan time.Duration)
	b := newBreaker(func(context.Context) error {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		pings.Add(1)
		return <-answers
	}, slog.New(slog.DiscardHandler))
	b.pause = func(ctx context.Context, d time.Duration) bool {
		select {
		case pauses <- d:
			return true
		case <-ctx.Done():
			return false
		}
	}
	lost := errors.New("lost")
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { b.trip(lost) })
	}
	wg.Wait()
	expected := firstProbeAfter
	for range 12 {
		if d := <-pauses; d < expected/2 || d >= expected*3/2 {
			t.Errorf("pause %v, want about %v", d, expected)
		}
		b.trip(lost)
		answers <- lost
		expected = min(2*expected, maxProbePause)
		if !b.open.Load() {
			t.Fatal("closed after a failed probe")
		}
	}
	<-pauses
	answers <- nil
	b.wg.Wait()
	if b.open.Load() || most.Load() != 1 || pings.Load() != 13 {
		t.Errorf("open %v, %d probes at once, %d in all", b.open.Load(), most.Load(), pings.Load())
	}
	b.trip(lost) // a second loss probes again, from the short pause on
	if d := <-pauses; d >= firstProbeAfter*3/2 {
		t.Errorf("pause %v after a new loss", d)
	}
	answers <- lost
	b.close()
	b.open.Store(false)
	b.trip(lost) // after close nothing starts
	b.wg.Wait()
}

// TestSaid steps through losses: of a Redis that is away the log is told each time and when it is back, of one that is
// late again and again once.
func TestSaid(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	fails := 0
	b := newBreaker(func(context.Context) error {
		if fails--; fails >= 0 {
			return errors.New("lost")
		}
		return nil
	}, slog.New(slog.NewTextHandler(&log, nil)))
	b.pause = func(context.Context, time.Duration) bool { return true }
	for _, c := range []struct{ failing, away, back, late int }{{3, 1, 1, 0}, {0, 1, 1, 1}, {0, 1, 1, 1}, {1, 2, 2, 1}} {
		fails = c.failing
		b.trip(errors.New("i/o timeout"))
		b.wg.Wait()
		for line, want := range map[string]int{"does not answer": c.away, "answers again": c.back, "answers too slowly": c.late} {
			if n := strings.Count(log.String(), line); n != want {
				t.Errorf("after %d failed probes %q %d times, want %d: %s", c.failing, line, n, want, log.String())
			}
		}
	}
}

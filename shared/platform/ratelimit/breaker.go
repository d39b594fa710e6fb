package ratelimit

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longbox/longbox/shared/platform/redisconn"
)

const (
	// The first probe comes almost at once: if only this machine was too busy to read a response in time, the limit is
	// soon back.
	firstProbeAfter = 4 * time.Millisecond
	maxProbePause   = 5 * time.Second
	probeWithin     = 250 * time.Millisecond
)

// breaker is open while Redis is unreachable. Probes in the background, one at a time with growing, jittered pauses,
// find out when it is back. Requests never probe.
type breaker struct {
	open atomic.Bool
	ping func(context.Context) error
	log  *slog.Logger
	// pause waits and reports whether to continue. Tests replace it.
	pause func(context.Context, time.Duration) bool

	late redisconn.Seldom // limits log lines about late responses

	ctx  context.Context // ended by close
	stop context.CancelFunc
	mu   sync.Mutex // orders the start of a probe against close
	wg   sync.WaitGroup
}

func newBreaker(ping func(context.Context) error, log *slog.Logger) *breaker {
	ctx, stop := context.WithCancel(context.Background())
	return &breaker{ping: ping, log: log, pause: pause, ctx: ctx, stop: stop}
}

// trip opens the breaker and starts probing, unless it is open.
func (b *breaker) trip(cause error) {
	if !b.open.CompareAndSwap(false, true) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() == nil {
		b.wg.Go(func() { b.probe(cause) })
	}
}

// probe closes the breaker once Redis answers. If the first probe succeeds, the response that tripped it was only late:
// on a busy machine that happens many times a minute.
func (b *breaker) probe(cause error) {
	lost, away := time.Now(), false
	next := firstProbeAfter
	for b.pause(b.ctx, jitter(next)) {
		ctx, cancel := context.WithTimeout(b.ctx, probeWithin)
		err := b.ping(ctx)
		cancel()
		switch {
		case err != nil && !away:
			away = true
			b.log.Warn("Redis does not answer: requests pass without rate limit", "error", cause)
		case err == nil && away:
			b.log.Info("Redis answers again", "lost_for", time.Since(lost).Round(time.Millisecond).String())
		case err == nil && b.late.Due():
			b.log.Warn("Redis answers too slowly, perhaps because the machine is busy: some requests pass without rate limit", "error", cause)
		}
		if err == nil {
			b.open.Store(false)
			return
		}
		next = min(2*next, maxProbePause)
	}
}

func (b *breaker) close() {
	b.mu.Lock()
	b.stop()
	b.mu.Unlock()
	b.wg.Wait()
}

// jitter spreads d over [d/2, 3d/2), so that many processes do not return at the same moment.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d)
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

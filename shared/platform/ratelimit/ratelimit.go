// Package ratelimit counts requests against token buckets in Redis. The same
// round trip returns the value of one more key, the tenant's access generation,
// by which a process knows whether what it remembers of users is still true.
//
// The limiter never stands in the way: when Redis does not answer, requests
// pass, marked as degraded. A breaker keeps that cheap: after the first failure
// no request waits for Redis until a probe in the background has reached it.
package ratelimit

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// answerWithin bounds what one request may wait for Redis.
const answerWithin = 20 * time.Millisecond

//go:embed take.lua
var takeSource string

// Bucket is a token bucket: Burst tokens at most, refilled at Rate per second.
// With Rate or Burst of 0 or less it does not limit.
type Bucket struct {
	Key   string
	Rate  float64
	Burst int
}

// Result says whether a request may pass and fills the X-RateLimit headers.
type Result struct {
	Allowed          bool
	Limit, Remaining int
	Reset            time.Duration // until a token is available; 0 while tokens are left
	RetryAfter       time.Duration // 0 when allowed
	Generation       string        // "" when Redis did not answer or no key was asked for
	Degraded         bool          // Redis did not answer: nothing was counted
}

// Limiter takes tokens from buckets. It is safe for concurrent use; Close ends
// its probing.
type Limiter struct {
	rdb     redis.UniversalClient
	script  *redis.Script
	breaker *breaker
	log     *slog.Logger
	within  time.Duration // answerWithin; tests on a busy machine wait longer
	process string        // unlike that of any other process
	created atomic.Uint64 // numbers the generations this process proposes
}

// New returns a Limiter on a client that should be made with redisconn.Options,
// so that deadlines are honoured. It sends nothing yet. log is told when Redis
// is lost and when it is back.
func New(rdb redis.UniversalClient, log *slog.Logger) *Limiter {
	ping := func(ctx context.Context) error { return rdb.Ping(ctx).Err() }
	return &Limiter{
		rdb:     rdb,
		script:  redis.NewScript(takeSource),
		breaker: newBreaker(ping, log),
		log:     log,
		within:  answerWithin,
		process: strconv.FormatUint(rand.Uint64(), 36) + strconv.FormatUint(rand.Uint64(), 36),
	}
}

// Close stops probing a lost Redis and waits for that. The client stays open.
func (l *Limiter) Close() { l.breaker.close() }

// Healthy reports whether Redis answered last time.
func (l *Limiter) Healthy() bool { return !l.breaker.open.Load() }

// Take takes one token from the bucket and reads generationKey in one round
// trip of at most 20 ms. A generation that Redis does not hold is created with
// a value never used before, so that after a loss of Redis no remembered value
// is taken for the current one; generationKey may be "". With Redis Cluster
// both keys must share a hash tag. Take never fails: see Result.Degraded.
func (l *Limiter) Take(ctx context.Context, bucket Bucket, generationKey string) Result {
	return l.take(ctx, bucket, generationKey, 0)
}

// take is Take with a clock in microseconds; 0 means that of Redis.
func (l *Limiter) take(ctx context.Context, bucket Bucket, generationKey string, now int64) Result {
	limited := bucket.Rate > 0 && bucket.Burst > 0
	pass := Result{Allowed: true, Limit: max(bucket.Burst, 0), Remaining: max(bucket.Burst, 0)}
	if !limited && generationKey == "" {
		return pass
	}
	pass.Degraded = true
	if l.breaker.open.Load() {
		return pass
	}
	interval := 0.0 // microseconds a token takes
	if limited {
		interval = 1e6 / bucket.Rate
	}
	// A client that hangs up must not cost us a connection or trip the breaker.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.within)
	defer cancel()
	keys := []string{bucket.Key}
	proposal := ""
	if generationKey != "" {
		keys = append(keys, generationKey)
		proposal = l.process + "." + strconv.FormatUint(l.created.Add(1), 36)
	}
	answer, err := l.script.Run(ctx, l.rdb, keys, interval, bucket.Burst, proposal, now).Slice()
	if err != nil {
		l.failed(err)
		return pass
	}
	res, err := read(answer)
	if err != nil {
		l.log.Error("rate limiter: unexpected answer", "error", err)
		return pass
	}
	res.Limit = pass.Limit
	if !limited {
		res.Remaining = pass.Remaining
	}
	return res
}

// failed trips the breaker unless Redis itself answered with an error: then
// asking is cheap and the next key may be fine.
func (l *Limiter) failed(err error) {
	var reply redis.Error
	if errors.As(err, &reply) && !errors.Is(err, context.DeadlineExceeded) {
		l.log.Error("rate limiter: Redis refuses the script", "error", err)
		return
	}
	l.breaker.trip(err)
}

// read decodes {allowed, remaining, reset µs, retry µs, generation}.
func read(answer []any) (Result, error) {
	if len(answer) != 5 {
		return Result{}, fmt.Errorf("%d values instead of 5", len(answer))
	}
	var n [4]int64
	for i := range n {
		v, ok := answer[i].(int64)
		if !ok {
			return Result{}, fmt.Errorf("value %d is %T", i, answer[i])
		}
		n[i] = v
	}
	generation, ok := answer[4].(string)
	if !ok {
		return Result{}, fmt.Errorf("the generation is %T", answer[4])
	}
	return Result{
		Allowed:    n[0] == 1,
		Remaining:  int(min(n[1], math.MaxInt32)),
		Reset:      time.Duration(n[2]) * time.Microsecond,
		RetryAfter: time.Duration(n[3]) * time.Microsecond,
		Generation: generation,
	}, nil
}

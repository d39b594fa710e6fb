// Package ratelimit counts requests against token buckets in Redis. The same
// round trip returns the tenant's access generation, by which a process knows
// whether what it remembers of users, and where their books lie, is still true.
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

// sayEvery is the pause between two lines of the log about a Redis that refuses every request (its disk is full), or
// that is late again and again.
const sayEvery = time.Minute

//go:embed take.lua
var takeSource string

// Bucket is a token bucket: Burst tokens at most, refilled at Rate per second.
// With Rate or Burst of 0 or less it does not limit.
type Bucket struct {
	Key   string
	Rate  float64
	Burst int
}

func (b Bucket) limits() bool { return b.Rate > 0 && b.Burst > 0 }

// token is how long a token takes, in whole microseconds: at least one.
func (b Bucket) token() time.Duration {
	return max(time.Duration(math.Round(1e6/b.Rate)), 1) * time.Microsecond
}

// fill is how long it takes from empty to full.
func (b Bucket) fill() time.Duration { return time.Duration(b.Burst) * b.token() }

// Result says whether a request may pass and fills the X-RateLimit headers.
type Result struct {
	Allowed          bool
	Limit, Remaining int
	Reset            time.Duration // until a token is available; 0 while tokens are left
	RetryAfter       time.Duration // 0 when allowed
	Bucket           int           // which of the buckets this tells of: the one with the fewest tokens left
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
	within  time.Duration // answerWithin, unless a test says otherwise
	process string        // unlike that of any other process
	created atomic.Uint64 // numbers the generations this process proposes
	refused seldom        // what the log is told of refusals
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

// Patient returns the limiter after it was told how long a request may wait for Redis, before any does: tests that are
// not about that wait longer than 20 ms, because the machine may be busy.
func (l *Limiter) Patient(within time.Duration) *Limiter {
	l.within = within
	return l
}

// Close stops probing a lost Redis and waits for that. The client stays open.
func (l *Limiter) Close() { l.breaker.close() }

// Healthy reports whether Redis answered last time.
func (l *Limiter) Healthy() bool { return !l.breaker.open.Load() }

// Take takes one token from the bucket, and from each of the others, or from none when one of them is empty; and
// reads the keys of generations, all in one round trip of at most 20 ms. The first of them, where Redis does not hold
// it, is created with a value never used before, so that after a loss of Redis no remembered value is taken for the
// current one; the others need not be there. With Redis Cluster all keys must share a hash tag. Take never fails: see
// Result.Degraded.
func (l *Limiter) Take(ctx context.Context, bucket Bucket, generations []string, others ...Bucket) Result {
	return l.take(ctx, generations, 0, append([]Bucket{bucket}, others...)...)
}

// take is Take with a clock in microseconds; 0 means that of Redis.
func (l *Limiter) take(ctx context.Context, generations []string, now int64, buckets ...Bucket) Result {
	pass := Result{Allowed: true, Limit: max(buckets[0].Burst, 0), Remaining: max(buckets[0].Burst, 0)}
	keys := make([]string, 0, len(generations)+len(buckets))
	keys = append(keys, generations...)
	args := make([]any, 0, 3*len(buckets)+2)
	proposal := ""
	if len(generations) > 0 {
		proposal = l.process + "." + strconv.FormatUint(l.created.Add(1), 36)
	}
	args = append(args, proposal, now)
	var limited []int // the buckets that limit
	for i, b := range buckets {
		if b.limits() {
			limited = append(limited, i)
			keys, args = append(keys, b.Key), append(args, b.token().Microseconds(), b.fill().Microseconds(), (b.fill()+time.Millisecond-1).Milliseconds())
		}
	}
	if len(keys) == 0 {
		return pass
	}
	pass.Degraded = true
	if l.breaker.open.Load() {
		return pass
	}
	// A client that hangs up must not cost us a connection or trip the breaker.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.within)
	defer cancel()
	answer, err := l.script.Run(ctx, l.rdb, keys, args...).Slice()
	if err != nil {
		l.failed(err)
		return pass
	}
	generation, left, err := read(answer, len(limited))
	if err != nil {
		l.log.Error("rate limiter: unexpected answer", "error", err)
		return pass
	}
	pass.Degraded, pass.Generation = false, generation
	if len(limited) == 0 {
		return pass
	}
	return judge(buckets, limited, left, pass)
}

// judge tells of the bucket that must be waited for longest, or where none is empty, of the one with the fewest tokens.
func judge(buckets []Bucket, limited []int, left []time.Duration, res Result) Result {
	for i, at := range limited {
		b := buckets[at]
		if left[i] < 0 {
			if res.Allowed || -left[i] > res.RetryAfter {
				res.Allowed, res.Bucket, res.Limit, res.Remaining, res.Reset, res.RetryAfter = false, at, b.Burst, 0, -left[i], -left[i]
			}
			continue
		}
		remaining := int(left[i] / b.token())
		if res.Allowed && (i == 0 || remaining < res.Remaining) {
			res.Bucket, res.Limit, res.Remaining = at, b.Burst, remaining
			res.Reset = 0
			if remaining == 0 {
				res.Reset = b.token() - left[i]
			}
		}
	}
	return res
}

// failed trips the breaker unless Redis itself answered with an error: then
// asking is cheap and the next key may be fine.
func (l *Limiter) failed(err error) {
	var reply redis.Error
	if errors.As(err, &reply) && !errors.Is(err, context.DeadlineExceeded) {
		if l.refused.due() {
			l.log.Error("Redis refuses to count: requests pass without rate limit", "error", err)
		}
		return
	}
	l.breaker.trip(err)
}

// seldom tells when the log is told of the same again.
type seldom struct{ said atomic.Int64 } // Unix seconds

func (s *seldom) due() bool {
	now, said := time.Now().Unix(), s.said.Load()
	return now-said >= int64(sayEvery/time.Second) && s.said.CompareAndSwap(said, now)
}

// read decodes {generation, µs left in each bucket}.
func read(answer []any, buckets int) (generation string, left []time.Duration, err error) {
	if len(answer) != buckets+1 {
		return "", nil, fmt.Errorf("%d values instead of %d", len(answer), buckets+1)
	}
	generation, ok := answer[0].(string)
	if !ok {
		return "", nil, fmt.Errorf("the generation is %T", answer[0])
	}
	left = make([]time.Duration, buckets)
	for i := range left {
		n, ok := answer[i+1].(int64)
		if !ok {
			return "", nil, fmt.Errorf("value %d is %T", i+1, answer[i+1])
		}
		left[i] = time.Duration(n) * time.Microsecond
	}
	return generation, left, nil
}

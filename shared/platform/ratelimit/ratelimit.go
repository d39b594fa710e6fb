// Package ratelimit counts requests against token buckets in Redis. The same round trip returns the tenant's access
// generation, which tells a process whether its cached data about users, and about the location of their books, is
// still valid.
//
// The limiter never blocks requests: when Redis does not answer, they pass, marked as degraded. A breaker keeps that
// cheap: after the first failure no request waits for Redis until a background probe has reached it.
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

	"github.com/longbox/longbox/shared/platform/redisconn"
)

// answerWithin limits how long one request waits for Redis.
const answerWithin = 20 * time.Millisecond

//go:embed take.lua
var takeSource string

// Bucket is a token bucket: at most Burst tokens, refilled at Rate per second. With Rate or Burst of 0 or less it does
// not limit.
type Bucket struct {
	Key   string
	Rate  float64
	Burst int
}

func (b Bucket) limits() bool { return b.Rate > 0 && b.Burst > 0 }

// token returns the refill time of one token, in whole microseconds, at least one.
func (b Bucket) token() time.Duration {
	return max(time.Duration(math.Round(1e6/b.Rate)), 1) * time.Microsecond
}

// fill returns the time from empty to full.
func (b Bucket) fill() time.Duration { return time.Duration(b.Burst) * b.token() }

// Result says whether a request may pass, and holds the values of the X-RateLimit headers.
type Result struct {
	Allowed          bool
	Limit, Remaining int
	Reset            time.Duration // until a token is available; 0 while tokens are left
	RetryAfter       time.Duration // 0 when allowed
	Bucket           int           // index of the bucket that the values are for: the one with the fewest tokens left
	Generation       string        // "" when Redis did not answer or was not asked, or no key was requested
	Degraded         bool          // Redis did not answer: nothing was counted
}

// Limiter takes tokens from buckets. It is safe for concurrent use. Close stops its probing.
type Limiter struct {
	rdb     redis.UniversalClient
	script  *redis.Script
	breaker *breaker
	log     *slog.Logger
	within  time.Duration    // answerWithin, unless a test says otherwise
	process string           // unlike that of any other process
	created atomic.Uint64    // numbers the generations this process proposes
	errors  redisconn.Seldom // what the log is told of Redis' errors
	empty   refusals
}

// New returns a Limiter. Its client should be made with redisconn.Options, so that deadlines apply. New sends nothing.
// log gets a line when Redis is lost and when it is back.
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

// Patient sets how long a request waits for Redis, and returns the limiter. It must come before the first request. It
// is for tests on busy machines, where 20 ms are too short.
func (l *Limiter) Patient(within time.Duration) *Limiter {
	l.within = within
	return l
}

// Close stops probing a lost Redis and waits for that. The client stays open.
func (l *Limiter) Close() { l.breaker.close() }

// Healthy reports whether Redis answered last time.
func (l *Limiter) Healthy() bool { return !l.breaker.open.Load() }

// Take takes one token from the bucket and from each of the others, or from none if one of them is empty. It also reads
// the generation keys, all in one round trip of at most 20 ms. If Redis lacks the first generation key, it is created
// with a new value, so that no cached value passes for the current one after Redis has lost its data. The other keys
// may be missing. With Redis Cluster all keys must share a hash tag. Until an empty bucket holds a token again, Take
// refuses without asking Redis. Take never fails: see Result.Degraded.
func (l *Limiter) Take(ctx context.Context, bucket Bucket, generations []string, others ...Bucket) Result {
	return l.take(ctx, generations, 0, append([]Bucket{bucket}, others...)...)
}

// take is Take with a clock in microseconds; 0 means Redis' clock.
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
	var limited []int // indexes of the buckets with a limit
	for i, b := range buckets {
		if b.limits() {
			limited = append(limited, i)
			keys, args = append(keys, b.Key), append(args, b.token().Microseconds(), b.fill().Microseconds(), (b.fill()+time.Millisecond-1).Milliseconds())
		}
	}
	if len(keys) == 0 {
		return pass
	}
	if now == 0 && len(limited) > 0 {
		if left, empty := l.empty.wait(buckets, limited, time.Now()); empty {
			return judge(buckets, limited, left, pass)
		}
	}
	pass.Degraded = true
	if l.breaker.open.Load() {
		return pass
	}
	// A disconnecting client must not cost a connection or trip the breaker.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.within)
	defer cancel()
	answer, err := l.script.Run(ctx, l.rdb, keys, args...).Slice()
	if err != nil {
		l.failed(err)
		return pass
	}
	generation, left, err := read(answer, len(limited))
	if err != nil {
		l.log.Error("rate limiter: unexpected answer from Redis", "error", err)
		return pass
	}
	pass.Degraded, pass.Generation = false, generation
	if len(limited) == 0 {
		return pass
	}
	res := judge(buckets, limited, left, pass)
	if !res.Allowed && now == 0 {
		l.empty.learn(buckets, limited, left, time.Now())
	}
	return res
}

// judge selects the empty bucket with the longest wait or, if none is empty, the one with the fewest tokens.
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

// failed trips the breaker, unless Redis itself answered with an error: then requests are cheap, and the next key may
// work.
func (l *Limiter) failed(err error) {
	var reply redis.Error
	if errors.As(err, &reply) && !errors.Is(err, context.DeadlineExceeded) {
		if l.errors.Due() {
			l.log.Error("Redis answers with an error: requests pass without rate limit", "error", err)
		}
		return
	}
	l.breaker.trip(err)
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

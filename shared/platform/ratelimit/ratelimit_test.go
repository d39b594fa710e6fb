package ratelimit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

// epoch is a clock in microseconds of the size that real ones have.
const epoch = int64(1_790_000_000_000_000)

func TestTake(t *testing.T) {
	t.Parallel()
	l, _ := withRedis(t)
	bucket := Bucket{Key: "b:basic", Rate: 2, Burst: 3}
	const second = 1_000_000
	steps := []struct {
		name string
		at   int64
		want Result
	}{
		{"full", 0, Result{Allowed: true, Remaining: 2}},
		{"one gone", 0, Result{Allowed: true, Remaining: 1}},
		{"the last token", 0, Result{Allowed: true, Remaining: 0, Reset: 500 * time.Millisecond}},
		{"empty", 0, Result{Reset: 500 * time.Millisecond, RetryAfter: 500 * time.Millisecond}},
		{"refusals cost nothing", 200_000, Result{Reset: 300 * time.Millisecond, RetryAfter: 300 * time.Millisecond}},
		{"exactly one refilled", 500_000, Result{Allowed: true, Remaining: 0, Reset: 500 * time.Millisecond}},
		{"two refilled", 500_000 + second, Result{Allowed: true, Remaining: 1}},
		{"never above the burst", 100 * second, Result{Allowed: true, Remaining: 2}},
		{"a clock that steps back gives nothing", 99 * second, Result{Allowed: false, Reset: 500 * time.Millisecond, RetryAfter: 500 * time.Millisecond}},
	}
	for _, s := range steps {
		s.want.Limit = 3
		got := l.take(context.Background(), nil, epoch+s.at, bucket)
		if diff := cmp.Diff(s.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", s.name, diff)
		}
	}
}

// Of several empty buckets, the one with the longest wait is reported, in any order.
func TestLongestWait(t *testing.T) {
	t.Parallel()
	buckets := []Bucket{{Key: "one", Rate: 1, Burst: 5}, {Key: "all", Rate: 1, Burst: 5}}
	for _, left := range [][]time.Duration{{-time.Second, -3 * time.Second}, {-3 * time.Second, -time.Second}} {
		res := judge(buckets, []int{0, 1}, left, Result{Allowed: true})
		if res.Allowed || res.RetryAfter != 3*time.Second || left[res.Bucket] != -3*time.Second {
			t.Errorf("%v: %+v", left, res)
		}
	}
}

// TestTakeSurvivesAClockSetBack sets the clock of Redis back by an hour: stored times are then in the future, and
// callers must not wait for an hour.
func TestTakeSurvivesAClockSetBack(t *testing.T) {
	t.Parallel()
	l, _ := withRedis(t)
	bucket := Bucket{Key: "b:back", Rate: 2, Burst: 3}
	const hour = int64(3_600_000_000)
	if !l.take(t.Context(), nil, epoch+hour, bucket).Allowed {
		t.Fatal("a full bucket refuses")
	}
	refused := Result{Limit: 3, Reset: 500 * time.Millisecond, RetryAfter: 500 * time.Millisecond}
	if diff := cmp.Diff(refused, l.take(t.Context(), nil, epoch, bucket)); diff != "" {
		t.Errorf("an hour back: (-want +got)\n%s", diff)
	}
	if got := l.take(t.Context(), nil, epoch+500_000, bucket); !got.Allowed {
		t.Errorf("a token later: %+v", got)
	}
}

func TestTakeKeepsBucketsApart(t *testing.T) {
	t.Parallel()
	l, rdb := withRedis(t)
	one, two := Bucket{Key: "b:1", Rate: 1, Burst: 1}, Bucket{Key: "b:2", Rate: 1, Burst: 1}
	if !l.Take(t.Context(), one, nil).Allowed || l.Take(t.Context(), one, nil).Allowed || !l.Take(t.Context(), two, nil).Allowed {
		t.Error("the buckets touch each other")
	}
	ttl, err := rdb.PTTL(t.Context(), "b:1").Result()
	if err != nil {
		t.Fatal(err)
	}
	if ttl <= 0 || ttl > time.Second {
		t.Errorf("the bucket stays for %v: want until it is full", ttl)
	}
}

// TestTakeIsExact drives buckets with random requests and compares what is let
// through with a bucket calculated beside it, within one in a hundred. The rates
// are low, because keys expire by the true clock.
func TestTakeIsExact(t *testing.T) {
	t.Parallel()
	l, _ := withRedis(t)
	for _, bucket := range []Bucket{{"e:1", 50, 200}, {"e:2", 10, 50}, {"e:3", 0.5, 5}, {"e:4", 0.3, 1}, {"e:5", 1, 3}} {
		rnd := rand.New(rand.NewPCG(1, 2))
		now, allowed, ideal := int64(0), 0, 0
		tokens := float64(bucket.Burst)
		for range 3000 {
			if tokens >= 1 {
				tokens--
				ideal++
			}
			if l.take(t.Context(), nil, epoch+now, bucket).Allowed {
				allowed++
			}
			pause := rnd.Int64N(int64(1e6 / bucket.Rate)) // twice as fast as the bucket refills
			now += pause
			tokens = min(float64(bucket.Burst), tokens+bucket.Rate*float64(pause)/1e6)
		}
		if ideal < 1000 {
			t.Fatalf("%+v: only %d requests were to pass", bucket, ideal)
		}
		if ratio := float64(allowed) / float64(ideal); ratio > 1.01 || ratio < 0.99 {
			t.Errorf("%+v: %d allowed, ideal %d", bucket, allowed, ideal)
		}
	}
}

// TestTakeIsExactInRealTime lets 16 goroutines fight for one bucket for two
// seconds. A refusal proves that all tokens are gone, and from then on none is
// lost unless nobody asks for a second: so what was let through lies between the
// full bucket and what came from the answer of the first refusal to the question
// of the last, and what came from the start to the end.
func TestTakeIsExactInRealTime(t *testing.T) {
	t.Parallel()
	l, _ := withRedis(t)
	bucket := Bucket{Key: "r:1", Rate: 500, Burst: 500}
	var mu sync.Mutex
	allowed, firstRefusal, lastRefusal := 0, time.Duration(0), time.Duration(0)
	l.Take(t.Context(), Bucket{}, []string{"g"}) // connects and loads the script
	start := time.Now()
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for asked := time.Since(start); asked < 2*time.Second; asked = time.Since(start) {
				res := l.Take(t.Context(), bucket, []string{"g"})
				mu.Lock()
				switch {
				case res.Degraded:
					t.Error("Redis did not answer")
				case res.Allowed:
					allowed++
				default:
					if firstRefusal == 0 {
						firstRefusal = time.Since(start)
					}
					lastRefusal = max(lastRefusal, asked)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	ideal := func(d time.Duration) float64 { return 500 + 500*d.Seconds() }
	if low, high := 0.99*ideal(lastRefusal-firstRefusal), 1.01*ideal(time.Since(start)); float64(allowed) < low || float64(allowed) > high || lastRefusal == 0 {
		t.Errorf("%d allowed, want %.0f to %.0f", allowed, low, high)
	}
}

func TestTakeWithoutLimit(t *testing.T) {
	t.Parallel()
	l, rdb := withRedis(t)
	for _, bucket := range []Bucket{{"n:1", 0, 10}, {"n:2", 10, 0}, {"n:3", -1, -1}} {
		for range 20 {
			if res := l.Take(t.Context(), bucket, []string{"gen"}); !res.Allowed || res.Degraded || res.Generation == "" {
				t.Fatalf("%+v: %+v", bucket, res)
			}
		}
		if n := rdb.Exists(t.Context(), bucket.Key).Val(); n != 0 {
			t.Errorf("%+v: counted", bucket)
		}
	}
	if res := l.Take(t.Context(), Bucket{}, nil); !res.Allowed || res.Degraded {
		t.Errorf("nothing asked: %+v", res)
	}
}

func TestGeneration(t *testing.T) {
	t.Parallel()
	l, rdb := withRedis(t)
	other := limiter(t, rdb)
	other.within = l.within
	bucket := Bucket{Key: "g:b", Rate: 1, Burst: 2}
	first := l.Take(t.Context(), bucket, []string{"gen"}).Generation
	if first == "" {
		t.Fatal("no generation was created")
	}
	if got := other.Take(t.Context(), bucket, []string{"gen"}).Generation; got != first {
		t.Errorf("another process sees %q instead of %q", got, first)
	}
	if res := l.Take(t.Context(), bucket, []string{"gen"}); res.Allowed || res.Generation != first {
		t.Errorf("a request that Redis refuses must learn the generation too: %+v", res)
	}
	if got := l.Take(t.Context(), Bucket{}, []string{"gen:2"}).Generation; got == first || got == "" {
		t.Errorf("another tenant's generation is %q", got)
	}
	rdb.Set(t.Context(), "gen:books", "moved", 0)
	if got := l.Take(t.Context(), Bucket{}, []string{"gen", "gen:books"}).Generation; got == first || got == "" {
		t.Errorf("after books moved the generation %q is %q", first, got)
	}
	rdb.Del(t.Context(), "gen:books")
	if got := l.Take(t.Context(), Bucket{}, nil).Generation; got != "" {
		t.Errorf("%q came without being asked for", got)
	}
	if err := rdb.Set(t.Context(), "gen", "42", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got := l.Take(t.Context(), Bucket{}, []string{"gen"}).Generation; got != "42" {
		t.Errorf("after a change: %q", got)
	}
	seen := map[string]bool{first: true, "42": true}
	for range 50 {
		if err := rdb.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		got := l.Take(t.Context(), Bucket{}, []string{"gen"}).Generation
		if got == "" || seen[got] {
			t.Fatalf("a flushed Redis answers with the old value %q", got)
		}
		seen[got] = true
	}
}

// A request takes a token from every bucket or from none, and gets the values of the one with the fewest left.
func TestTwoBuckets(t *testing.T) {
	t.Parallel()
	l, _ := withRedis(t)
	user := func(n int) Bucket { return Bucket{Key: fmt.Sprintf("two:user:%d", n), Rate: 1, Burst: 5} }
	all := Bucket{Key: "two:all", Rate: 1, Burst: 8}
	take := func(n int) Result { return l.take(t.Context(), nil, epoch, user(n), all) }
	for i := range 5 {
		if got := take(1); !got.Allowed || got.Bucket != 0 || got.Limit != 5 || got.Remaining != 4-i {
			t.Fatalf("request %d: %+v", i, got)
		}
	}
	for range 3 { // refused by the user's own: costs the others nothing
		if got := take(1); got.Allowed || got.Bucket != 0 || got.Limit != 5 || got.RetryAfter != time.Second {
			t.Fatalf("user: %+v", got)
		}
	}
	for i := range 3 {
		if got := take(2); !got.Allowed || got.Bucket != 1 || got.Limit != 8 || got.Remaining != 2-i {
			t.Fatalf("second user, request %d: %+v", i, got)
		}
	}
	if got := take(2); got.Allowed || got.Bucket != 1 || got.Limit != 8 || got.RetryAfter != time.Second {
		t.Fatalf("all: %+v", got)
	}
	if got := l.take(t.Context(), nil, epoch, user(2), Bucket{}); !got.Allowed || got.Remaining != 1 || got.Bucket != 0 {
		t.Fatalf("the refusal by the common bucket cost the user's own: %+v", got)
	}
	if got := l.take(t.Context(), nil, epoch, Bucket{}, Bucket{Key: "two:none", Rate: 1, Burst: 3}); got.Bucket != 1 || got.Limit != 3 || got.Remaining != 2 {
		t.Fatalf("only the second limits: %+v", got)
	}
}

// TestRefusalsAreRemembered asks far more often than tokens come. Redis may hear of each token twice: when it is taken,
// and when the next request finds none.
func TestRefusalsAreRemembered(t *testing.T) {
	t.Parallel()
	l, rdb := withRedis(t)
	bucket, other := Bucket{Key: "m:1", Rate: 20, Burst: 1}, Bucket{Key: "m:2", Rate: 0.001, Burst: 5}
	l.Take(t.Context(), Bucket{}, []string{"g"}) // connects and loads the script
	var trips trips
	rdb.AddHook(&trips)
	allowed, refused := 0, 0
	for allowed < 4 {
		switch res := l.Take(t.Context(), bucket, []string{"g"}, other); {
		case res.Degraded:
			t.Fatal("Redis did not answer")
		case res.Allowed:
			allowed++
		default:
			refused++
			if res.Limit != 1 || res.Remaining != 0 || res.RetryAfter <= 0 || res.RetryAfter > 50*time.Millisecond || res.Reset != res.RetryAfter {
				t.Fatalf("refused with %+v", res)
			}
		}
	}
	if n := trips.Load(); n > int64(2*allowed) || refused < 4*int(n) {
		t.Errorf("%d round trips for %d allowed and %d refused requests", n, allowed, refused)
	}
	if res := l.Take(t.Context(), other, nil); !res.Allowed || res.Remaining != 0 {
		t.Errorf("a bucket beside the empty one has %+v: refused requests took tokens of it", res)
	}
}

// trips counts the commands sent to Redis.
type trips struct{ atomic.Int64 }

func (n *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		n.Add(1)
		return next(ctx, cmd)
	}
}

func (n *trips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (n *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

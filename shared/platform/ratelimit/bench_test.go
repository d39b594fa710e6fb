package ratelimit

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"
)

// BenchmarkPing is what any round trip costs; compare BenchmarkTake with it.
func BenchmarkPing(b *testing.B) {
	_, rdb := withRedis(b)
	for b.Loop() {
		if err := rdb.Ping(context.Background()).Err(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTake(b *testing.B) {
	l, _ := withRedis(b)
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = "bench:" + strconv.Itoa(i)
	}
	i := 0
	for b.Loop() {
		i++
		if l.Take(context.Background(), Bucket{keys[i%1000], 50, 200}, []string{"bench:generation"}).Degraded {
			b.Fatal("Redis did not answer")
		}
	}
}

// BenchmarkTakeBesidePing alternates the two, so that both meet the same
// machine, and reports the medians and their ratio.
func BenchmarkTakeBesidePing(b *testing.B) {
	l, rdb := withRedis(b)
	ctx := context.Background()
	var ping, take []time.Duration
	for b.Loop() {
		start := time.Now()
		if err := rdb.Ping(ctx).Err(); err != nil {
			b.Fatal(err)
		}
		between := time.Now()
		if l.Take(ctx, Bucket{"bench", 50, 1e6}, []string{"bench:generation"}).Degraded {
			b.Fatal("Redis did not answer")
		}
		ping, take = append(ping, between.Sub(start)), append(take, time.Since(between))
	}
	slices.Sort(ping)
	slices.Sort(take)
	p, t := float64(ping[len(ping)/2].Nanoseconds()), float64(take[len(take)/2].Nanoseconds())
	b.ReportMetric(p/1000, "ping-µs")
	b.ReportMetric(t/1000, "take-µs")
	b.ReportMetric(t/p, "take/ping")
}

// BenchmarkRefused closes the breaker before each request, so that every one
// meets the refusing port.
func BenchmarkRefused(b *testing.B) {
	l := limiter(b, client(b, nowhere(b)))
	l.breaker.pause = noProbe
	for b.Loop() {
		l.breaker.open.Store(false)
		l.Take(context.Background(), bucket, []string{"g"})
	}
}

// BenchmarkBlackHoledFirst likewise meets the silent server every time.
func BenchmarkBlackHoledFirst(b *testing.B) {
	port, _ := blackHole(b)
	l := limiter(b, client(b, port))
	l.breaker.pause = noProbe
	for b.Loop() {
		l.breaker.open.Store(false)
		l.Take(context.Background(), bucket, []string{"g"})
	}
}

func BenchmarkBlackHoledNext(b *testing.B) {
	port, _ := blackHole(b)
	l := limiter(b, client(b, port))
	l.breaker.pause = noProbe
	l.Take(context.Background(), bucket, []string{"g"})
	for b.Loop() {
		l.Take(context.Background(), bucket, []string{"g"})
	}
}

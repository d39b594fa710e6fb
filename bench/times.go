package main

import (
	"context"
	"net/http"
	"time"
)

// measure returns the duration of f in milliseconds.
func measure(f func() error) (float64, error) {
	began := time.Now()
	err := f()
	return since(began), err
}

// repeat returns n durations of f. The first ones warm up caches and connections and are left out.
func repeat(n int, f func() error) (took []float64, err error) {
	took, _, err = alternating(n, f, func() error { return nil })
	return took, err
}

// alternating is repeat for two functions that are called in turn.
func alternating(n int, a, b func() error) (tookA, tookB []float64, err error) {
	warmUp := 1 + n/20
	for range warmUp + n {
		msA, err := measure(a)
		if err != nil {
			return nil, nil, err
		}
		msB, err := measure(b)
		if err != nil {
			return nil, nil, err
		}
		tookA, tookB = append(tookA, msA), append(tookB, msB)
	}
	return tookA[warmUp:], tookB[warmUp:], nil
}

// get returns a function that requests a URL.
func (c *client) get(ctx context.Context, url string) func() error {
	return func() error { return c.call(ctx, http.MethodGet, url, nil, nil) }
}

func since(t time.Time) float64 { return float64(time.Since(t).Nanoseconds()) / 1e6 }

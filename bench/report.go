package main

import (
	"fmt"
	"io"
	"slices"
)

// noisy is the spread of the baseline (p90/p10) above which a ratio is not judged.
const noisy = 1.25

// report prints the figures: name, now, baseline, ratio, bar, verdict, noise.
type report struct {
	w      io.Writer
	failed bool
}

func (r *report) head() { r.row("name", "now", "baseline", "ratio", "bar", "verdict", "noise") }

func (r *report) row(columns ...any) {
	fmt.Fprintf(r.w, "%-44s %12s %12s %8s %9s  %-7s %s\n", columns...)
}

func (r *report) note(format string, args ...any) { fmt.Fprintf(r.w, format+"\n", args...) }

// ratio compares the medians of samples in milliseconds. bar is the maximum ratio; 0 means no bar.
func (r *report) ratio(name string, now, base []float64, bar float64) {
	ratio, noise := median(now)/median(base), percentile(base, 90)/percentile(base, 10)
	verdict, limit := "info", "-"
	if bar > 0 {
		limit = fmt.Sprintf("<= %.2f", bar)
		switch {
		case noise > noisy:
			verdict = "NOISY"
		case ratio > bar:
			verdict = "FAIL"
			r.failed = true
		default:
			verdict = "PASS"
		}
	}
	r.row(name, ms(median(now)), ms(median(base)), fmt.Sprintf("%.2f", ratio), limit, verdict, fmt.Sprintf("%.2f", noise))
}

// atMost judges a value that must not exceed bar.
func (r *report) atMost(name string, now, bar float64, unit string) {
	r.judge(name, now, unit, fmt.Sprintf("<= %g", bar), now <= bar)
}

// atLeast judges a value that must not fall below bar.
func (r *report) atLeast(name string, now, bar float64, unit string) {
	r.judge(name, now, unit, fmt.Sprintf(">= %g", bar), now >= bar)
}

func (r *report) judge(name string, now float64, unit, bar string, pass bool) {
	verdict := "PASS"
	if !pass {
		verdict = "FAIL"
		r.failed = true
	}
	r.row(name, value(now, unit), "-", "-", bar, verdict, "")
}

// info prints a value without judging it.
func (r *report) info(name string, now float64, unit string) {
	r.row(name, value(now, unit), "-", "-", "-", "info", "")
}

func ms(v float64) string { return value(v, "ms") }

func value(v float64, unit string) string {
	switch {
	case v == float64(int64(v)):
		return fmt.Sprintf("%.0f %s", v, unit)
	case v < 10:
		return fmt.Sprintf("%.3f %s", v, unit)
	}
	return fmt.Sprintf("%.1f %s", v, unit)
}

func median(v []float64) float64 { return percentile(v, 50) }

// percentile returns the p-th percentile by nearest rank.
func percentile(v []float64, p int) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[min(len(s)*p/100, len(s)-1)]
}

// Command bench measures Longbox as it runs: the built programs with a private PostgreSQL, Redis and S3 gateway. A
// figure is a ratio to a baseline of the same run, measured in alternation, or an exact count.
//
//	go run ./bench [name ...]
//
// Without names it runs everything, in about a quarter of an hour on an idle machine. It exits with 1 when a bar is
// missed.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// benchmark is a group of figures that can run alone.
type benchmark struct {
	name, what string
	run        func(context.Context, *system, *report) error
}

var benchmarks = []benchmark{
	{"roundtrips", "Postgres round trips of an authenticated GET", roundTrips},
	{"limiter", "the rate limiter against PING, and requests without Redis", limiter},
	{"images", "covers and WebP renditions", images},
	{"start", "start and size of the api function", start},
	{"lambda", "the functions under the Lambda runtime API: start, size, memory", lambda},
	{"idle", "memory of every process of make run", idle},
	{"relay", "10,000 clients of the events stream", relay},
	{"page", "a page through the whole path against the bare ranged GET", pages},
	{"cdn", "evenings of 50 readers behind a CDN", cdnRun},
	{"scan", "libraries of 2,000 and 10,000 books", scans},
	{"scale", "sparse libraries of 1,000, 10,000 and 100,000 books, a million keys", scale},
	{"formats", "a CBZ of 2 GB, a solid RAR and a solid 7z of 500 MB, a PDF of 300 MB", formats},
	{"fixtures", "how the files in FIXTURES are read", fixtures},
	{"cost", "what a page and a scan use, into infra/cost/counters.json", costs},
	{"lists", "lists at 10,000 and 890,000 books", lists},
	{"foreign", "another tenant's id against an unknown id", foreign},
	{"fairness", "the effect on a tenant of another one that sends far too many requests", fairness},
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	failed, err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	if err != nil || failed {
		os.Exit(1)
	}
}

func run(ctx context.Context, names []string) (failed bool, err error) {
	var known []string
	for _, b := range benchmarks {
		known = append(known, b.name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return false, fmt.Errorf("no benchmark %q: there are %s", name, strings.Join(known, ", "))
		}
	}
	s, err := newSystem(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	out := &report{w: os.Stdout}
	out.head()
	for _, b := range benchmarks {
		if len(names) > 0 && !slices.Contains(names, b.name) {
			continue
		}
		began := time.Now()
		out.note("# %s: %s", b.name, b.what)
		if err := b.run(ctx, s, out); err != nil {
			return out.failed, fmt.Errorf("%s: %w", b.name, err)
		}
		out.note("# %s took %.0f s", b.name, time.Since(began).Seconds())
	}
	return out.failed, nil
}

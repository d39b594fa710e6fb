package e2e_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/testkit"
)

// allowance is a bucket of the rate limit, observed from outside. Its content is only known up to the time between
// sending a request and receiving the response.
type allowance struct {
	rate, burst    float64
	least, most    float64 // what remains after the last request
	sent, answered time.Time
	began          time.Time

	mu     sync.Mutex
	passed int // requests let through so far
}

// check checks one response of a sequence of requests.
func (a *allowance) check(t *testing.T, sent time.Time, got answer) {
	t.Helper()
	now := time.Now()
	if a.began.IsZero() {
		a.began, a.sent, a.answered, a.least, a.most = sent, sent, sent, a.burst, a.burst
	}
	a.least = min(a.least+a.rate*sent.Sub(a.answered).Seconds(), a.burst)
	a.most = min(a.most+a.rate*now.Sub(a.sent).Seconds(), a.burst)
	a.sent, a.answered = sent, now
	if !a.counted(got) {
		return
	}
	a.passed++
	a.least--
	a.most--
	remaining, err := strconv.Atoi(got.Header.Get("X-RateLimit-Remaining"))
	if n := float64(remaining); err != nil || n < a.least-1 || n > a.most+1 {
		t.Errorf("answer %d (%d): %q requests remain, want %.1f to %.1f", a.passed, got.Status, got.Header.Get("X-RateLimit-Remaining"), a.least, a.most)
	}
	if limit := got.Header.Get("X-RateLimit-Limit"); limit != strconv.Itoa(int(a.burst)) {
		t.Errorf("limit %q, want %.0f", limit, a.burst)
	}
	if reset := got.Header.Get("X-RateLimit-Reset"); reset != "0" {
		t.Errorf("%d remain, and a token is there in %q s", remaining, reset)
	}
}

// counted reports whether Redis counted the request: if it does not answer in 20 ms, as on a very busy machine,
// requests pass.
func (a *allowance) counted(got answer) bool {
	return got.Header.Get("X-RateLimit-Remaining") != strconv.Itoa(int(a.burst))
}

// exhaust sends the request from several clients at once until it has been refused the given number of times, and
// returns a refusal.
func (a *allowance) exhaust(t *testing.T, refusals int, send func() answer) (refused answer) {
	t.Helper()
	var all sync.WaitGroup
	count := 0
	for range 8 {
		all.Go(func() {
			for range 2000 { // at most, so that the test fails here if the limit is missing
				got := send()
				a.mu.Lock()
				if got.Status == http.StatusTooManyRequests {
					refused = got
					count++
				} else if a.counted(got) {
					a.passed++
				}
				done := count >= refusals
				a.mu.Unlock()
				if done {
					return
				}
			}
		})
	}
	all.Wait()
	if count < refusals {
		t.Fatalf("%d refusals, want %d", count, refusals)
	}
	if most := a.burst + a.rate*time.Since(a.began).Seconds() + 1; float64(a.passed) > most {
		t.Errorf("%d requests passed, want at most %.1f", a.passed, most)
	}
	return refused
}

func wantRefusal(t *testing.T, got answer) {
	t.Helper()
	after, err := strconv.Atoi(got.Header.Get("Retry-After"))
	if err != nil || after < 1 || after > 10 {
		t.Errorf("Retry-After %q", got.Header.Get("Retry-After"))
	}
	if got.Header.Get("X-RateLimit-Remaining") != "0" || got.Header.Get("X-RateLimit-Reset") != "1" {
		t.Errorf("%v", got.Header)
	}
	if body := string(got.Body); !strings.Contains(body, "Too many requests") || !strings.Contains(body, `"retry_after":`) {
		t.Errorf("%s", body)
	}
}

// Every response has exact rate limit headers, for any kind of request. Only the client over the limit is refused.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{limited: true})
	admin, other := s.User(t, "one", "admin"), s.User(t, "one", "reader")
	key := s.Key(t, admin, auth.SeriesRead, auth.BooksRead, auth.PagesRead)
	unknown := "/api/v1/books/" + uuid.NewString()

	user := &allowance{rate: 50, burst: 200}
	for range 5 {
		for _, c := range []struct {
			as           *testkit.Client
			method, path string
			status       int
		}{
			{admin, "GET", "/api/v1/books", 200}, {admin, "GET", unknown, 404}, {key, "GET", "/api/v1/series", 200},
			{admin, "GET", "/api/v1/books?page=none", 400}, {key, "GET", unknown + "/pages/1", 404}, {admin, "GET", unknown + "/thumbnail", 404},
			{admin, "HEAD", unknown + "/file", 404}, {admin, "GET", "/api/v1/nothing", 404}, {admin, "PATCH", "/api/v1/books", 404},
		} {
			sent := time.Now()
			got := s.fetch(t, c.as, c.method, c.path).want(t, c.status)
			user.check(t, sent, got)
		}
	}
	if user.passed < 20 {
		t.Errorf("only %d requests of 45 were counted", user.passed)
	}
	wantRefusal(t, user.exhaust(t, 40, func() answer { return s.fetch(t, admin, "GET", unknown) }))
	for _, path := range []string{"/health", "/api/v1/health"} {
		if got := s.fetch(t, admin, "GET", path).want(t, 200); got.Header.Get("X-RateLimit-Limit") != "" {
			t.Errorf("%s: %v", path, got.Header)
		}
	}
	sent := time.Now()
	(&allowance{rate: 50, burst: 200}).check(t, sent, s.fetch(t, other, "GET", "/api/v1/books").want(t, 200))

	nobody := s.Anonymous(t, "one")
	anonymous := &allowance{rate: 10, burst: 50}
	for i, status := range []int{401, 200} {
		sent := time.Now()
		anonymous.check(t, sent, s.fetch(t, nobody, "GET", []string{"/api/v1/books", "/api/v1/setup/status"}[i]).want(t, status))
	}
	wantRefusal(t, anonymous.exhaust(t, 20, func() answer { return s.fetch(t, nobody, "GET", "/api/v1/setup/status") }))
	s.fetch(t, s.Anonymous(t, "two"), "GET", "/api/v1/setup/status").want(t, 200)
}

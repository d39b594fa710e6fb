package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/ratelimit"
)

// An operation that starts ahead begins before Redis has answered, if the caller's bucket was recently more than half
// full: both then take the time of one. It starts with the last values from Redis. Nothing of the response is sent
// before Redis has confirmed them (see Confirmed). If it does not, the response is dropped and the request is handled
// again from the start.

const (
	expectFor   = time.Minute
	maxExpected = 10_000 // each of callers and tenants
)

// expected caches Redis' last answers about callers' buckets and tenants.
type expected struct {
	mu          sync.Mutex
	callers     map[string]spare // by bucket key
	generations map[uuid.UUID]string
}

// spare is how many requests may start before the bucket is half empty, and how long this is valid.
type spare struct {
	requests int
	until    time.Time
}

// learn records the count of a request. unlimited means that none is refused.
func (e *expected) learn(c counting, res ratelimit.Result, unlimited bool) {
	s := spare{res.Remaining - res.Limit/2, time.Now().Add(expectFor)}
	if unlimited {
		s.requests = math.MaxInt
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if res.Generation == "" || !res.Allowed && !unlimited || s.requests <= 0 {
		delete(e.callers, c.bucket.Key)
		return
	}
	if e.callers == nil || len(e.callers) >= maxExpected || len(e.generations) >= maxExpected {
		e.callers, e.generations = map[string]spare{}, map[uuid.UUID]string{}
	}
	e.callers[c.bucket.Key] = s
	e.generations[c.tenant] = res.Generation
}

// take returns the access generation that the request is expected to have, or "" if its bucket may be empty.
func (e *expected) take(c counting) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.callers[c.bucket.Key]
	if s.requests <= 0 || !time.Now().Before(s.until) {
		return ""
	}
	s.requests--
	e.callers[c.bucket.Key] = s
	return e.generations[c.tenant]
}

// startsAhead reports whether an operation starts ahead.
func (a *API) startsAhead(method, path string) bool {
	return (method == http.MethodGet || method == http.MethodHead) && slices.ContainsFunc(a.ahead, func(p string) bool { return fits(p, path) })
}

// countAndAnswer counts the request of a caller (nil: anonymous) and meanwhile answers it if it starts ahead. It
// returns the count and whether the request was answered. If not, nothing of a response was sent.
func (a *API) countAndAnswer(next http.Handler, w http.ResponseWriter, r *http.Request, host string, c counting,
	cred Credential, caller *auth.Caller) (res ratelimit.Result, answered bool) {
	if caller == nil || !a.startsAhead(r.Method, r.URL.Path) {
		return a.count(r.Context(), c), false
	}
	defer func() { a.expected.learn(c, res, !a.config.RateLimit) }()
	generation := a.expected.take(c)
	if generation == "" {
		return a.count(r.Context(), c), false
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	counted := make(chan ratelimit.Result, 1)
	go func() {
		res := a.count(r.Context(), c)
		counted <- res
		if !res.Allowed && a.config.RateLimit {
			cancel()
		}
	}()
	req := requestOf(ctx)
	header, notes := maps.Clone(w.Header()), len(req.notes)
	req.generation, req.relied = generation, false
	req.out.before = func() bool {
		res = <-counted
		return a.asExpected(w, r, host, c, res)
	}
	defer func() {
		if answered = req.out.begin(); answered {
			return // a panic continues
		}
		if p := recover(); p != nil && p != http.ErrAbortHandler && !isDropped(p) {
			slog.ErrorContext(ctx, "panic in a handler that started ahead; its answer is not used", "panic", p, "stack", string(debug.Stack()))
		}
		req.out.dropped = false
		clear(w.Header())
		maps.Copy(w.Header(), header)
		req.notes, req.err = req.notes[:notes], nil
	}()
	next.ServeHTTP(w, as(r.WithContext(ctx), cred, caller))
	return res, true
}

// asExpected reports whether the started response may be sent.
func (a *API) asExpected(w http.ResponseWriter, r *http.Request, host string, c counting, res ratelimit.Result) bool {
	req := requestOf(r.Context())
	if a.config.RateLimit && !res.Allowed || res.Generation != req.generation && req.relied {
		return false
	}
	if a.identity.Confirm != nil && res.Generation != "" {
		if t, err := active(a.identity.Confirm(r.Context(), host, res.Generation)); err != nil || !t.same(req.tenant) {
			return false
		}
	}
	req.generation = res.Generation
	if a.config.RateLimit && !c.exempt {
		tellLimit(w.Header(), res)
	}
	return true
}

// Confirmed waits until the request of an operation that starts ahead is counted. The operation must return its error
// unchanged: it is then started again if possible. Anything that does more than read, or is shared with other requests,
// must call it first.
func Confirmed(ctx context.Context) error {
	if out := requestOf(ctx).out; out != nil && !out.begin() {
		return errDropped
	}
	return nil
}

// as returns the request with its caller.
func as(r *http.Request, cred Credential, caller *auth.Caller) *http.Request {
	requestOf(r.Context()).note(slog.String("user", caller.AccountID.String()))
	ctx := db.In(r.Context(), caller)
	if cred.Cookie && !cred.Reader {
		ctx = context.WithValue(ctx, cookieKey{}, true)
	}
	return r.WithContext(ctx)
}

// isDropped reports whether a panic only means that the response was dropped: huma panics when it cannot write.
func isDropped(p any) bool {
	err, ok := p.(error)
	return ok && errors.Is(err, errDropped)
}

var errDropped = errors.New("the answer of a handler that started ahead is not used")

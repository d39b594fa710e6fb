package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/events/redistest"
	"github.com/longbox/longbox/shared/platform/ratelimit"
)

// early is an API whose caller has been counted once, so that the next GET starts early.
type early struct {
	*API
	redis     *redis.Client
	tenant    atomic.Pointer[Tenant] // that answers to every host
	caller    auth.Caller
	began     atomic.Int32 // how often a handler did
	confirmed atomic.Int32
	leaves    atomic.Bool // the handler aborts the connection when it cannot write, as one of pages does
}

func newEarly(t *testing.T) *early {
	e := &early{}
	e.tenant.Store(&Tenant{ID: uuid.New(), Name: "one", MaxRequests: 1000})
	e.caller = auth.Caller{Tenant: e.tenant.Load().ID, AccountID: uuid.New()}
	e.redis = redistest.Start(t).Client
	limiter := ratelimit.New(e.redis, slog.New(slog.DiscardHandler)).Patient(10 * time.Second)
	t.Cleanup(limiter.Close)
	host := func(context.Context, string) (Tenant, error) { return *e.tenant.Load(), nil }
	e.API = New(Config{RateLimit: true}, nil, limiter, Identity{
		Tenant:  host,
		Confirm: func(ctx context.Context, h, _ string) (Tenant, error) { return host(ctx, h) },
		Known: func(context.Context, Credential) (*auth.Caller, error) {
			c := e.caller
			c.Entered = true // there is no database to ask
			return &c, nil
		},
	})
	answer := func(w http.ResponseWriter, said string) error {
		e.began.Add(1)
		w.Header().Set("ETag", said)
		if _, err := io.WriteString(w, said); err != nil && e.leaves.Load() {
			panic(http.ErrAbortHandler)
		}
		return nil
	}
	handle := func(method, path string, do func(w http.ResponseWriter, r *http.Request) error) {
		e.Handle(Op{Method: method, Path: path, ID: method + path, Summary: "Early", Tag: "Things", Permission: SignedIn, StartsAhead: method == "GET" && path != "/late"}, do)
	}
	plain := func(w http.ResponseWriter, r *http.Request) error { return answer(w, "of "+TenantOf(r.Context()).Name) }
	handle("GET", "/plain", plain)
	handle("POST", "/plain", plain)
	handle("GET", "/late", plain)
	handle("GET", "/known/{id}", func(w http.ResponseWriter, r *http.Request) error { return answer(w, "under "+Generation(r.Context())) })
	handle("GET", "/waits", func(w http.ResponseWriter, r *http.Request) error {
		e.began.Add(1)
		if err := Confirmed(r.Context()); err != nil {
			return err
		}
		e.confirmed.Add(1)
		return plain(w, r)
	})
	type said struct{ Said string }
	Register(e.API, Op{Method: "GET", Path: "/json", ID: "json", Summary: "Early", Tag: "Things", Permission: SignedIn}.Ahead(),
		func(ctx context.Context, _ *struct{}) (*said, error) {
			e.began.Add(1)
			Header(ctx).Set("ETag", "json")
			return &said{"of " + TenantOf(ctx).Name}, nil
		})
	handle("GET", "/ends", func(_ http.ResponseWriter, r *http.Request) error { // when it is told that nobody waits
		e.began.Add(1)
		select {
		case <-r.Context().Done():
			return r.Context().Err()
		case <-time.After(time.Second): // it passed after all
			return nil
		}
	})
	handle("GET", "/silent", func(http.ResponseWriter, *http.Request) error { e.began.Add(1); return nil })
	handle("GET", "/panics", func(http.ResponseWriter, *http.Request) error { e.began.Add(1); panic("by mistake") })
	if w := e.ask("GET", "/plain"); w.Code != 200 || w.Body.String() != "of one" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	e.began.Store(0)
	return e
}

func (e *early) ask(method, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Header.Set("Authorization", "Bearer a.b.c")
	w := httptest.NewRecorder()
	e.Router.ServeHTTP(w, r)
	return w
}

// empty empties the caller's bucket for the next request, without the API's knowledge: a bucket that is to be full in
// an hour is as empty as can be when it is looked at.
func (e *early) empty(t *testing.T) {
	b := e.counting(httptest.NewRequest("GET", "/plain", nil), *e.tenant.Load(), &e.caller, false).bucket
	if err := e.redis.Set(t.Context(), b.Key, time.Now().Add(time.Hour).UnixMicro(), time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
}

func TestAGetBeginsWhileItIsCounted(t *testing.T) {
	t.Parallel()
	e := newEarly(t)
	w := e.ask("GET", "/plain")
	if w.Code != 200 || w.Body.String() != "of one" || w.Header().Get("X-RateLimit-Limit") != "200" || e.began.Load() != 1 {
		t.Fatalf("%d %v %s, begun %d times", w.Code, w.Header(), w.Body, e.began.Load())
	}
	for _, c := range []struct {
		method, path string
		began        int32 // of the first request, which expects a full bucket
	}{{"GET", "/plain", 1}, {"HEAD", "/plain", 1}, {"GET", "/json", 1}, {"GET", "/silent", 1}, {"GET", "/panics", 1}, {"GET", "/waits", 1}, {"GET", "/ends", 1},
		{"POST", "/plain", 0}, {"GET", "/late", 0}} {
		for _, leaves := range []bool{false, true} {
			e.leaves.Store(leaves)
			for n, want := range []int32{c.began, 0} {
				w := e.refused(t, c.method, c.path, n == 0)
				if w.Code != 429 || w.Header().Get("Retry-After") == "" || w.Header().Get("ETag") != "" || strings.Contains(w.Body.String(), "of one") ||
					w.Header().Get("X-RateLimit-Remaining") != "0" {
					t.Errorf("%v, %d: %d %v %s", c, n, w.Code, w.Header(), w.Body)
				}
				if e.confirmed.Load() != 0 {
					t.Errorf("%v: it was not confirmed and went on", c)
				}
				if e.began.Load() != want {
					t.Errorf("%v, %d: a handler began %d times", c, n, e.began.Load())
				}
			}
		}
	}
}

// refused sends a request with an empty bucket, first when a full one is expected, then when an empty one is.
func (e *early) refused(t *testing.T, method, path string, expected bool) *httptest.ResponseRecorder {
	if e.empty(t); expected {
		e.expect()
	}
	e.began.Store(0)
	e.confirmed.Store(0)
	return e.ask(method, path)
}

// expect makes the API expect a full bucket for the caller's next request.
func (e *early) expect() {
	c := e.counting(httptest.NewRequest("GET", "/plain", nil), *e.tenant.Load(), &e.caller, false)
	e.expected.learn(c, ratelimit.Result{Allowed: true, Limit: 200, Remaining: 200, Generation: "expected"}, false)
}

func TestWhatBeganOnAnOldGenerationIsDoneAgain(t *testing.T) {
	t.Parallel()
	e := newEarly(t)
	key := events.GenerationKey(e.caller.Tenant)
	for n, c := range []struct {
		path, body string
		began      int32
	}{{"/known/1", "under %/", 2}, {"/plain", "of one", 1}} {
		generation := "new" + uuid.NewString()
		if err := e.redis.Set(t.Context(), key, generation, time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
		for _, began := range []int32{c.began, 1} { // the second time it is known
			e.began.Store(0)
			w := e.ask("GET", c.path)
			if want := strings.Replace(c.body, "%", generation, 1); w.Code != 200 || w.Body.String() != want || w.Header().Get("ETag") != want || e.began.Load() != began {
				t.Errorf("%d: %d %v %q, begun %d times", n, w.Code, w.Header(), w.Body, e.began.Load())
			}
		}
	}
}

func TestWhatBeganForAnotherTenantIsDoneAgain(t *testing.T) {
	t.Parallel()
	e := newEarly(t)
	changed := *e.tenant.Load()
	changed.Name, changed.Prefix = "renamed", "new"
	calls := 0
	e.identity.Tenant = func(context.Context, string) (Tenant, error) { calls++; return *e.tenant.Load(), nil }
	e.identity.Confirm = func(context.Context, string, string) (Tenant, error) { return changed, nil }
	for n, path := range []string{"/plain", "/json"} {
		e.began.Store(0)
		if w := e.ask("GET", path); w.Code != 200 || !strings.Contains(w.Body.String(), "of renamed") || strings.Contains(w.Body.String(), "of one") ||
			e.began.Load() != 2 || calls != n+1 {
			t.Errorf("%s: %d %s, begun %d times", path, w.Code, w.Body, e.began.Load())
		}
	}
	changed.Suspended = true
	if w := e.ask("GET", "/plain"); w.Code != 403 || strings.Contains(w.Body.String(), "of ") && !strings.Contains(w.Body.String(), "suspended") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A dropped response is not logged, unless the handler itself failed.
func TestDroppedAnswersAreNoPanics(t *testing.T) {
	var out strings.Builder
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&out, nil)))
	defer slog.SetDefault(before)
	e := newEarly(t)
	changed := *e.tenant.Load()
	changed.Prefix = "new"
	e.identity.Confirm = func(context.Context, string, string) (Tenant, error) { return changed, nil }
	for path, ahead := range map[string]bool{"/plain": false, "/json": false, "/waits": false, "/panics": true} {
		out.Reset()
		e.ask("GET", path)
		if got := strings.Contains(out.String(), "panic in a handler that started ahead"); got != ahead {
			t.Errorf("%s: a panic ahead is logged: %v, want %v: %s", path, got, ahead, out.String())
		}
	}
}

// A host is confirmed by its normalised name: without port, in lower case.
func TestHostsAreConfirmedByTheirName(t *testing.T) {
	t.Parallel()
	e := newEarly(t)
	asked := ""
	e.identity.Confirm = func(_ context.Context, host, _ string) (Tenant, error) { asked = host; return *e.tenant.Load(), nil }
	r := httptest.NewRequest("GET", "http://Books.Example:8081/plain", nil)
	r.Header.Set("Authorization", "Bearer a.b.c")
	w := httptest.NewRecorder()
	if e.Router.ServeHTTP(w, r); w.Code != 200 || asked != "books.example" || e.began.Load() != 1 {
		t.Errorf("%d, confirmed %q, begun %d times", w.Code, asked, e.began.Load())
	}
}

// With an expected bucket, at most half of its tokens are used before Redis answers again.
func TestNoMoreBeginsThanIsExpectedToPass(t *testing.T) {
	t.Parallel()
	e, c := &expected{}, counting{tenant: uuid.New(), bucket: ratelimit.Bucket{Key: "one"}}
	e.learn(c, ratelimit.Result{Allowed: true, Limit: 10, Remaining: 8, Generation: "g"}, false)
	for n := range 5 {
		if got, want := e.take(c), map[bool]string{true: "g"}[n < 3]; got != want {
			t.Errorf("request %d: %q instead of %q", n, got, want)
		}
	}
	for _, res := range []ratelimit.Result{{Allowed: true, Limit: 10, Remaining: 5, Generation: "g"}, {Limit: 10, Generation: "g"}, {Allowed: true, Limit: 10, Remaining: 10}} {
		e.learn(c, ratelimit.Result{Allowed: true, Limit: 10, Remaining: 10, Generation: "g"}, false)
		if e.learn(c, res, false); e.take(c) != "" {
			t.Errorf("after %+v a request begins", res)
		}
	}
}

func TestAPanicAheadIsAnswered(t *testing.T) {
	t.Parallel()
	e := newEarly(t)
	if w := e.ask("GET", "/panics"); w.Code != 500 || w.Header().Get("X-RateLimit-Limit") != "200" || e.began.Load() != 1 {
		t.Errorf("%d %v, begun %d times", w.Code, w.Header(), e.began.Load())
	}
	if w := e.ask("GET", "/silent"); w.Code != 200 || w.Header().Get("X-RateLimit-Limit") != "200" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

func TestFits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{{"/a/{id}", "/a/1", true}, {"/a/{id}", "/a/", false}, {"/a/{id}", "/a", false}, {"/a/{id}", "/a/1/b", false}, {"/a/{id}/b", "/a/1/b", true},
		{"/a/{id}/b", "/a/1/c", false}, {"/a/{id}/b", "/a//b", false}, {"/a", "/a", true}, {"/a", "/b", false}, {"/a", "/a/", false},
		{"GET /a/{id}/{of}", "GET /a/1/2", true}, {"GET /a/{id}/{of}", "HEAD /a/1/2", false}, {"/{prefix}/a", "/x/a", true}} {
		if got := fits(c.pattern, c.path); got != c.want {
			t.Errorf("%s of %s: %v", c.path, c.pattern, got)
		}
	}
}

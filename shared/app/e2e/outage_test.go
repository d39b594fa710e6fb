package e2e_test

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/testkit"
)

func TestPostgresStops(t *testing.T) {
	t.Parallel()
	var l *link
	s := newSystem(t, links{connect: 2 * time.Second, database: func(u string) string { var via string; l, via = newLink(t, u, true); return via }})
	admin := s.as("admin")
	testkit.WriteFile(t, s.folder, "S/a.cbz", testkit.Comic(t, 1, 200, ""))
	s.scan(admin, s.library(admin, "Books", ""))
	b := s.books(admin)["S/a.cbz"]
	progress := "/api/v1/books/" + b.ID.String() + "/progress"
	for name, down := range map[string]func(){"refuses": l.cut, "says nothing": func() { l.cut(); l.silence(t) }} {
		// A client turns pages until a write is refused, and continues after a signal. A later write must not hide that one
		// was lost.
		var acknowledged, unsure atomic.Int64
		refused, resume, written := make(chan bool), make(chan bool), make(chan bool)
		go func() {
			defer close(written)
			again := false
			for n := int64(1); ; n = n%199 + 1 {
				switch r := admin.Do("PUT", progress, map[string]int64{"currentPage": n}); {
				case r.Status == 200:
					acknowledged.Store(n)
					if again {
						return
					}
				case r.Status == 503 && r.Header.Get("Retry-After") != "":
					unsure.Store(n) // it may have been stored while only the response was lost
					if !again {
						close(refused)
						<-resume
						again = true
					}
				default:
					t.Errorf("%s: a write: status %d, %v", name, r.Status, r.Header)
					return
				}
			}
		}()
		testkit.Eventually(t, 20*time.Second, func() bool { return acknowledged.Load() > 5 })
		down()
		var refusals []time.Duration
		for until := time.Now().Add(3 * time.Second); time.Now().Before(until); {
			for _, path := range []string{"/books", "/series", "/auth/me", "/books/" + b.ID.String() + "/thumbnail", "/books/" + b.ID.String() + "/pages/1?width=20"} {
				began := time.Now()
				a := s.fetch(t, admin, "GET", "/api/v1"+path)
				a.problem(t, 503)
				refusals = append(refusals, time.Since(began))
				if a.Header.Get("Retry-After") == "" {
					t.Errorf("%s: %s: no Retry-After", name, path)
				}
			}
		}
		slices.Sort(refusals)
		slowest := refusals[len(refusals)-1]
		if median := refusals[len(refusals)/2]; median >= 2500*time.Millisecond || slowest >= 5*time.Second {
			t.Errorf("%s: half of the refusals took more than %s, the slowest %s", name, median, slowest)
		}
		// A function that has just started does not know yet which tenant this host belongs to.
		if a := s.fetch(t, s.Anonymous(t, "one"), "GET", "/api/v1/books"); a.Status != 401 && (programs == "" || a.Status != 503) {
			t.Errorf("%s: a stranger: status %d", name, a.Status)
		}
		if a := s.fetch(t, admin, "GET", "/health"); a.Status != 503 {
			t.Errorf("%s: /health: %d", name, a.Status)
		}
		select {
		case <-refused:
		case <-written:
			t.FailNow()
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: writes go on", name)
		}
		l.cut()
		l.restore(t, true)
		began := time.Now()
		testkit.Eventually(t, 20*time.Second, func() bool { return s.fetch(t, admin, "GET", "/api/v1/books").Status == 200 })
		recovered := time.Since(began)
		var p struct{ CurrentPage int64 }
		// With several instances, one may still wait before it tries the database again.
		testkit.Eventually(t, 20*time.Second, func() bool {
			r := admin.Do("GET", progress, nil)
			if r.Status == 200 {
				r.JSON(&p)
			}
			return r.Status == 200
		})
		if p.CurrentPage != acknowledged.Load() && p.CurrentPage != unsure.Load() {
			t.Errorf("%s: page %d is stored, but page %d was acknowledged last", name, p.CurrentPage, acknowledged.Load())
		}
		close(resume)
		select {
		case <-written:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: writes do not go again", name)
		}
		t.Logf("%s: the slowest refusal took %s, reads went again after %s", name, slowest, recovered)
	}
}

// A router forgets the connections to Postgres: they stay open, but nothing comes over them any more, while new ones
// work. A request gets its answer, or is refused within DATABASE_TIMEOUT, and nobody waits for the old ones again.
func TestPostgresConnectionsFreeze(t *testing.T) {
	t.Parallel()
	var l *link
	s := newSystem(t, links{database: func(u string) string { var via string; l, via = newLink(t, u, true); return via }})
	admin := s.as("admin")
	read := func() (refused int64, slowest time.Duration) {
		var n atomic.Int64
		var all sync.WaitGroup
		times := make(chan time.Duration, 20)
		for range cap(times) {
			all.Go(func() {
				began := time.Now()
				a := s.fetch(t, admin, "GET", "/api/v1/books")
				times <- time.Since(began)
				if a.Status == 503 && a.Header.Get("Retry-After") != "" {
					n.Add(1)
				} else if a.Status != 200 {
					t.Errorf("status %d", a.Status)
				}
			})
		}
		all.Wait()
		close(times)
		for took := range times {
			slowest = max(slowest, took)
		}
		return n.Load(), slowest
	}
	if refused, _ := read(); refused > 0 {
		t.Fatalf("%d refused before", refused)
	}
	l.freeze()
	refused, slowest := read()
	// One round trip more in a request that asks for the tenant of the host; the rest is for a busy machine.
	if limit := 2*s.config.Database.Timeout + 5*time.Second; slowest > limit {
		t.Errorf("an answer took %s, want at most %s", slowest, limit)
	}
	if refused == 0 {
		t.Error("no connection was in use")
	}
	again, took := read()
	if again > 0 {
		t.Errorf("%d of the next reads were refused: the old connections are still in the way", again)
	}
	t.Logf("%d refused, the slowest answer took %s, then %s", refused, slowest, took)
}

func TestRedisStops(t *testing.T) {
	t.Parallel()
	var l *link
	s := newSystem(t, links{redis: func(u string) string { var via string; l, via = newLink(t, u, false); return via }})
	admin := s.as("admin")
	testkit.WriteFile(t, s.folder, "S/a.cbz", testkit.Comic(t, 1, 2, ""))
	library := s.library(admin, "Books", "")
	s.scan(admin, library)
	b := s.books(admin)["S/a.cbz"]
	served := func(when string) {
		t.Helper()
		for _, path := range []string{"/books", "/auth/me", "/books/" + b.ID.String() + "/pages/1", "/books/" + b.ID.String() + "/pages/1?width=20",
			"/books/" + b.ID.String() + "/thumbnail", "/books/" + b.ID.String() + "/file"} {
			took := time.Duration(math.MaxInt64)
			for range 3 { // a busy machine may be late once
				began := time.Now()
				s.fetch(t, admin, "GET", "/api/v1"+path).want(t, 200)
				if took = min(took, time.Since(began)); took <= 3*time.Second {
					break
				}
			}
			if took > 3*time.Second {
				t.Errorf("%s: %s took %s", when, path, took)
			}
		}
		admin.Do("PUT", "/api/v1/books/"+b.ID.String()+"/progress", map[string]int{"currentPage": 1}).Want(200)
		name := "user-" + when
		admin.Do("POST", "/api/v1/users", map[string]any{"username": name, "email": name + "@example.org", "password": testkit.Password}).Want(201)
	}
	served("before")
	l.cut()
	served("without")
	if st := s.scan(admin, library); st.Status != "completed" {
		t.Errorf("a scan without Redis: %+v", st)
	}
	l.silence(t) // accepts connections, but never answers
	served("silent")
	if st := s.scan(admin, library); st.Status != "completed" {
		t.Errorf("a scan with a silent Redis: %+v", st)
	}
	l.cut()
	l.restore(t, false)
	served("after")
	// It goes and comes again while somebody reads.
	over, read := make(chan struct{}), make(chan int, 1)
	stop := sync.OnceValue(func() int { close(over); return <-read })
	defer stop()
	go func() {
		n := 0
		defer func() { read <- n }()
		for {
			select {
			case <-over:
				return
			default:
			}
			if a := s.fetch(t, admin, "GET", "/api/v1/books/"+b.ID.String()+"/pages/1"); a.Status != 200 {
				t.Errorf("while Redis goes and comes: status %d: %s", a.Status, a.Body)
				return
			}
			n++
		}
	}()
	for range 20 {
		s.fetch(t, admin, "GET", "/api/v1/books").want(t, 200)
		l.cut()
		s.fetch(t, admin, "GET", "/api/v1/books").want(t, 200)
		l.restore(t, false)
	}
	t.Logf("%d reads while Redis went and came", stop())
}

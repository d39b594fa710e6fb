package e2e_test

import (
	"testing"
	"time"

	"github.com/longbox/longbox/shared/testkit"
)

func TestPostgresStops(t *testing.T) {
	t.Parallel()
	var l *link
	s := newSystem(t, links{database: func(u string) string { var via string; l, via = newLink(t, u, true); return via }})
	admin := s.as("admin")
	testkit.WriteFile(t, s.folder, "S/a.cbz", testkit.Comic(t, 1, 2, ""))
	s.scan(admin, s.library(admin, "Books", ""))
	b := s.books(admin)["S/a.cbz"]
	put := func(n int) answer {
		r := admin.Do("PUT", "/api/v1/books/"+b.ID.String()+"/progress", map[string]int{"currentPage": n})
		return answer{Status: r.Status, Header: r.Header, Body: r.Body}
	}
	put(1).want(t, 200)
	l.cut()
	for _, path := range []string{"/books", "/series", "/auth/me", "/books/" + b.ID.String() + "/thumbnail", "/books/" + b.ID.String() + "/pages/1?width=20"} {
		began := time.Now()
		a := s.fetch(t, admin, "GET", "/api/v1"+path)
		a.problem(t, 503)
		if took := time.Since(began); took > 6*time.Second || a.Header.Get("Retry-After") == "" {
			t.Errorf("%s: after %s, Retry-After %q", path, took, a.Header.Get("Retry-After"))
		}
	}
	if a := put(2); a.Status != 503 || a.Header.Get("Retry-After") == "" {
		t.Errorf("a write: status %d, %v", a.Status, a.Header)
	}
	s.fetch(t, s.Anonymous(t, "one"), "GET", "/api/v1/books").problem(t, 401)
	if a := s.fetch(t, admin, "GET", "/health"); a.Status != 503 {
		t.Errorf("/health: %d", a.Status)
	}
	l.restore(t, true)
	began := time.Now()
	testkit.Eventually(t, 2*time.Second, func() bool { return s.fetch(t, admin, "GET", "/api/v1/books").Status == 200 })
	t.Logf("recovered after %s", time.Since(began))
	var p struct{ CurrentPage int }
	admin.Do("GET", "/api/v1/books/"+b.ID.String()+"/progress", nil).Want(200).JSON(&p)
	if p.CurrentPage != 1 {
		t.Errorf("page %d is stored, but only page 1 was acknowledged", p.CurrentPage)
	}
	put(2).want(t, 200)
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
			began := time.Now()
			s.fetch(t, admin, "GET", "/api/v1"+path).want(t, 200)
			if took := time.Since(began); took > 3*time.Second {
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
	l.restore(t, false)
	served("after")
}

package page_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/longbox/longbox/shared/domain/identity"
	"github.com/longbox/longbox/shared/domain/page"
	"github.com/longbox/longbox/shared/domain/tenant"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/ratelimit"
	"github.com/longbox/longbox/shared/testkit"
)

// A permission that was cached for a key ends with the key, although nothing announces its expiry, and whatever books
// are opened before.
func TestKeyThatEnds(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t)
	id := identity.New(s.DB.App, s.Tokens)
	api := httpapi.New(httpapi.Config{}, s.DB.App, ratelimit.New(testkit.Redis(t), slog.Default()).Patient(10*time.Second), httpapi.Identity{
		Tenant: tenant.NewResolver(s.DB.App, tenant.Config{}).ByHost, Known: id.Known, Resolve: id.Resolve})
	finder := page.NewFinder(s.DB.App)
	book, other := uuid.New(), uuid.New()
	api.Handle(httpapi.Op{Method: "GET", Path: "/book", ID: "book", Permission: auth.BooksRead}, func(w http.ResponseWriter, r *http.Request) error {
		of := book
		if r.URL.Query().Has("other") {
			of = other
		}
		_, err := finder.Find(r.Context(), of, 0)
		return err
	})
	srv := httptest.NewServer(api.Router)
	t.Cleanup(srv.Close)
	exec := func(sql string, args ...any) {
		t.Helper()
		s.DB.Exec(t, sql, args...)
	}
	library, series := uuid.New(), uuid.New()
	exec(`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'L', '/l', 'l', '', 'series_volume', 'filename', 'file_order')`, s.One, library)
	exec(`insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) values ($1, $2, $3, 's', 's', 's', 's', 's')`,
		s.One, series, library)
	exec(`insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title)
		select $1, id, $3, $4, id::text, 10, now(), 'cbz', 't', 't', 't' from unnest($2::uuid[]) id`, s.One, []uuid.UUID{book, other}, library, series)
	u := s.User(t, "one", "reader")
	key, prefix, hash := auth.NewAPIKey()
	exec("insert into api_key (tenant_id, id, account_id, name, prefix, hash, permissions) values ($1, $2, $3, 'k', $4, $5, '{BooksRead}')",
		s.One, uuid.New(), u.ID, prefix, hash)
	u = u.At(&testkit.Server{URL: srv.URL})
	u.Header = http.Header{"X-Api-Key": {key}}

	exec("update api_key set expires_at = now() + interval '5 seconds'")
	u.Do("GET", "/book", nil).Want(200)
	u.Do("GET", "/book?other=", nil).Want(200)
	ended := func() bool { return u.Do("GET", "/book", nil).Status != 200 }
	testkit.Eventually(t, 40*time.Second, ended) // others are cached for a minute
	u.Do("GET", "/book", nil).Want(401)
}

// finding serves the indexes of books, of a book (/book/{id}) and of its pages (/page/{id}), with its own cache.
func finding(t *testing.T, s *testkit.Server, r redis.UniversalClient) *testkit.Server {
	t.Helper()
	id := identity.New(s.DB.App, s.Tokens)
	limiter := ratelimit.New(r, slog.New(slog.DiscardHandler))
	t.Cleanup(limiter.Close)
	api := httpapi.New(httpapi.Config{}, s.DB.App, limiter, httpapi.Identity{
		Tenant: tenant.NewResolver(s.DB.App, tenant.Config{}).ByHost, Known: id.Known, Resolve: id.Resolve})
	finder := page.NewFinder(s.DB.App)
	for name, permission := range map[string]string{"book": auth.BooksRead, "page": auth.PagesRead} {
		api.Handle(httpapi.Op{Method: "GET", Path: "/" + name + "/{id}", ID: name, Permission: permission}, func(w http.ResponseWriter, r *http.Request) error {
			book, err := httpapi.PathID(r)
			if err == nil {
				_, err = finder.Find(r.Context(), book, 0)
			}
			return err
		})
	}
	srv := httptest.NewServer(api.Router)
	t.Cleanup(srv.Close)
	return &testkit.Server{URL: srv.URL}
}

// A cached permission applies only to the same permission, key and unexpired token; and to nothing if Redis does not
// confirm that no access has changed.
func TestWhoWasLetIn(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t)
	client := testkit.Redis(t)
	at := finding(t, s, client)
	library, series, book := uuid.New(), uuid.New(), uuid.New()
	s.DB.Exec(t, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'L', '/l', 'l', '', 'series_volume', 'filename', 'file_order')`, s.One, library)
	s.DB.Exec(t, `insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) values ($1, $2, $3, 's', 's', 's', 's', 's')`,
		s.One, series, library)
	s.DB.Exec(t, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title)
		values ($1, $2, $3, $4, 's/b.cbz', 10, now(), 'cbz', 't', 't', 't')`, s.One, book, library, series)
	asBook, asPage := "/book/"+book.String(), "/page/"+book.String()
	// This creates a generation.
	if err := events.New(client, events.Config{}, nil).ChangeAccess(t.Context(), s.One); err != nil {
		t.Fatal(err)
	}

	u := s.User(t, "one", "reader")
	books, pages := s.Key(t, u, auth.BooksRead).At(at), s.Key(t, u, auth.PagesRead).At(at)
	for range 2 { // found, then cached
		books.Do("GET", asBook, nil).Want(200)
		books.Do("GET", asPage, nil).Want(403)
		pages.Do("GET", asPage, nil).Want(200)
		pages.Do("GET", asBook, nil).Want(403)
	}

	old := s.User(t, "one", "reader").At(at)
	fresh := *old
	s.DB.Exec(t, "update account set generation = 2 where id = $1", old.ID)
	token, err := s.Tokens.Sign(s.One, old.ID, 2, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	fresh.Header = http.Header{"Authorization": {"Bearer " + token}}
	fresh.Do("GET", asBook, nil).Want(200)
	old.Do("GET", asBook, nil).Want(401)

	alone := u.At(finding(t, s, redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})))
	alone.Do("GET", asBook, nil).Want(200)
	s.DB.Exec(t, "update account set is_active = false where id = $1", u.ID)
	alone.Do("GET", asBook, nil).Want(401)
}

// An index cached for one caller is not served to another from whom it is hidden, and hidden books stay hidden in the
// cache.
func TestHiddenBooks(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t)
	client := testkit.Redis(t)
	at := finding(t, s, client)
	library, tag := uuid.New(), uuid.New()
	s.DB.Exec(t, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'L', '/l', 'l', '', 'series_volume', 'filename', 'file_order')`, s.One, library)
	s.DB.Exec(t, "insert into sharing_tag (tenant_id, id, name) values ($1, $2, 'hidden')", s.One, tag)
	paths := map[string]string{}
	for _, name := range []string{"plain", "hidden"} {
		book, series := uuid.New(), uuid.New()
		s.DB.Exec(t, `insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) values ($1, $2, $3, $4, $4, $4, $4, $4)`,
			s.One, series, library, name)
		s.DB.Exec(t, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title)
			values ($1, $2, $3, $4, $5, 10, now(), 'cbz', 't', 't', 't')`, s.One, book, library, series, name)
		if name == "hidden" {
			s.DB.Exec(t, "insert into series_sharing_tag (tenant_id, series_id, sharing_tag_id) values ($1, $2, $3)", s.One, series, tag)
		}
		paths[name] = "/book/" + book.String()
	}
	all, some, key := s.User(t, "one", "reader").At(at), s.User(t, "one", "reader").At(at), s.Key(t, s.User(t, "one", "reader"), auth.BooksRead).At(at)
	deny := func(c *testkit.Client) {
		s.DB.Exec(t, "insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) values ($1, gen_random_uuid(), $2, $3, 'deny')", s.One, tag, c.ID)
	}
	deny(some)
	deny(key)
	publisher := events.New(client, events.Config{}, nil)
	see := func(hidden int, clients ...*testkit.Client) {
		t.Helper()
		for range 3 { // found, cached, and after others
			all.Do("GET", paths["hidden"], nil).Want(200)
			for _, c := range clients {
				c.Do("GET", paths["plain"], nil).Want(200)
				c.Do("GET", paths["hidden"], nil).Want(hidden)
			}
		}
	}
	see(404, some, key)
	s.DB.Exec(t, "delete from sharing_grant where account_id = $1", some.ID)
	if err := publisher.ChangeAccess(t.Context(), s.One); err != nil {
		t.Fatal(err)
	}
	see(200, some)
	see(404, key)
	deny(some)
	if err := publisher.ChangeAccess(t.Context(), s.One); err != nil {
		t.Fatal(err)
	}
	see(404, some, key)
}

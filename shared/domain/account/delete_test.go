package account_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/account"
	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/testkit"
)

// books adds books to the first tenant.
func (s *server) books(t *testing.T, n int) {
	t.Helper()
	library, series := uuid.New(), uuid.New()
	s.exec(t, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'L', '/l', 'b', 'l/', 'series_volume', 'filename', 'file_order')`, s.One, library)
	s.exec(t, `insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
		values ($1, $2, $3, 's', 's', 's', 's', 's')`, s.One, series, library)
	s.exec(t, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title)
		select $1, gen_random_uuid(), $2, $3, n::text, 10, now(), 'cbz', 't', 't', 't' from generate_series(1, $4::integer) n`, s.One, library, series, n)
}

// hasRead makes a user have read all books.
func (s *server) hasRead(t *testing.T, user uuid.UUID) {
	t.Helper()
	s.exec(t, `insert into progress (tenant_id, account_id, book_id, id, current_page) select tenant_id, $1, id, gen_random_uuid(), 1 from book`, user)
	s.exec(t, `insert into completion (tenant_id, id, account_id, book_id, started_at, completed_at)
		select tenant_id, gen_random_uuid(), $1, id, now(), now() from book`, user)
	s.exec(t, `insert into reading_session (tenant_id, account_id, id, book_id, pass, kind, device_id, started_at, ended_at)
		select tenant_id, $1, gen_random_uuid(), id, 1, 'completed', 'd', now(), now() from book`, user)
}

// What a user has read is deleted in steps. If one of them fails, the user is disabled, and the next request continues.
func TestDeleteWhoHasReadMuch(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin, u, other := s.User(t, "one", "admin"), s.User(t, "one", "reader"), s.User(t, "one", "reader")
	s.books(t, 6000)
	s.hasRead(t, u.ID)
	s.hasRead(t, other.ID)
	s.exec(t, `create function refuse() returns trigger language plpgsql as $$ begin
		if (select count(*) from gone) > 5000 or tg_argv[0] = 'all' then raise 'too many rows'; end if; return null; end $$`)
	for _, table := range []string{"progress", "completion", "reading_session"} {
		s.exec(t, "create trigger refuse after delete on "+table+" referencing old table as gone execute function refuse('')")
	}
	s.exec(t, "create trigger never after delete on progress referencing old table as gone execute function refuse('all')")
	at := "/api/v1/users/" + u.ID.String()
	l := signIn(t, s.Anonymous(t, "one"), u.Name, testkit.Password)
	admin.Do("DELETE", at, nil).Want(500)
	if m := admin.Do("GET", at, nil).Want(200).Map(); m["isActive"] != false {
		t.Errorf("a user who is half deleted is active: %v", m)
	}
	u.Do("GET", "/api/v1/user", nil).Want(401)
	admin.Do("PATCH", at, `{"isActive":true}`).Want(200) // the sessions have ended all the same
	u.Do("GET", "/api/v1/user", nil).Want(401)
	s.Anonymous(t, "one").Do("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": l.RefreshToken}).Want(401)
	s.exec(t, "drop trigger never on progress")
	admin.Do("DELETE", at, nil).Want(204)
	admin.Do("GET", at, nil).Want(404)
	for _, table := range []string{"progress", "completion", "reading_session"} {
		if n := s.count(t, "select count(*) from "+table); n != 6000 {
			t.Errorf("%d rows of another user are left in %s", n, table)
		}
	}
}

// A request to delete stops after a while, and says that another one continues.
func TestDeletionTakesLong(t *testing.T) {
	t.Parallel()
	s := serve(t)
	u := s.User(t, "one", "reader")
	s.books(t, 1)
	s.hasRead(t, u.ID)
	err := account.DeleteRead(s.In(s.One), s.DB.App, u.ID, time.Now().Add(-time.Second))
	if f := fault.From(err); f.Code != fault.Unavailable || f.RetryAfter == 0 {
		t.Errorf("%v", err)
	}
	for _, table := range []string{"progress", "completion", "reading_session"} {
		if s.count(t, "select count(*) from "+table) != 1 {
			t.Errorf("rows of %s were deleted after the time was up", table)
		}
	}
}

// While the deletion of a user waits, other administrators go on reading.
func TestAdminsReadDuringADeletion(t *testing.T) {
	t.Parallel()
	s := &server{}
	s.Server = testkit.Serve(t, s.routes(t), progress.Routes)
	admin, second, u := s.User(t, "one", "admin"), s.User(t, "one", "admin"), s.User(t, "one", "reader")
	s.books(t, 1)
	s.hasRead(t, u.ID)
	var book string
	held, err := s.DB.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Rollback(context.Background()) }()
	if err := held.QueryRow(t.Context(), "select book_id::text from progress for update").Scan(&book); err != nil {
		t.Fatal(err)
	}
	deleted := make(chan int)
	go func() { deleted <- admin.Do("DELETE", "/api/v1/users/"+u.ID.String(), nil).Status }()
	s.DB.AwaitLock(t)
	second.Do("PUT", "/api/v1/books/"+book+"/progress", `{"currentPage":2}`).Want(200)
	if err := held.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status := <-deleted; status != 204 {
		t.Errorf("the deletion answers %d", status)
	}
}

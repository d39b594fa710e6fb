package progress_test

import (
	"context"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/testkit"
)

// A client fetches several pages at once and again after a failure: the last one is the place, in whatever order they
// arrive. Going back counts once the client has paused, and at once if it is said rather than guessed.
func TestFetchedPages(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	_, books := shelf(t, s, 3)
	who := s.User(t, "one", "reader")
	fetch := func(book uuid.UUID, pages ...int) {
		t.Helper()
		var all sync.WaitGroup
		for _, n := range pages {
			all.Go(func() {
				if err := progress.Fetched(callerContext(who), s.DB.App, book, n); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	pause := func() {
		t.Helper()
		s.DB.Exec(t, "update reading_session set recorded_at = recorded_at - interval '11 seconds'")
		s.DB.Exec(t, "update progress set updated_at = updated_at - interval '11 seconds'")
	}
	is := func(book uuid.UUID, page float64, completed bool) {
		t.Helper()
		if p := who.Do("GET", "/api/v1/books/"+book.String()+"/progress", nil).Want(200).Map(); p["currentPage"] != page || p["completed"] != completed {
			t.Errorf("the progress is %v, want page %v, completed: %v", p, page, completed)
		}
	}

	fetch(books[0], 5, 4, 3, 2, 1)
	is(books[0], 5, false)
	fetch(books[0], 4)
	pause()
	fetch(books[0], 2) // page 4 has not begun another ten seconds
	is(books[0], 2, false)
	fetch(books[0], 3)
	is(books[0], 3, false)

	fetch(books[1], 8)
	fetch(books[1], 10)
	fetch(books[1], 9)
	is(books[1], 10, true)
	pause()
	fetch(books[1], 9)
	is(books[1], 9, false)

	fetch(books[2], 10)
	if err := progress.Turned(callerContext(who), s.DB.App, books[2], 3); err != nil {
		t.Error(err)
	}
	is(books[2], 3, false)
	fetch(books[2], 4)
	is(books[2], 4, false)
	who.Do("POST", "/api/v1/books/"+books[2].String()+"/unread", nil).Want(204)
	fetch(books[2], 1)
	is(books[2], 1, false)
}

// A write that waits for others of the same user comes after them: the last page, or being read, completes the book
// although a page before it, which was requested later, is stored meanwhile.
func TestWriteThatWaits(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(context.Context, *db.DB, uuid.UUID) error{
		"fetched": func(ctx context.Context, d *db.DB, book uuid.UUID) error { return progress.Fetched(ctx, d, book, 10) },
		"read": func(ctx context.Context, d *db.DB, book uuid.UUID) error {
			_, err := progress.Read(ctx, d, book)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waits(t, write)
		})
	}
}

func waits(t *testing.T, write func(context.Context, *db.DB, uuid.UUID) error) {
	s := testkit.Serve(t, progress.Routes)
	_, books := shelf(t, s, 1)
	who := s.User(t, "one", "reader")
	if err := progress.Fetched(callerContext(who), s.DB.App, books[0], 8); err != nil {
		t.Fatal(err)
	}
	other, err := s.DB.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Rollback(context.Background()) }()
	if _, err := other.Exec(t.Context(), "select from account where id = $1 for update", who.ID); err != nil {
		t.Fatal(err)
	}
	last := make(chan error)
	go func() { last <- write(callerContext(who), s.DB.App, books[0]) }()
	s.DB.AwaitLock(t)
	if _, err := other.Exec(t.Context(), "update reading_session set page = 9, ended_at = clock_timestamp(), recorded_at = clock_timestamp()"); err != nil {
		t.Error(err)
	}
	if err := other.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-last; err != nil {
		t.Error(err)
	}
	if p := who.Do("GET", "/api/v1/books/"+books[0].String()+"/progress", nil).Want(200).Map(); p["currentPage"] != 10.0 || p["completed"] != true {
		t.Errorf("the progress is %v", p)
	}
}

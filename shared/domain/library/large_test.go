package library_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/library"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Of a large library, few books are in another one. A deletion that stops while it looks for them goes on there.
func TestDeletionGoesOnLookingForBooks(t *testing.T) {
	t.Parallel()
	f := serve(t)
	admin := f.User(t, "one", "admin")
	ids := twice(t, f, admin, 5)
	reads(t, f, admin, ids[0], "s/5.cbz")
	old := uuid.MustParse(ids[0])
	calls, err := 0, error(nil)
	for done := false; !done; done = err == nil {
		if calls++; calls > 5 {
			t.Fatalf("after five calls: %v", err)
		}
		if err = library.LeaveIn(f.In(f.One), f.DB.App, old, 2, -time.Second); err != nil && !fault.Is(err, fault.Unavailable) {
			t.Fatal(err)
		}
	}
	var moved int
	if err := f.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from progress p join book b on b.id = p.book_id where b.library_id = $1", ids[1]).Scan(&moved); err != nil || moved != 1 {
		t.Errorf("%d books have moved with their progress, %v", moved, err)
	}
	// After the library was active, what was examined may be different: it starts again.
	f.DB.Exec(t, "update library set is_active = true where id = $1", old)
	reads(t, f, admin, ids[0], "s/1.cbz")
	if err := library.Leave(f.In(f.One), f.DB.App, old, time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := f.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from progress p join book b on b.id = p.book_id where b.library_id = $1", ids[1]).Scan(&moved); err != nil || moved != 2 {
		t.Errorf("%d books have moved with their progress, %v", moved, err)
	}
}

// A deletion that is repeated soon goes on where it was; later, books may have been read meanwhile, and it starts
// again.
func TestDeletionRepeatedLater(t *testing.T) {
	t.Parallel()
	for minutes, want := range map[int]int{9: 1, 11: 2} {
		f := serve(t)
		admin := f.User(t, "one", "admin")
		ids := twice(t, f, admin, 5)
		old := uuid.MustParse(ids[0])
		for _, key := range []string{"s/5.cbz", "s/1.cbz"} {
			reads(t, f, admin, ids[0], key)
			if err := library.Leave(f.In(f.One), f.DB.App, old, time.Minute); err != nil {
				t.Fatal(err)
			}
			f.DB.Exec(t, "update library set left_at = now() - make_interval(mins => $2) where id = $1", old, minutes)
		}
		var moved int
		if err := f.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from progress p join book b on b.id = p.book_id where b.library_id = $1", ids[1]).Scan(&moved); err != nil || moved != want {
			t.Errorf("after %d minutes: %d books have moved with their progress, want %d; %v", minutes, moved, want, err)
		}
	}
}

// Clients are told of a library that is inactive because its deletion has failed before it deleted anything.
func TestFailedDeletionTellsThatTheLibraryIsInactive(t *testing.T) {
	t.Parallel()
	f := serve(t)
	admin := f.User(t, "one", "admin")
	ids := twice(t, f, admin, 1)
	f.DB.Exec(t, "create function public.refuse() returns trigger language plpgsql as $$ begin raise exception 'not now'; end $$")
	f.DB.Exec(t, "create trigger refuse before update on library for each row when (new.left_place <> '') execute function public.refuse()")
	f.events, f.bumped = nil, 0
	admin.Do("DELETE", path+"/"+ids[0], nil).Want(500)
	if l := admin.Do("GET", path+"/"+ids[0], nil).Want(200).Map(); l["isActive"] != false || len(f.events) != 1 || f.events[0] != "library_updated" || f.bumped != 1 {
		t.Errorf("%v: listeners are told of %v, and what is remembered was dropped %d times", l, f.events, f.bumped)
	}
}

// Books with very much that belongs to readers take long to delete: then fewer are deleted at once.
func TestDeletionOfBooksThatTakeLong(t *testing.T) {
	t.Parallel()
	f := serve(t)
	id := uuid.MustParse(twice(t, f, f.User(t, "one", "admin"), 300)[0])
	f.DB.Exec(t, `create function public.slow() returns trigger language plpgsql as $$ begin
		if (select count(*) from gone) > 50 then raise exception 'too many' using errcode = '57014'; end if; return null; end $$`)
	f.DB.Exec(t, "create trigger slow after delete on book referencing old table as gone for each statement execute function public.slow()")
	if _, found, err := library.Remove(f.In(f.One), f.DB.App, id, 200, time.Minute); err != nil || !found {
		t.Errorf("found %v, %v", found, err)
	}
}

// Series without books are deleted in parts, too.
func TestDeletionOfSeriesInParts(t *testing.T) {
	t.Parallel()
	f := serve(t)
	_, id := heirs(t, f, f.User(t, "one", "admin"), 3)
	for want := 2; want >= 0; want-- {
		_, found, err := library.Remove(f.In(f.One), f.DB.App, id, 1, -time.Second)
		var left int
		if err := f.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from series where library_id = $1", id).Scan(&left); err != nil {
			t.Fatal(err)
		}
		if !found || left != want || (err == nil) != (want == 0) {
			t.Errorf("%d series are left, want %d; found %v, %v", left, want, found, err)
		}
	}
}

// A library with very many tasks that wait can be deleted, and listeners are not told of tasks that they never saw.
func TestDeletionWithManyTasks(t *testing.T) {
	t.Parallel()
	f := serve(t)
	admin := f.User(t, "one", "admin")
	id := twice(t, f, admin, 1)[0]
	f.DB.Exec(t, `insert into task (tenant_id, id, type, library_id, status, started_at)
		select $1, gen_random_uuid(), 'plugin_auto_match', $2, case when n = 1 then 'running' else 'pending' end, case when n <= 2 then now() end
		from generate_series(1, 600) n`, f.One, id)
	f.events = nil
	admin.Do("DELETE", path+"/"+id, nil).Want(204)
	if want := []string{"task_progress", "task_progress", "library_deleted"}; !slices.Equal(f.events, want) {
		t.Errorf("listeners are told of %d events, want %v", len(f.events), want)
	}
}

// Cancelling many tasks takes long, however few books are deleted with it: it has no statement timeout.
func TestDeletionMayCancelForLong(t *testing.T) {
	t.Parallel()
	f := serve(t)
	admin := f.User(t, "one", "admin")
	id := uuid.MustParse(twice(t, f, admin, 1)[0])
	f.DB.Exec(t, `create function public.hurry() returns trigger language plpgsql as $$ begin
		if current_setting('statement_timeout') <> '0' then raise exception 'there are only %', current_setting('statement_timeout'); end if; return null; end $$`)
	f.DB.Exec(t, "create trigger hurry after update on task for each statement execute function public.hurry()")
	d, err := db.Open(db.Config{URL: f.DB.AppURL + "&app.request_timeout=1min", MaxConns: 1, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	ctx := db.In(t.Context(), &auth.Caller{Tenant: f.One, AccountID: admin.ID})
	if _, found, err := library.Remove(ctx, d, id, 200, time.Minute); err != nil || !found {
		t.Errorf("found %v, %v", found, err)
	}
}

package library_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/testkit"
)

// A scan of the heirs' library writes to several of them in any order: there is no deadlock.
func TestHeirsAreWrittenByAScan(t *testing.T) {
	t.Parallel()
	f := serve(t)
	admin := f.User(t, "one", "admin")
	was, is := heirs(t, f, admin, 2)
	f.DB.Exec(t, "update series set summary = 'mine' where library_id = $1", was)
	batch, err := f.DB.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = batch.Rollback(context.WithoutCancel(t.Context())) }()
	write := func(sql, path string) {
		t.Helper()
		if _, err := batch.Exec(t.Context(), sql, is, path); err != nil {
			t.Error(err)
		}
	}
	write("select from library_count where library_id = $1 and $2 <> '' for update", "s2")
	write("update series set publisher = 'new' where library_id = $1 and path = $2", "s2")
	answer := make(chan *testkit.Response, 1)
	go func() { answer <- admin.Do("DELETE", path+"/"+was.String(), nil) }()
	f.DB.AwaitLock(t)
	write("update series set publisher = 'new' where library_id = $1 and path = $2", "s1")
	if err := batch.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	(<-answer).Want(204)
	var n int
	if err := f.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from series where publisher = 'new' and summary = 'mine'").Scan(&n); err != nil || n != 2 {
		t.Errorf("%d series are as both have written them: %v", n, err)
	}
}

// A series whose heir's library is locked by another transaction stays until that has ended, unless nobody has waited
// before.
func TestHeirsThatAreHeld(t *testing.T) {
	t.Parallel()
	f := serve(t)
	admin := f.User(t, "one", "admin")
	was, is := heirs(t, f, admin, 1)
	drop := func() (n int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(f.In(f.One), 10*time.Second)
		defer cancel()
		if _, err := db.Exec(ctx, f.DB.App, "select app.drop_empty_series(array(select id from series where tenant_id = app.tenant() and library_id = $1))", was); err != nil {
			t.Error(err)
		}
		return rated(t, f, was)
	}
	batch, err := f.DB.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, held := batch.Exec(t.Context(), "select from library_count where library_id = $1 for update", is)
	_, wrote := batch.Exec(t.Context(), "update series set publisher = 'new' where library_id = $1", is)
	if n := drop(); n != 1 {
		t.Error("the series is gone")
	}
	if err := errors.Join(held, wrote, batch.Commit(t.Context())); err != nil {
		t.Error(err)
	}
	if n := drop(); n != 0 || rated(t, f, is) != 1 {
		t.Errorf("%d series stay", n)
	}
}

// Somebody rates a series while what belongs to it is handed over: the rating is refused, or the heir gets it.
func TestRatingOfASeriesThatIsHandedOver(t *testing.T) {
	t.Parallel()
	f := serve(t)
	was, is := heirs(t, f, f.User(t, "one", "admin"), 1)
	f.DB.Exec(t, "update series set summary = 'mine' where library_id = $1", was)
	edit, err := f.DB.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = edit.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := edit.Exec(t.Context(), "update series set publisher = 'new' where library_id = $1", is); err != nil {
		t.Fatal(err)
	}
	dropped := make(chan error, 1)
	go func() {
		_, err := db.Exec(f.In(f.One), f.DB.App, "select app.drop_empty_series(array(select id from series where tenant_id = app.tenant() and library_id = $1))", was)
		dropped <- err
	}()
	f.DB.AwaitLock(t)
	_, refused := f.DB.Owner.Pool().Exec(t.Context(), `with patience as materialized (select set_config('lock_timeout', '100ms', true))
		insert into series_rating (tenant_id, account_id, series_id, id, rating) select s.tenant_id, $2, s.id, gen_random_uuid(), 10
		from patience, series s where s.library_id = $1`, was, f.User(t, "one", "reader").ID)
	if err := errors.Join(edit.Commit(t.Context()), <-dropped); err != nil {
		t.Fatal(err)
	}
	if n := rated(t, f, is); refused == nil && n != 2 || refused != nil && n != 1 {
		t.Errorf("the heir has %d ratings, refused: %v", n, refused)
	}
}

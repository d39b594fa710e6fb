package scanner_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/testkit"
)

// A reader sends progress for the book under whose new name the old one comes back, at that very moment.
func TestReaderAtTheMomentOfAMove(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "A/1.cbz", testkit.Comic(t, 1, 3, ""))
	r.scanned("normal")
	ctx := r.ctx()
	account := uuid.New()
	r.db.Exec(t, "insert into account (tenant_id, id, username, email, password_hash, role) values ($1, $2, 'zoe', 'zoe@example.org', 'x', 'reader')", r.tenant, account)
	was := values[uuid.UUID](r, "select id from book where tenant_id = app.tenant()")[0]
	now := uuid.New()
	r.db.Exec(t, "update book set deleted_at = now(), key = 'A/old.cbz' where id = $1", was)
	r.db.Exec(t, `insert into book select (jsonb_populate_record(b, jsonb_build_object('id', $2::uuid, 'key', 'A/1.cbz', 'deleted_at', null, 'created_at', now()))).*
		from book b where b.id = $1`, was, now)

	reader, err := r.db.Owner.Pool().Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Rollback(ctx) }()
	if _, err := reader.Exec(ctx, `insert into progress (tenant_id, account_id, book_id, id, current_page, completed, started_at, updated_at)
		values ($1, $2, $3, gen_random_uuid(), 2, false, now(), now())`, r.tenant, account, now); err != nil {
		t.Fatal(err)
	}
	moved := make(chan error, 1)
	go func() {
		moved <- r.db.App.Tx(ctx, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "select app.follow_content($1, null, array[$2::uuid], array[$3::uuid], null)", r.library, was, now)
			return err
		})
	}()
	r.db.AwaitLock(t)
	if err := reader.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-moved; err != nil {
		t.Fatal(err)
	}
	if got := values[uuid.UUID](r, "select id from book where tenant_id = app.tenant() and deleted_at is null"); len(got) != 1 || got[0] != was {
		t.Errorf("books %v, want only %s", got, was)
	}
	if got := values[int32](r, "select current_page from progress where tenant_id = app.tenant()"); len(got) != 1 || got[0] != 2 {
		t.Errorf("the reader's page is lost: %v", got)
	}
}

// A file of the same content that comes to a third library at the moment when a book goes to a second does not take it:
// the third is not locked.
func TestThirdLibraryAtTheMomentOfAMove(t *testing.T) {
	t.Parallel()
	r := newTwo(t)
	was := r.ids()[1]
	third, now := uuid.New(), uuid.New()
	r.exec(`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'c', '/books/c', 'books', 'c/', 'series_volume', 'metadata_first', 'smart')`, r.tenant, third)
	r.exec("insert into library_count (tenant_id, library_id) values ($1, $2) on conflict do nothing", r.tenant, third)
	r.exec(`insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
		select $1, gen_random_uuid(), l, 'New', 'New', 'New', 'New', 'new' from unnest(array[$2, $3]::uuid[]) l`, r.tenant, r.b, third)
	const copied = `insert into book select (jsonb_populate_record(b, jsonb_build_object('id', $2::uuid, 'key', $4::text, 'library_id', $3::uuid, 'deleted_at', null,
		'series_id', (select s.id from series s where s.library_id = $3 and s.path = 'New'), 'created_at', now(), 'first_read_at', now()))).* from book b where b.id = $1`
	r.exec("update book set deleted_at = now() where id = $1", was)
	r.exec("delete from book_metadata where book_id = $1", was)
	r.exec(copied, was, now, r.b, "T/2.cbz")

	batch, err := r.db.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = batch.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := batch.Exec(t.Context(), "select from library_count where library_id = $1 for update", r.b); err != nil {
		t.Fatal(err)
	}
	moved := make(chan error, 1)
	go func() {
		moved <- r.db.App.Tx(r.ctx(), func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "select app.follow_over($1, null, array[$2::uuid])", r.a, was)
			return err
		})
	}()
	r.db.AwaitLock(t)
	if _, err := batch.Exec(t.Context(), copied, was, uuid.New(), third, "T/1.cbz"); err != nil { // which comes first
		t.Fatal(err)
	}
	if err := batch.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-moved; err != nil {
		t.Fatal(err)
	}
	same(t, "the book is in", values[string](r.rig, "select l.name || '/' || b.key from book b join library l on l.id = b.library_id where b.tenant_id = app.tenant() and b.id = $1", was), []string{"b/T/2.cbz"})
	r.counted()
}

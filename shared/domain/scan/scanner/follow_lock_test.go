package scanner_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/testkit"
)

// A reader says something of the book under whose new name the old one comes back, at the moment when that happens.
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

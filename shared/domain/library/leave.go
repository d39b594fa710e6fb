package library

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/scan/follow"
	"github.com/longbox/longbox/shared/platform/db"
)

// Batch sizes of leave: books and series per transaction.
const (
	leaveBooks  = 500
	leaveSeries = 200
)

// leave deactivates a library that is to be deleted. It moves the books with which more than the file would be lost to
// the libraries where their files have appeared since this library was last scanned completely, as if a scan had found
// them gone here. So a person who moves files and then deletes their old library loses nothing that people have read,
// edited or chosen. A book whose very file also belongs to another library moves there too, however long that library
// has had it. moved lists the changes to publish, also if there is an error.
func leave(ctx context.Context, d *db.DB, id uuid.UUID, end time.Time) (moved []follow.Book, err error) {
	for after := ""; ; {
		var b pgx.Batch
		var some []struct {
			ID  uuid.UUID `db:"id"`
			Key string    `db:"key"`
		}
		b.Queue("update library set is_active = false, updated_at = now() where tenant_id = app.tenant() and id = $1 and is_active", id)
		b.Queue("select from library_count where tenant_id = app.tenant() and library_id = $1 for update", id)
		db.NoStatementTimeout(&b)
		db.All(&b, &some, `with used as materialized (
			  select k.id, k.key from book k join library l on l.tenant_id = k.tenant_id and l.id = k.library_id
			  where k.tenant_id = app.tenant() and k.library_id = $1 and k.key > $2 and k.fingerprint <> '' and `+follow.KeptSQL+`
			    and exists (select from book n join library m on m.tenant_id = n.tenant_id and m.id = n.library_id
			      where n.tenant_id = k.tenant_id and n.fingerprint = k.fingerprint and n.fingerprint <> '' and n.library_id <> k.library_id and n.deleted_at is null
			        and (coalesce(n.first_read_at, n.created_at) >= coalesce(l.looked_at, l.created_at) or m.bucket = l.bucket and m.prefix || n.key = l.prefix || k.key))
			  order by k.key limit $3),
			marked as (update book set deleted_at = now(), updated_at = now() where tenant_id = app.tenant() and id in (select id from used) and deleted_at is null)
			select id, key from used order by key`, id, after, leaveBooks)
		if err := d.Run(ctx, &b); err != nil {
			return moved, err
		}
		if len(some) == 0 {
			err := handLeft(ctx, d, id, end, &moved)
			return moved, err
		}
		var ids []uuid.UUID
		for _, k := range some {
			ids, after = append(ids, k.ID), k.Key
		}
		b = pgx.Batch{}
		db.NoStatementTimeout(&b)
		follow.OverLibraries(&b, id, ids, &moved)
		if err := d.Run(ctx, &b); err != nil {
			return moved, err
		}
		if time.Now().After(end) {
			return moved, errTooLarge
		}
	}
}

// handLeft hands over what people have chosen and written for the series of a library to the series where their books
// have gone. These are series that could not move as a whole, because other books are deleted with the library. moved
// lists the changes to publish, also if there is an error.
func handLeft(ctx context.Context, d *db.DB, id uuid.UUID, end time.Time, moved *[]follow.Book) error {
	for {
		more := false
		var b pgx.Batch
		b.Queue("select app.lock_libraries(array[$1::uuid])", id)
		db.NoStatementTimeout(&b)
		db.Value(&b, &more, "select app.hand_library($1, $2)", id, leaveSeries)
		follow.Heirs(&b, moved)
		if err := d.Run(ctx, &b); err != nil || !more {
			return err
		}
		if time.Now().After(end) {
			return errTooLarge
		}
	}
}

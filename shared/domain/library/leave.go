package library

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/scan/follow"
	"github.com/longbox/longbox/shared/platform/db"
)

// Batch sizes of leave: books examined per step; books and series moved per transaction.
const (
	examineBooks = 5000
	leaveBooks   = 500
	leaveSeries  = 200
)

// beginSQL deactivates the library. leave starts at the first book, unless an earlier call got further in the last ten
// minutes.
const beginSQL = `update library set is_active = false, updated_at = now(), left_place = '', left_at = now()
	where tenant_id = app.tenant() and id = $1 and (is_active or left_at is null or left_at < now() - interval '10 minutes')`

// leaveSQL marks the next books that must move, and returns them and the last key that it has examined, or null if no
// book was left. Few books are in other libraries, so that is examined first. A tenant's only library has no such
// books.
var leaveSQL = `with part as materialized (
	  select k.*, l.bucket, l.prefix, coalesce(l.looked_at, l.created_at) as since from library l
	  join lateral (select * from book b where b.tenant_id = app.tenant() and b.library_id = l.id and b.key > l.left_place order by b.key limit $2) k on true
	  where l.tenant_id = app.tenant() and l.id = $1 and exists (select from library m where m.tenant_id = app.tenant() and m.id <> $1)),
	elsewhere as materialized (
	  select * from part k where k.fingerprint <> '' and exists (select from book n join library m on m.tenant_id = n.tenant_id and m.id = n.library_id
	    where n.tenant_id = k.tenant_id and n.fingerprint = k.fingerprint and n.fingerprint <> '' and n.library_id <> k.library_id and n.deleted_at is null
	      and (coalesce(n.first_read_at, n.created_at) >= k.since or m.bucket = k.bucket and m.prefix || n.key = k.prefix || k.key))),
	used as materialized (select k.id, k.key from elsewhere k where ` + follow.KeptSQL + ` order by k.key limit $3),
	marked as (update book set deleted_at = now(), updated_at = now() where tenant_id = app.tenant() and id in (select id from used) and deleted_at is null)
	select array(select id from used order by key) as books,
	  case when (select count(*) from used) = $3 then (select max(key) from used) else (select max(key) from part) end as last`

// leave deactivates a library that is to be deleted. It moves the books with which more than the file would be lost to
// the libraries where their files have appeared since this library was last scanned completely, as if a scan had found
// them gone here. So a person who moves files and then deletes their old library loses nothing that people have read,
// edited or chosen. A book whose very file also belongs to another library moves there too, however long that library
// has had it. If it stops at end, the next call continues. moved lists the changes to publish, also if there is an
// error.
func leave(ctx context.Context, d *db.DB, id uuid.UUID, examine int, end time.Time) (moved []follow.Book, err error) {
	for {
		var b pgx.Batch
		var some *struct {
			Books []uuid.UUID `db:"books"`
			Last  *string     `db:"last"`
		}
		b.Queue(beginSQL, id)
		b.Queue("select from library_count where tenant_id = app.tenant() and library_id = $1 for update", id)
		db.NoStatementTimeout(&b)
		db.One(&b, &some, leaveSQL, id, examine, leaveBooks)
		if err := d.Run(ctx, &b); err != nil {
			return moved, err
		}
		if some.Last == nil {
			err := handLeft(ctx, d, id, end, &moved)
			return moved, err
		}
		b = pgx.Batch{}
		db.NoStatementTimeout(&b)
		if len(some.Books) > 0 {
			follow.OverLibraries(&b, id, some.Books, &moved)
		}
		b.Queue("update library set left_place = $2, left_at = now() where tenant_id = app.tenant() and id = $1", id, *some.Last)
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

package book

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// maxBulk is the maximum number of books or series per request.
const maxBulk = 100

// BulkChanged is the number of books or series that were changed.
type BulkChanged struct {
	UpdatedCount int    `json:"updatedCount" minimum:"0"`
	Message      string `json:"message"`
}

// BulkBody changes the metadata of several books: null clears a field, an absent field stays.
type BulkBody struct {
	BookIDs []uuid.UUID `json:"bookIds" nullable:"false" maxItems:"100" doc:"Unknown ids are ignored"`
	SharedBody
}

// BulkLocks sets or clears locks of several books.
type BulkLocks struct {
	BookIDs []uuid.UUID
	Locks   LockChanges
}

// Schema lists the ids and every lock.
func (BulkLocks) Schema(huma.Registry) *huma.Schema { return BulkLockSchema("bookIds", lockNames) }

// UnmarshalJSON ignores members that are neither ids nor locks.
func (b *BulkLocks) UnmarshalJSON(data []byte) error {
	var ids struct{ BookIDs []uuid.UUID }
	if err := json.Unmarshal(data, &ids); err != nil {
		return err
	}
	b.BookIDs = ids.BookIDs
	return b.Locks.UnmarshalJSON(data)
}

// BulkLockSchema is the schema of an object with a list of ids, and a nullable boolean per name.
func BulkLockSchema(ids string, names []string) *huma.Schema {
	s := LockChangeSchema(names)
	s.Properties[ids] = &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString, Format: "uuid"}, MaxItems: new(maxBulk),
		Description: "Unknown ids are ignored"}
	s.Required = []string{ids}
	return s
}

// bulk registers the operations that change several books at once.
func bulk(a *httpapi.API, d *db.DB, publish events.Publish) {
	op := httpapi.Group{Path: "/api/v1/books/bulk", Tag: "Books"}.For(auth.BooksWrite)
	changed := func(ctx context.Context, at []events.Book, fields []string) *BulkChanged {
		told := make([]events.Event, len(at))
		for i, b := range at {
			told[i] = events.BookUpdated(b, fields...)
		}
		publish(ctx, httpapi.TenantOf(ctx).ID, told...)
		return &BulkChanged{len(at), fmt.Sprintf("%d books were changed", len(at))}
	}
	httpapi.Register(a, op("PATCH", "/metadata", "patchAllBookMetadata", "Update metadata fields of several books and lock the fields that get a value"),
		func(ctx context.Context, in *struct{ Body BulkBody }) (*BulkChanged, error) {
			at, fields, err := amendAll(ctx, d, in.Body.BookIDs, &MetadataBody{SharedBody: in.Body.SharedBody})
			if err != nil {
				return nil, err
			}
			return changed(ctx, at, fields), nil
		})
	httpapi.Register(a, op("PUT", "/metadata/locks", "putAllBookLocks", "Lock or unlock metadata fields of several books"),
		func(ctx context.Context, in *struct{ Body BulkLocks }) (*BulkChanged, error) {
			on, off := SplitLocks(lockNames, in.Body.Locks)
			if len(on)+len(off) == 0 {
				return changed(ctx, nil, nil), nil
			}
			var b pgx.Batch
			var at []events.Book
			lockBooks(&b, in.Body.BookIDs)
			db.All(&b, &at, several, in.Body.BookIDs)
			b.Queue(`insert into book_metadata as m (tenant_id, book_id, locks) select app.tenant(), id, $2 from book
				where tenant_id = app.tenant() and id = any($1) and deleted_at is null order by id
				on conflict (tenant_id, book_id) do update set updated_at = now(),
				  locks = array(select x from unnest(m.locks) x where not x = any($3::text[]) union select unnest($2::text[]))`, in.Body.BookIDs, on, off)
			if err := d.Run(ctx, &b); err != nil {
				return nil, err
			}
			return changed(ctx, at, []string{"locks"}), nil
		})
}

// LockSeries serializes writers of several series with each other, and with scans of their libraries.
func LockSeries(b *pgx.Batch, ids []uuid.UUID) {
	b.Queue("select from library_count where tenant_id = app.tenant() and library_id in (select library_id from series where tenant_id = app.tenant() and id = any($1)) "+
		"order by library_id for update", ids)
	b.Queue("select from series where tenant_id = app.tenant() and id = any($1) order by id for no key update", ids)
}

// lockBooks serializes writers of books in the same library with each other, and with scans of that library.
func lockBooks(b *pgx.Batch, ids []uuid.UUID) {
	b.Queue("select from library_count where tenant_id = app.tenant() and library_id in (select library_id from book where tenant_id = app.tenant() and id = any($1)) "+
		"order by library_id for update", ids)
}

// LockBooks is LockSeries for books.
func LockBooks(b *pgx.Batch, ids []uuid.UUID) {
	lockBooks(b, ids)
	b.Queue("select from book where tenant_id = app.tenant() and id = any($1) order by id for no key update", ids)
}

// several records a change of those of the books $1 that exist, locking them in one order.
const several = `with these as (select id from book where tenant_id = app.tenant() and id = any($1) and deleted_at is null order by id for no key update)
	update book b set updated_at = now() from these where b.tenant_id = app.tenant() and b.id = these.id returning b.id, b.series_id, b.library_id`

// amendAll changes the metadata of several books and locks the fields that get a value.
func amendAll(ctx context.Context, d *db.DB, ids []uuid.UUID, body *MetadataBody) ([]events.Book, []string, error) {
	if err := body.check(); err != nil {
		return nil, nil, err
	}
	c, err := body.change(false)
	if err != nil || len(c.names) == 0 {
		return nil, nil, err
	}
	var b pgx.Batch
	var at []events.Book
	lockBooks(&b, ids)
	db.All(&b, &at, several, ids)
	b.Queue(c.sql("id = any($1)"), c.args(ids)...)
	if err := d.Run(ctx, &b); err != nil {
		return nil, nil, err
	}
	return at, c.names, nil
}

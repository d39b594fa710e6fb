package book

import (
	"context"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Page is one page image of a book.
type Page struct {
	ID         uuid.UUID `json:"id" db:"-" doc:"Id derived from the book's id and the page number"`
	BookID     uuid.UUID `json:"bookId" db:"-"`
	PageNumber int32     `json:"pageNumber" db:"number" minimum:"1"`
	FileName   string    `json:"fileName" db:"name"`
	FileFormat string    `json:"fileFormat" db:"-" example:"jpeg"`
	FileSize   int64     `json:"fileSize" db:"size" doc:"Size of the image in bytes"`
	Width      *int32    `json:"width" db:"width" doc:"Width in pixels; null if not known"`
	Height     *int32    `json:"height" db:"height" doc:"Height in pixels; null if not known"`
	MediaType  string    `json:"mediaType" db:"type" example:"image/jpeg"`
}

// pagesSQL selects pages $2 to $3 of book $1 from the page index.
const pagesSQL = `select ($2 + u.n - 1)::integer as number, u.name, u.type, u.size,
	  case when u.width > 0 then u.width end as width, case when u.height > 0 then u.height end as height
	from page_index i, unnest(i.names[$2:$3], i.types[$2:$3], i.sizes[$2:$3], i.widths[$2:$3], i.heights[$2:$3])
	  with ordinality as u(name, type, size, width, height, n)
	where i.tenant_id = app.tenant() and i.book_id = $1 order by u.n`

// Pages returns a page of the list of page images, and their total. If page sizes are unknown but can be read, it
// queues the task that reads them in the same round trip; the next response has them.
func Pages(ctx context.Context, d *db.DB, added task.Added, id uuid.UUID, limit, offset int) ([]Page, int64, error) {
	var b pgx.Batch
	var out []Page
	var exists bool
	var total, queued int64
	from := min(offset, 1<<30) // beyond the end of every book
	db.Value(&b, &exists, "select exists (select from book where tenant_id = app.tenant() and id = $1 and deleted_at is null)", id)
	db.Value(&b, &total, "select cardinality(names)::bigint from page_index where tenant_id = app.tenant() and book_id = $1", id)
	db.All(&b, &out, pagesSQL, id, from+1, from+limit)
	if err := task.AddNew(&b, task.Measurement(), task.OfUnmeasuredBook(id), &queued); err != nil {
		return nil, 0, err
	}
	if err := d.Run(ctx, &b); err != nil {
		return nil, 0, err
	}
	if !exists {
		return nil, 0, fault.Missing("Book")
	}
	if queued > 0 {
		added.Tell(ctx, httpapi.TenantOf(ctx).ID)
	}
	for i := range out {
		p := &out[i]
		p.BookID, p.ID = id, uuid.NewSHA1(id, []byte(strconv.Itoa(int(p.PageNumber))))
		p.FileFormat, _, _ = strings.Cut(strings.TrimPrefix(p.MediaType, "image/"), "+")
	}
	return out, total, nil
}

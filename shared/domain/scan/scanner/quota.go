package scanner

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/platform/db"
)

// admit removes new books that exceed the tenant's limit, keeping the first ones; existing books are changed and
// deleted regardless of the limit. The database rejects what a concurrent scan adds beyond it.
func (r *run) admit(ctx context.Context, part collected) (collected, int, error) {
	adds := 0
	for _, c := range part.changes {
		if c.New || c.Restored {
			adds++
		}
	}
	if r.library.MaxBooks == nil || adds == 0 {
		return part, 0, nil
	}
	var b pgx.Batch
	var room *int64
	db.Value(&b, &room, "select app.book_room()")
	if err := r.Database.Run(ctx, &b); err != nil {
		return part, 0, err
	}
	if room == nil || *room >= int64(adds) {
		return part, 0, nil
	}
	out := part
	var refused int
	out.changes, refused = within(*room, part.changes)
	return out, refused, nil
}

// within removes the changes that add a book beyond the limit, and counts them.
func within(room int64, changes []change) (in []change, refused int) {
	for _, c := range changes {
		if c.New || c.Restored {
			if room <= 0 {
				refused++
				continue
			}
			room--
		}
		in = append(in, c)
	}
	return in, refused
}

// queueRefused adds to the scan how many files the limit kept out. They may include books whose files are gone: see
// lookAgain in package scan.
func (r *run) queueRefused(b *pgx.Batch, n int) {
	if n == 0 {
		return
	}
	slog.Warn("the tenant's limit of books is reached", "tenant", r.tenant, "library", r.library.ID, "limit", *r.library.MaxBooks, "refused", n)
	b.Queue(`update scan set files_processed = files_processed + $2, files_refused = files_refused + $2, error_count = error_count + $2,
		errors = case when $3::text = any(errors) then errors else (array[$3::text] || errors)[1:$4] end
		where tenant_id = app.tenant() and id = $1`, r.scanID, n, r.full(), scan.ErrorsKept)
}

// full says that the limit has kept files out.
func (r *run) full() string {
	return fmt.Sprintf("The limit of %d books of this library server is reached: some files were not added", *r.library.MaxBooks)
}

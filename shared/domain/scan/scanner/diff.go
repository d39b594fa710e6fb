package scanner

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
)

// known is a book in the database.
type known struct {
	ID       uuid.UUID `db:"id"`
	Key      string    `db:"key"`
	Size     int64     `db:"size"`
	ETag     string    `db:"etag"`
	Modified time.Time `db:"modified_at"`
	Deleted  bool      `db:"deleted"`
	Pending  bool      `db:"pending"` // never analysed, for example because a scan was cancelled
	Failed   bool      `db:"failed"`  // cannot be read
	Seen     time.Time `db:"seen_at"`
	Revision int       `db:"revision"`
}

const knownColumns = `id, key, size, etag, modified_at, deleted_at is not null as deleted,
	not analyzed and error_type is null as pending, error_type is not null as failed, seen_at, revision`

// change is a file that differs from the library's books.
type change struct {
	ID     uuid.UUID
	Object blob.Object // with the key below the library's prefix
	Format string
	Seen   time.Time // when the store was asked
	Known  bool      // a book exists
	// Restored says that the book was marked deleted.
	Restored bool
	New      bool // no book had this key
}

// lostBook is a book whose file is missing, and when the store was asked. If the file was found since, the book has
// another revision.
type lostBook struct {
	ID       uuid.UUID
	Revision int
	Seen     time.Time
}

// difference is the result of comparing one page of the listing, or one look at some keys.
type difference struct {
	seen      int // book files in the listing
	unchanged int
	same      []uuid.UUID // unchanged books
	changes   []change
	vanished  []lostBook
	sidecars  []sidecarChange
	lost      []lostSidecar
	long      []string // beginnings of the paths of books that are left out because their paths are too long
}

// compare compares a page of the listing, requested at seen, with the books in its range of keys, except books in
// folders that could not be listed; now is the time after it. It takes one round trip.
func (r *run) compare(ctx context.Context, l listed, seen time.Time) (d difference, now time.Time, err error) {
	var b pgx.Batch
	var books []known
	var sidecars []knownSidecar
	from, to := strings.TrimPrefix(l.covered.from, r.library.Prefix), strings.TrimPrefix(l.covered.to, r.library.Prefix)
	db.All(&b, &books, `select `+knownColumns+` from book
		where tenant_id = app.tenant() and library_id = $1 and key >= $2 and ($3 = '' or key < $3) order by key`, r.library.ID, from, to)
	r.sidecarsIn(&b, from, to, &sidecars)
	db.Value(&b, &now, "select clock_timestamp()")
	if err := r.Database.Run(ctx, &b); err != nil {
		return difference{}, now, err
	}
	hidden := func(key string) bool {
		return slices.ContainsFunc(l.unlisted, func(folder string) bool { return strings.HasPrefix(r.library.Prefix+key, folder) })
	}
	page, long := r.short(l.page)
	d = r.differ(page, slices.DeleteFunc(books, func(b known) bool { return hidden(b.Key) }), seen)
	d.long = long
	d.sidecars, d.lost = r.differSidecars(page, slices.DeleteFunc(sidecars, func(k knownSidecar) bool { return hidden(k.Key) }), seen)
	return d, now, nil
}

// short returns the objects of a page whose paths can be stored; long contains the beginnings of the other books'
// paths.
func (r *run) short(page []blob.Object) (short []blob.Object, long []string) {
	most := len(r.library.Prefix) + scan.MaxPath
	short = slices.DeleteFunc(slices.Clone(page), func(o blob.Object) bool {
		if len(o.Key) <= most {
			return false
		}
		if _, ok := r.selected(strings.TrimPrefix(o.Key, r.library.Prefix)); ok {
			long = append(long, cut.Bytes(o.Key, most+1))
		}
		return true
	})
	return short, long
}

// differ compares objects with the books of the same keys, both in the order of their keys. A scan analyses books again
// that never were and, with the setting, failed ones; a look leaves both to their pending tasks.
func (r *run) differ(page []blob.Object, books []known, seen time.Time) (d difference) {
	for _, o := range page {
		rel := strings.TrimPrefix(o.Key, r.library.Prefix)
		format, ok := r.selected(rel)
		if !ok {
			continue
		}
		d.seen++
		o.Key = rel
		for len(books) > 0 && books[0].Key < rel {
			d.lose(books[0], seen)
			books = books[1:]
		}
		if len(books) == 0 || books[0].Key != rel {
			d.changes = append(d.changes, change{ID: uuid.Must(uuid.NewV7()), Object: o, Format: format, Seen: seen, New: true})
			continue
		}
		b := books[0]
		books = books[1:]
		pending := (b.Pending || b.Failed && r.retryFailed) && r.scanID != nil
		if r.params.Mode != scan.Deep && !b.Deleted && !pending && b.Size == o.Size && b.ETag == o.ETag && b.Modified.Equal(o.Modified) {
			d.unchanged++
			d.same = append(d.same, b.ID)
			continue
		}
		if b.Seen.After(seen) && (b.Deleted || !pending) { // handled by a later look, which does not read pending books
			d.unchanged++
			continue
		}
		d.changes = append(d.changes, change{ID: b.ID, Object: o, Format: format, Seen: seen, Known: true, Restored: b.Deleted})
	}
	for _, b := range books {
		d.lose(b, seen)
	}
	return d
}

func (d *difference) lose(b known, seen time.Time) {
	if !b.Deleted && !b.Seen.After(seen) {
		d.vanished = append(d.vanished, lostBook{b.ID, b.Revision, seen})
	}
}

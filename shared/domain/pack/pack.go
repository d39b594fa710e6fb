package pack

import (
	"archive/zip"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Maker makes page packs.
type Maker struct {
	Database *db.DB
	Content  *content.Reader // reads the library
	Media    *blob.Store
	Bucket   string
	Publish  events.Publish // publishes the progress of a clean-up
	// Turn is how long a task draws before it makes room for others; zero is a minute. Each turn copies what is stored.
	Turn time.Duration
}

// spare is how much of an invocation's time a task leaves to the page that is being drawn and to the upload; of a short
// one, a quarter.
const spare = time.Minute

// Queue adds the task that makes the pack of a book, unless one is pending or running.
func Queue(b *pgx.Batch, book uuid.UUID, id *uuid.UUID) error {
	return task.Add(b, making(book), id)
}

func making(book uuid.UUID) task.Spec {
	return task.Spec{Type: task.PackBook, BookID: &book, DedupeKey: "pack:" + book.String()}
}

// bookRow is a book to pack.
type bookRow struct {
	Tenant uuid.UUID `db:"tenant_id"`
	Secret []byte    `db:"secret"`
	Quota  *int64    `db:"max_rendition_bytes"`
	// By packs and renditions. By packs only if no measurement was made since the limit was set. 0 without a limit.
	Used        int64     `db:"used"`
	Packed      bool      `db:"packed"`   // there is a pack of this content
	PackKey     string    `db:"pack_key"` // of that pack, like the next ones
	PackSize    int64     `db:"pack_size"`
	PackETag    string    `db:"pack_etag"`
	PackOffsets []int64   `db:"pack_offsets"`
	PackSizes   []int64   `db:"pack_sizes"`
	PackCRCs    []int64   `db:"pack_crcs"`
	Key         string    `db:"key"`
	Bucket      string    `db:"bucket"`
	Prefix      string    `db:"prefix"`
	Size        int64     `db:"size"`
	ETag        string    `db:"etag"`
	Modified    time.Time `db:"modified_at"`
	Fingerprint string    `db:"fingerprint"`
	Names       []string  `db:"names"`
	Offsets     []int64   `db:"offsets"`
	Sizes       []int64   `db:"sizes"`
	Methods     []int16   `db:"methods"`
	CRCs        []int64   `db:"crcs"`
}

// Result is the result of the task.
type Result struct {
	Pages int   `json:"pages"`
	Bytes int64 `json:"bytes"`
}

// Pack handles pack_book tasks.
func (m *Maker) Pack(ctx context.Context, h task.Held) (any, error) {
	if h.BookID == nil {
		return nil, fault.New(fault.BadRequest, "A task of type %s needs a book", task.PackBook)
	}
	b, err := m.find(ctx, *h.BookID)
	if err != nil {
		return nil, err
	}
	if b.Packed {
		lost, err := m.lost(ctx, b)
		incomplete := slices.Contains(b.PackOffsets, notYet)
		if err != nil || !lost && !incomplete {
			return Result{}, err
		}
		if lost || len(b.PackOffsets) != len(b.Names) { // or it is incomplete, and was begun with other pages
			// Without the row, requests read the book itself until the new pack is there.
			if err := remove(ctx, m.Database, m.Media, m.Bucket, *h.BookID, b.PackKey); err != nil {
				return nil, err
			}
			b.Packed = false
		}
	}
	index, entries := b.costly()
	if len(entries) == 0 {
		return Result{}, nil
	}
	need := int64(0)
	for _, e := range entries {
		need += e.Size // 0 for a page that is not drawn yet
	}
	if err := b.fits(max(need, 1)); err != nil {
		return nil, err
	}
	places, o, err := m.write(ctx, b, *h.BookID, index, entries)
	if err != nil {
		return nil, err
	}
	stored, err := m.keep(ctx, b, *h.BookID, places, o)
	if err != nil || !stored {
		return Result{}, err
	}
	if slices.Contains(places.offsets, notYet) {
		return nil, task.Paused(true) // the row says what is missing
	}
	return Result{Pages: places.pages(), Bytes: o.Size}, nil
}

// findBook finds a book, and adds up the tenant's packs only if it has a limit.
const findBook = `select b.tenant_id, t.secret, t.max_rendition_bytes,
		case when t.max_rendition_bytes is null then 0 else greatest(
		    (select coalesce(sum(size), 0) from page_pack o where o.tenant_id = app.tenant() and o.book_id <> b.id),
		    (select bytes from rendition_usage where tenant_id = app.tenant()) - case when k.fingerprint = b.fingerprint then k.size else 0 end)
		  end::bigint as used,
		coalesce(k.fingerprint = b.fingerprint, false) as packed, coalesce(k.offsets, '{}') as pack_offsets, coalesce(k.sizes, '{}') as pack_sizes,
		coalesce(k.crcs, '{}') as pack_crcs, coalesce(k.key, '') as pack_key, coalesce(k.size, 0) as pack_size,
		coalesce(k.etag, '') as pack_etag, b.key, l.bucket, l.prefix, b.size, b.etag, b.modified_at, b.fingerprint,
		p.names, p.offsets, p.sizes, p.methods, p.crcs
		from book b join library l on l.tenant_id = b.tenant_id and l.id = b.library_id join tenant t on t.id = b.tenant_id
		join page_index p on ` + content.SameVersionSQL + `
		left join page_pack k on k.tenant_id = b.tenant_id and k.book_id = b.id
		where b.tenant_id = app.tenant() and b.id = $1 and b.deleted_at is null and b.fingerprint <> ''`

// find returns the book to pack.
func (m *Maker) find(ctx context.Context, book uuid.UUID) (*bookRow, error) {
	b, err := db.Get[bookRow](ctx, m.Database, findBook, book)
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, fault.Missing("Book")
	}
	return b, nil
}

// keep writes the row of the pack stored as o, and deletes the object that becomes unreferenced: that of the previous
// pack, or o itself if it exceeds the limit or the book has other content by now.
func (m *Maker) keep(ctx context.Context, b *bookRow, book uuid.UUID, places places, o blob.Object) (stored bool, err error) {
	// The statement sees the rows before its changes: previous is the key that it overwrites. Only a pack that gets a
	// row is counted.
	more := o.Size
	if b.Packed {
		more = max(0, o.Size-b.PackSize) // that pack is counted, and replaced
	}
	done, err := db.Get[written](ctx, m.Database, `with room as (
		  select case when exists (select from book where tenant_id = app.tenant() and id = $1 and fingerprint = $2)
		    then app.keep_rendition($9) end as fits),
		written as (
		  insert into page_pack (tenant_id, book_id, fingerprint, key, size, etag, offsets, sizes, crcs)
		  select app.tenant(), $1, $2, $3, $4, $5, $6, $7, $8 from room where fits
		  on conflict (tenant_id, book_id) do update set fingerprint = excluded.fingerprint, key = excluded.key, size = excluded.size,
		    etag = excluded.etag, offsets = excluded.offsets, sizes = excluded.sizes, crcs = excluded.crcs, created_at = now())
		select fits, (select key from page_pack where tenant_id = app.tenant() and book_id = $1) as previous from room`,
		book, b.Fingerprint, o.Key, o.Size, o.ETag, places.offsets, places.sizes, places.crcs, more)
	if err != nil || done.Fits == nil || !*done.Fits {
		m.discard(ctx, b.Tenant, book, o.Key)
		if err == nil && done.Fits != nil {
			err = fault.New(fault.Conflict, "No page pack: its %d bytes exceed the space left for renditions. The book can be read without it", o.Size)
		}
		return false, err
	}
	if done.Previous != nil && *done.Previous != o.Key {
		m.discard(ctx, b.Tenant, book, *done.Previous)
	}
	return true, nil
}

// written is the result for a pack's row.
type written struct {
	Fits     *bool   `db:"fits"`     // true: written; false: limit exceeded; nil: the book has other content by now
	Previous *string `db:"previous"` // nil: there was none
}

// discard deletes an unreferenced object, which otherwise only the daily sweep would find. It checks first, since the
// same pack has the same key: another worker may have taken over the task and written the row. A row that is written in
// the moment between refers to a lost pack, which is made again. The deletion goes on if the task was ended.
func (m *Maker) discard(ctx context.Context, tenant, book uuid.UUID, key string) {
	ctx, cancel := blob.Afterwards(db.In(ctx, db.Tenant(tenant)))
	defer cancel()
	named, err := db.GetValue[bool](ctx, m.Database, "select exists (select from page_pack where tenant_id = app.tenant() and book_id = $1 and key = $2)", book, key)
	if err == nil && !named {
		err = m.Media.Delete(ctx, m.Bucket, key)
	}
	if err != nil {
		slog.Warn("cannot delete the object of an unused page pack; the scheduler deletes it in a day or two", "book", book, "key", key, "error", err)
	}
}

// lost reports whether the pack's object differs from its row: the bucket was emptied, or a worker that had lost its
// lease stored it again. Reading one byte tells.
func (m *Maker) lost(ctx context.Context, b *bookRow) (bool, error) {
	_, err := m.Media.ReadRange(ctx, m.Bucket, blob.Object{Key: b.PackKey, Size: b.PackSize, ETag: b.PackETag}, 0, 1)
	if blob.Lost(err) {
		return true, nil
	}
	return false, err
}

// costly returns the pages without a byte range of their own, with their indexes.
func (b *bookRow) costly() (index []int, entries []archive.Entry) {
	for i, name := range b.Names {
		e := archive.Entry{Name: name, Offset: b.Offsets[i], Size: b.Sizes[i], Method: uint16(b.Methods[i]), CRC32: uint32(b.CRCs[i])}
		if !e.Direct() {
			index, entries = append(index, i), append(entries, e)
		}
	}
	return index, entries
}

// fits returns an error if a pack of that size exceeds the tenant's limit.
func (b *bookRow) fits(need int64) error {
	if b.Quota == nil || b.Used+need <= *b.Quota {
		return nil
	}
	return fault.New(fault.Conflict, "No page pack: it needs at least %d bytes, and %d of the %d bytes for renditions are used. The book can be read without it",
		need, b.Used, *b.Quota)
}

// places holds the place of each page of the book in the pack; a negative offset: not in it.
type places struct{ offsets, sizes, crcs []int64 }

// Offsets of pages that are not in the pack.
const (
	never  = -1 // damaged, or has a range of its own in the book
	notYet = -2 // the task continues with it
)

func (p places) pages() (n int) {
	for _, offset := range p.offsets {
		if offset >= 0 {
			n++
		}
	}
	return n
}

// places returns the places of the pages in the incomplete pack, if there is one. index lists the pages for the pack.
func (b *bookRow) places(index []int) places {
	if b.Packed {
		p := places{slices.Clone(b.PackOffsets), slices.Clone(b.PackSizes), slices.Clone(b.PackCRCs)}
		for n, offset := range p.offsets {
			// In a file written anew, with the same pages, a page may no longer need the pack.
			if offset == notYet && !slices.Contains(index, n) {
				p.offsets[n] = never
			}
		}
		return p
	}
	p := places{slices.Repeat([]int64{never}, len(b.Names)), make([]int64, len(b.Names)), make([]int64, len(b.Names))}
	for _, n := range index {
		p.offsets[n] = notYet
	}
	return p
}

// errEnough ends a walk whose task continues later.
var errEnough = errors.New("the task continues later")

// left returns the time until the deadline of ctx; very long if it has none.
func left(ctx context.Context) time.Duration {
	end, ends := ctx.Deadline()
	if !ends {
		return math.MaxInt64
	}
	return time.Until(end)
}

// enough reports whether a task that has drawn pages since then, and must leave so much time, should store them and
// continue in another run.
func (m *Maker) enough(ctx context.Context, since time.Time, leave time.Duration) bool {
	return left(ctx) < leave || task.MustPause(ctx) && time.Since(since) >= cmp.Or(m.Turn, time.Minute)
}

// write stores the pack: the pages of an incomplete one, and those it lacks. A damaged page gets no place in it, and
// neither do later ones if the walk ends there: the other pages need not wait for them. A book without any readable
// page gets no pack.
func (m *Maker) write(ctx context.Context, b *bookRow, book uuid.UUID, index []int, entries []archive.Entry) (places, blob.Object, error) {
	p := b.places(index)
	var missing []archive.Entry
	var at []int // their pages
	for i, n := range index {
		if p.offsets[n] == notYet {
			missing, at = append(missing, entries[i]), append(at, n)
		}
	}
	version := b.Fingerprint
	if b.Packed { // until the new row is there, readers need the old object
		version = fmt.Sprintf("%s|%d", version, len(missing))
	}
	source := blob.Object{Key: b.Prefix + b.Key, Size: b.Size, ETag: b.ETag, Modified: b.Modified}
	leave := min(spare, left(ctx)/4)
	var read error // not of the upload, unless it is unstored
	o, err := m.Media.Upload(ctx, m.Bucket, objectKey(b.Tenant, b.Secret, book, version), "application/zip", func(u *blob.Writer) error {
		w := &writing{book: b, upload: u, zip: zip.NewWriter(media{u}), places: p}
		if read = m.copyStored(ctx, w); read != nil {
			return read
		}
		var damage error      // of the book
		var started time.Time // a solid archive is first read up to the first missing page
		err := m.Content.Walk(ctx, b.Bucket, source, missing, func(i int, content io.Reader) error {
			if started.IsZero() {
				started = time.Now()
			}
			err := w.add(at[i], content)
			if isDamage(err) {
				p.offsets[at[i]] = never
				damage = err
				return nil // a failure of the store is returned by the walk
			}
			if err == nil && m.enough(ctx, started, leave) {
				return errEnough
			}
			return err
		})
		if isDamage(err) {
			damage, err = err, nil
		}
		if errors.Is(err, errEnough) {
			err = nil
		} else {
			for _, n := range at {
				p.offsets[n] = max(p.offsets[n], never)
			}
		}
		if err == nil && damage != nil {
			if p.pages() == 0 {
				err = damage
			} else {
				slog.Warn("page pack made without damaged pages", "book", book, "pages", p.pages(), "of", len(entries), "error", damage)
			}
		}
		if err != nil && !errors.As(err, new(unstored)) {
			err = m.readable(ctx, b.Bucket, source, err)
		}
		read = err
		return errors.Join(err, w.zip.Close())
	})
	if err != nil && (read == nil || errors.As(read, new(unstored))) {
		err = unwritten(ctx, err)
	}
	return p, o, err
}

// unwritten turns a failure of the media bucket into the task's error.
func unwritten(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil, errors.As(err, new(*fault.Error)):
		return err
	case errors.Is(err, blob.ErrDenied):
		return fault.Wrap(err, fault.Conflict, "No page pack: the media bucket refuses access; ask the operator to check its permissions")
	case blob.Lost(err):
		return fault.Wrap(err, fault.Unavailable, "No page pack: the media bucket does not exist, or has lost the beginning of the pack")
	case blob.Unreachable(err):
		return fault.Wrap(err, fault.Unavailable, "No page pack: the media bucket is not reachable at the moment, or has no space left; try again later")
	}
	return fault.Wrap(err, fault.Unavailable, "No page pack: the media bucket cannot be written; the worker's log has the cause")
}

// writing is a pack that is being written.
type writing struct {
	book   *bookRow
	upload *blob.Writer
	zip    *zip.Writer
	places places
}

// add writes page n.
func (w *writing) add(n int, content io.Reader) error {
	f, err := w.zip.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("%05d", n+1), Method: zip.Store})
	if err != nil {
		return err
	}
	if err := w.zip.Flush(); err != nil {
		return err
	}
	if err := w.book.fits(w.upload.Written()); err != nil { // drawn pages may be large
		return err
	}
	offset, sum := w.upload.Written(), crc32.NewIEEE()
	size, err := io.Copy(io.MultiWriter(f, sum), content)
	if err == nil {
		w.places.offsets[n], w.places.sizes[n], w.places.crcs[n] = offset, size, int64(sum.Sum32())
	}
	return err
}

// copyStored writes the pages of the incomplete pack.
func (m *Maker) copyStored(ctx context.Context, w *writing) error {
	if !w.book.Packed {
		return nil
	}
	stored := blob.Object{Key: w.book.PackKey, Size: w.book.PackSize, ETag: w.book.PackETag}
	for n, offset := range w.book.PackOffsets {
		if offset < 0 {
			continue
		}
		content, err := m.Media.Range(ctx, m.Bucket, stored, offset, w.book.PackSizes[n])
		if err != nil {
			return unstored{err}
		}
		if err = errors.Join(w.add(n, content), content.Close()); err != nil {
			return unstored{err}
		}
	}
	return nil
}

// media marks the failures of the media bucket: they say nothing about the book.
type media struct{ *blob.Writer }

func (m media) Write(p []byte) (int, error) {
	n, err := m.Writer.Write(p)
	if err != nil {
		err = unstored{err}
	}
	return n, err
}

type unstored struct{ error }

func (u unstored) Unwrap() error { return u.error }

func isDamage(err error) bool { return errors.As(err, new(*archive.Error)) }

// objectKey returns the key of a book's pack.
func objectKey(tenant uuid.UUID, secret []byte, book uuid.UUID, fingerprint string) string {
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s|%s|pack", book, fingerprint)
	sum := hex.EncodeToString(mac.Sum(nil))
	return tenant.String() + "/pack/" + sum[:2] + "/" + sum
}

// readable turns a failed read of the book into the task's error; one of unknown cause is returned unchanged.
func (m *Maker) readable(ctx context.Context, bucket string, o blob.Object, err error) error {
	const none = "No page pack"
	err = m.Content.Explain(ctx, none, bucket, o, err)
	var a *archive.Error
	switch {
	case errors.As(err, &a):
		return fault.Wrap(err, fault.Conflict, "%s: %s", none, a.Msg)
	case blob.Lost(err):
		return fault.Wrap(err, fault.Conflict, "%s: the book's file is gone or has changed; scan the library", none)
	}
	return err
}

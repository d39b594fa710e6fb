package page

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Index holds where the pages of a book are stored.
type Index struct {
	BookID      uuid.UUID `db:"id"`
	Key         string    `db:"key"`
	Bucket      string    `db:"bucket"`
	Prefix      string    `db:"prefix"`
	Size        int64     `db:"size"`
	ETag        string    `db:"etag"`
	Modified    time.Time `db:"modified_at"`
	Format      string    `db:"format"`
	Fingerprint string    `db:"fingerprint"`
	Analyzed    bool      `db:"analyzed"`
	Error       *string   `db:"error_message"`
	Count       int       `db:"count"` // pages of the book
	First       int       `db:"first"` // page number of the first element of the slices below; 1 if all pages are loaded
	Names       []string  `db:"names"`
	Types       []string  `db:"types"`
	Offsets     []int64   `db:"offsets"`
	Lengths     []int64   `db:"lengths"`
	Packed      []int64   `db:"packed"`
	Sizes       []int64   `db:"sizes"`
	Methods     []int16   `db:"methods"`
	CRCs        []int64   `db:"crcs"`
	PackKey     *string   `db:"pack_key"` // nil if there is no page pack
	PackSize    int64     `db:"pack_size"`
	PackETag    string    `db:"pack_etag"`
	PackOffsets []int64   `db:"pack_offsets"` // of the same pages; negative: not in the pack, but in the book's file
	PackSizes   []int64   `db:"pack_sizes"`
	PackCRCs    []int64   `db:"pack_crcs"`
}

// pages is a range of a book's pages, from and to included.
type pages struct{ from, to int }

var (
	allPages = pages{1, math.MaxInt32}
	noPages  = pages{1, 0}
)

// load returns the index of a book with the places of some pages, or NotFound. It shares the round trip with the
// statements in b.
func load(ctx context.Context, d *db.DB, b *pgx.Batch, book uuid.UUID, part pages) (*Index, error) {
	var i *Index
	queue(b, &i, book, part)
	if err := d.Run(ctx, b); err != nil {
		return nil, err
	}
	if i == nil {
		return nil, fault.Missing("Book")
	}
	return i, nil
}

// Queue adds the query for a book's index with all its pages to a batch; dst is nil if there is no such book.
func Queue(b *pgx.Batch, dst **Index, book uuid.UUID) { queue(b, dst, book, allPages) }

func queue(b *pgx.Batch, dst **Index, book uuid.UUID, part pages) {
	db.One(b, dst, `select b.id, b.key, l.bucket, l.prefix, b.size, b.etag, b.modified_at, b.format, b.fingerprint, b.analyzed, b.error_message,
		coalesce(cardinality(p.names), 0) as count, $2::integer as first,
		coalesce(p.names[$2:$3], '{}') as names, coalesce(p.types[$2:$3], '{}') as types, coalesce(p.offsets[$2:$3], '{}') as offsets,
		coalesce(p.lengths[$2:$3], '{}') as lengths, coalesce(p.packed[$2:$3], '{}') as packed, coalesce(p.sizes[$2:$3], '{}') as sizes,
		coalesce(p.methods[$2:$3], '{}') as methods, coalesce(p.crcs[$2:$3], '{}') as crcs,
		k.key as pack_key, coalesce(k.size, 0) as pack_size, coalesce(k.etag, '') as pack_etag, coalesce(k.offsets[$2:$3], '{}') as pack_offsets,
		coalesce(k.sizes[$2:$3], '{}') as pack_sizes, coalesce(k.crcs[$2:$3], '{}') as pack_crcs
		from book b join library l on l.tenant_id = b.tenant_id and l.id = b.library_id
		left join page_index p on `+content.SameVersionSQL+`
		left join page_pack k on k.tenant_id = b.tenant_id and k.book_id = b.id and k.fingerprint = b.fingerprint
		where b.tenant_id = app.tenant() and b.id = $1 and b.deleted_at is null`, book, part.from, part.to)
}

// has reports whether the place of page n is loaded. Page 0 is the book's file. A missing page may appear by the next
// request, while the book is being analysed.
func (i *Index) has(n int) bool {
	return n < 1 || (n >= i.First && n < i.First+len(i.Names))
}

// costly reports whether page n must be decompressed or drawn. Its page pack may exist by the next request.
func (i *Index) costly(n int) bool {
	if n < i.First || n >= i.First+len(i.Names) {
		return false
	}
	if _, _, ok := i.InPack(n); ok {
		return false
	}
	return !archive.Entry{Method: uint16(i.Methods[n-i.First])}.Direct()
}

// Object returns the version of the file that was analysed.
func (i *Index) Object() blob.Object {
	return blob.Object{Key: i.Prefix + i.Key, Size: i.Size, ETag: i.ETag, Modified: i.Modified}
}

// Entry returns the place of page n, from 1. Beyond the last page it is NotFound, with the reason if the book cannot be
// read.
func (i *Index) Entry(n int) (archive.Entry, error) {
	if n < 1 {
		return archive.Entry{}, fault.Invalid("pageNumber", "pages are counted from 1")
	}
	if n > i.Count {
		switch {
		case i.Error != nil:
			return archive.Entry{}, fault.New(fault.NotFound, "The book cannot be read: %s", *i.Error)
		case !i.Analyzed:
			return archive.Entry{}, fault.New(fault.NotFound, "The book has not been analysed yet; try again shortly")
		case i.Count == 0:
			return archive.Entry{}, fault.New(fault.NotFound, "The book has no pages; read it as a file: /api/v1/books/%s/file", i.BookID)
		}
		return archive.Entry{}, fault.New(fault.NotFound, "Page %d not found: the book has %d", n, i.Count)
	}
	n -= i.First
	return archive.Entry{Name: i.Names[n], Offset: i.Offsets[n], Length: i.Lengths[n], CompressedSize: i.Packed[n], Size: i.Sizes[n],
		Method: uint16(i.Methods[n]), CRC32: uint32(i.CRCs[n])}, nil
}

// InPack returns the place of page n in the book's page pack; ok is false if it is not there.
func (i *Index) InPack(n int) (o blob.Object, e archive.Entry, ok bool) {
	n -= i.First
	if i.PackKey == nil || n < 0 || n >= len(i.PackOffsets) || n >= len(i.Names) || i.PackOffsets[n] < 0 {
		return blob.Object{}, archive.Entry{}, false
	}
	size := i.PackSizes[n]
	return blob.Object{Key: *i.PackKey, Size: i.PackSize, ETag: i.PackETag},
		archive.Entry{Name: i.Names[n], Offset: i.PackOffsets[n], Length: size, CompressedSize: size, Size: size,
			Method: archive.Bare, CRC32: uint32(i.PackCRCs[n])}, true
}

// Tag returns the ETag of page n in a form; "" is the original.
func (i *Index) Tag(n int, form string) string {
	print := i.Fingerprint
	if len(print) > 32 {
		print = print[:32]
	}
	tag := `"` + print + "-" + strconv.Itoa(n)
	if form != "" {
		tag += "-" + form
	}
	return tag + `"`
}

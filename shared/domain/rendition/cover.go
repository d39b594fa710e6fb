package rendition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/domain/cover"
	"github.com/longbox/longbox/shared/domain/page"
	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// coverRow says where the cover of a book, or the picture of a series, is stored, and how covers are made.
type coverRow struct {
	Cover
	ID          uuid.UUID `db:"id"`
	Key         string    `db:"key"`
	Bucket      string    `db:"bucket"`
	Prefix      string    `db:"prefix"`
	Size        int64     `db:"size"`
	ETag        string    `db:"etag"`
	Modified    time.Time `db:"modified_at"`
	Fingerprint string    `db:"fingerprint"` // of the cover: cover.Print, or of a picture
	Offset      *int64    `db:"cover_offset"`
	Length      *int64    `db:"cover_length"`
	Packed      *int64    `db:"cover_packed"`
	Plain       *int64    `db:"cover_plain"`
	Method      *int16    `db:"cover_method"`
	CRC         *int64    `db:"cover_crc"`
	Changed     time.Time `db:"changed_at"` // last change of the book, or of the series that shows it

	borrowed bool // a library or list shows the cover of something in it
}

// coverColumns are the columns of a coverRow: the cover of book b is its uploaded picture u, else the one in its file.
var coverColumns = `b.id, b.key, case when u.id is null then l.bucket else '' end as bucket, l.prefix, coalesce(u.size, b.size) as size, b.etag, b.modified_at,
	coalesce(u.fingerprint, ` + cover.Print + `) as fingerprint,
	case when u.id is null then coalesce(p.cover_offset, p.offsets[1]) else 0 end as cover_offset,
	coalesce(u.size, p.cover_length, p.lengths[1]) as cover_length, coalesce(u.size, p.cover_packed, p.packed[1]) as cover_packed,
	coalesce(u.size, p.cover_size, p.sizes[1]) as cover_plain,
	case when u.id is null then coalesce(p.cover_method, p.methods[1]) else -1 end::smallint as cover_method,
	case when u.id is null then coalesce(p.cover_crc, p.crcs[1]) else 0 end as cover_crc, ` + cover.Settings

// Joins for the cover of book b: ofFile from its file only; ofBook from the chosen picture, else its file.
const (
	ofFile  = " join library l on l.tenant_id = b.tenant_id and l.id = b.library_id left join page_index p on " + content.SameVersionSQL + " left join book_cover u on "
	ofBook  = ofFile + "u.tenant_id = app.tenant() and u.book_id = b.id and b.cover_source = 'custom:' || u.id"
	oneBook = " where b.tenant_id = app.tenant() and b.id = $1 and b.deleted_at is null"
)

// uploadedCovers selects the uploaded pictures of a series or book (of).
func uploadedCovers(of string) string {
	return `select s.id, ''::text as key, ''::text as bucket, ''::text as prefix, c.size, ''::text as etag, c.created_at as modified_at, c.fingerprint,
		  0::bigint as cover_offset, c.size as cover_length, c.size as cover_packed, c.size as cover_plain, -1::smallint as cover_method, 0::bigint as cover_crc, ` + cover.Settings + `,
		  greatest(c.created_at, s.updated_at) as changed_at
		from ` + of + ` s join ` + of + `_cover c on c.tenant_id = app.tenant() and c.` + of + `_id = s.id
		where s.tenant_id = app.tenant() and s.id = $1`
}

// A series shows its uploaded or chosen cover, else a picture beside its books (shared/domain/library), else the cover
// of its first readable book. A library or collection shows the cover of its first series that has one; a read list
// shows that of its first book that has one.
var uploadedCover = uploadedCovers("series") + " and s.cover_source = 'custom:' || c.id"

var (
	pictureCovers = `select s.id, k.key, l.bucket, l.prefix, k.size, k.etag, k.modified_at, k.document->>'fingerprint' as fingerprint,
		  0::bigint as cover_offset, k.size as cover_length, k.size as cover_packed, k.size as cover_plain, -1::smallint as cover_method, 0::bigint as cover_crc, ` + cover.Settings + `, greatest(k.modified_at, s.updated_at) as changed_at
		from series s join sidecar k on k.tenant_id = app.tenant() and k.library_id = s.library_id and k.about = s.path and k.kind = 'cover' and k.document is not null
		join library l on l.tenant_id = s.tenant_id and l.id = s.library_id
		where s.tenant_id = app.tenant() and s.id = $1`
	pictureCover = pictureCovers + " and s.cover_source is distinct from 'first_book' order by k.key limit 1"
	chosenCover  = `select ` + coverColumns + `, greatest(b.updated_at, s.updated_at) as changed_at from series s
		join book b on b.tenant_id = app.tenant() and b.series_id = s.id and b.deleted_at is null
		  and b.id = case when s.cover_source like 'book:%' then substr(s.cover_source, 6)::uuid end` + ofBook + `
		where s.tenant_id = app.tenant() and s.id = $1`
	bookCover   = `select ` + coverColumns + `, b.updated_at as changed_at from book b` + ofBook + oneBook
	fileCover   = `select ` + coverColumns + `, b.updated_at as changed_at from book b` + ofFile + "false" + oneBook
	seriesCover = `select ` + coverColumns + `, greatest(b.updated_at, s.updated_at) as changed_at from (
		  select * from book where tenant_id = app.tenant() and series_id = $1 and deleted_at is null and fingerprint <> '' order by number, title_sort, id limit 1) b
		join series s on s.tenant_id = b.tenant_id and s.id = b.series_id` + ofBook
	libraryCover = firstCover(`select s.id, s.title_sort as place, s.id as member from series s
		where s.tenant_id = app.tenant() and s.library_id = $1 and s.book_count > 0`)
	collectionCover = firstCover(`select m.series_id as id, m.place, m.id as member from collection_member m
		where m.tenant_id = app.tenant() and m.collection_id = $1 and m.series_id is not null`)
	readListCover = firstBookCover(`select m.book_id as id, m.place, m.id as member from collection_member m
		where m.tenant_id = app.tenant() and m.collection_id = $1 and m.book_id is not null`)
	wantedSeriesCover = firstCover(`select w.series_id as id, w.place, w.id as member from wanted w
		where w.tenant_id = app.tenant() and w.account_id = app.account() and $1::uuid is not null and w.series_id is not null`)
	wantedBookCover = firstBookCover(`select w.book_id as id, w.place, w.id as member from wanted w
		where w.tenant_id = app.tenant() and w.account_id = app.account() and $1::uuid is not null and w.book_id is not null`)
)

// seriesCovers are the covers of a series in order of precedence.
var seriesCovers = []string{uploadedCover, chosenCover, pictureCover, seriesCover}

// firstCover selects the cover of the first of some series that has one. of selects their ids, with place and member,
// which order them; only the first thousand are looked at, because a library of texts may have no cover at all.
func firstCover(of string) string {
	covers := make([]string, len(seriesCovers))
	for i, q := range seriesCovers {
		covers[i] = fmt.Sprintf("(select %d as nth, x.* from (%s) x where x.cover_offset is not null and x.fingerprint <> '')", i, strings.ReplaceAll(q, "$1", "o.id"))
	}
	return firstOf(of, strings.Join(covers, " union all ")+" order by nth limit 1")
}

// firstBookCover is firstCover for books.
func firstBookCover(of string) string {
	return firstOf(of, "select * from ("+strings.ReplaceAll(bookCover, "$1", "o.id")+") x where x.cover_offset is not null and x.fingerprint <> ''")
}

// firstOf selects the first cover among those that covers selects for each o.id of of.
func firstOf(of, covers string) string {
	return `select c.id, key, bucket, prefix, size, etag, modified_at, fingerprint, cover_offset, cover_length, cover_packed, cover_plain, cover_method, cover_crc,
		  cover_size, cover_quality, changed_at
		from (` + of + " order by place, member limit 1000) o cross join lateral (" + covers + ") c order by o.place, o.member limit 1"
}

// findCover returns the first cover that queries find, nil if there is none. exists is a query for the owner of the
// cover; without one the error is a 404 that names it by what.
func (m *Maker) findCover(ctx context.Context, what, exists string, queries []string, id uuid.UUID) (*coverRow, error) {
	var b pgx.Batch
	var found bool
	db.Value(&b, &found, exists, id)
	first := queueCovers(&b, queries, id)
	if err := m.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	if !found {
		return nil, fault.Missing(what)
	}
	return first(), nil
}

// queueCovers adds all queries to the batch; first returns the first cover that can be shown, after the batch has run.
func queueCovers(b *pgx.Batch, queries []string, id uuid.UUID) (first func() *coverRow) {
	rows := make([]*coverRow, len(queries))
	for i, q := range queries {
		db.One(b, &rows[i], q, id)
	}
	return func() *coverRow {
		for _, r := range rows {
			if r != nil && r.Offset != nil && r.Fingerprint != "" {
				return r
			}
		}
		return nil
	}
}

// recheck is the Cache-Control of covers. Their address stays while their content may change, so clients revalidate;
// that takes no request to the store.
const recheck = "private, max-age=3600"

// brief is how long the cover of a library or list may be cached: its members change, and differ between users.
const brief = time.Minute

// cache returns the Cache-Control of the cover.
func (row *coverRow) cache() string {
	if row.borrowed {
		return fmt.Sprintf("private, max-age=%d", brief/time.Second)
	}
	return recheck
}

// Cover sends a cover, or a placeholder if it cannot be made.
func (m *Maker) Cover(w http.ResponseWriter, r *http.Request, row *coverRow) error {
	ctx := r.Context()
	tag := row.tag(row.Cover)
	if page.NotModified(w, r, tag, row.cache()) || row.unchanged(w, r, tag) {
		return nil
	}
	t := httpapi.TenantOf(ctx)
	img, err := m.coverImage(ctx, coverKey(t.ID, row.ID, t.Secret, row.Fingerprint, row.Cover), row, row.Cover)
	if standsIn(err) {
		httpapi.Note(ctx, slog.String("placeholder", fault.Line(err.Error())))
		return placeholder(w, r, http.StatusOK)
	}
	if err != nil {
		return err
	}
	if !row.borrowed {
		w.Header().Set("Last-Modified", row.lastModified())
	}
	return m.send(w, r, img, tag, row.cache())
}

// lastModified is the date that stands for the cover: the last change, moved back by up to some months that depend on
// the picture. A series can show another picture although its newest date stays, for example if an old one is deleted.
func (row *coverRow) lastModified() string {
	back := time.Duration(crc32.ChecksumIEEE([]byte(row.tag(row.Cover)))>>8) * time.Second
	return row.Changed.Add(-back).UTC().Format(http.TimeFormat)
}

// unchanged answers 304 to a client that sends no ETag but exactly the date of this cover; the date must match because
// an older cover may have been chosen since. A borrowed cover has no date: another book's may be the same.
func (row *coverRow) unchanged(w http.ResponseWriter, r *http.Request, tag string) bool {
	if row.borrowed || r.Header.Get("If-None-Match") != "" || r.Header.Get("If-Modified-Since") != row.lastModified() {
		return false
	}
	h := w.Header()
	h.Set("ETag", tag)
	h.Set("Last-Modified", row.lastModified())
	h.Set("Cache-Control", recheck)
	w.WriteHeader(http.StatusNotModified)
	return true
}

// tag returns the ETag of the cover.
func (row *coverRow) tag(c Cover) string {
	print, which, _ := strings.Cut(row.Fingerprint, "-")
	if print = print[:min(32, len(print))]; which != "" { // another cover of the same content
		print += "-" + which
	}
	return `"` + print + "-" + c.form() + `"`
}

// coverPatience is how long a request waits for a cover that must be drawn or decompressed. The work goes on, for the
// next request.
const coverPatience = 8 * time.Second

// coverImage returns the stored cover, and makes it if there is none.
func (m *Maker) coverImage(ctx context.Context, key string, row *coverRow, c Cover) (*image, error) {
	img, err := m.stored(ctx, key)
	if err != nil || img != nil {
		return img, err
	}
	if err := m.unmade.recall(key, time.Now()); err != nil {
		return nil, err
	}
	waiting, patience := ctx, cmp.Or(m.Patience, coverPatience)
	if !row.entry().Direct() {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	load := func(ctx context.Context) ([]byte, error) { return m.coverSource(ctx, row) }
	img, err = m.render(waiting, key, c.spec(), true, load, func(context.Context, int) bool { return true })
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		err = page.Undrawn(&archive.Undrawn{Err: fmt.Errorf("rendering takes longer than %s", patience)})
	}
	if standsIn(err) {
		m.unmade.note(key, err, time.Now())
	}
	return img, err
}

// standsIn reports whether a placeholder is shown for an error: for all except failures of the stores.
func standsIn(err error) bool {
	return fault.Is(err, fault.Unprocessable) || fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict) || errors.As(err, new(*archive.Undrawn))
}

// entry returns the archive entry of the picture that the cover is made from.
func (row *coverRow) entry() archive.Entry {
	return archive.Entry{Name: "cover", Offset: *row.Offset, Length: *row.Length, CompressedSize: *row.Packed, Size: *row.Plain,
		Method: uint16(*row.Method), CRC32: uint32(*row.CRC)}
}

// coverSource returns the picture that a cover is made from.
func (m *Maker) coverSource(ctx context.Context, row *coverRow) ([]byte, error) {
	if row.uploaded() {
		return m.uploadedSource(ctx, row)
	}
	return readable(m.Content.Bytes(ctx, row.Bucket, row.object(), row.entry()))
}

// uploaded reports whether the picture was uploaded: then it is in the database, not in a library.
func (row *coverRow) uploaded() bool { return row.Bucket == "" }

func (m *Maker) uploadedSource(ctx context.Context, row *coverRow) ([]byte, error) {
	found, err := db.Get[struct {
		Image []byte `db:"image"`
	}](ctx, m.Database, `select image from series_cover where tenant_id = app.tenant() and series_id = $1 and fingerprint = $2
		union all select image from book_cover where tenant_id = app.tenant() and book_id = $1 and fingerprint = $2`, row.ID, row.Fingerprint)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, fault.Missing("Cover")
	}
	return found.Image, nil
}

// object returns the file that contains the picture.
func (row *coverRow) object() blob.Object {
	return blob.Object{Key: row.Prefix + row.Key, Size: row.Size, ETag: row.ETag, Modified: row.Modified}
}

const placeholderSVG = `<svg xmlns="http://www.w3.org/2000/svg" width="300" height="450" viewBox="0 0 300 450"><rect width="300" height="450" fill="#e5e7eb"/><path d="M110 170h35v110h-35zM155 170h35v110h-35z" fill="#9ca3af"/></svg>`

// placeholder sends an image in place of a cover that does not exist (yet).
func placeholder(w http.ResponseWriter, r *http.Request, status int) error {
	h := w.Header()
	h.Set("Content-Type", "image/svg+xml")
	h.Set("Cache-Control", "private, max-age=60")
	if status != http.StatusOK {
		h.Set("Cache-Control", "no-store")
	}
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Content-Length", strconv.Itoa(len(placeholderSVG)))
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return nil
	}
	_, err := w.Write([]byte(placeholderSVG))
	return err
}

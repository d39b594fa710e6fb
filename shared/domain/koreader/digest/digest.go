package digest

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/epub"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
)

// batch is the number of books per transaction.
const batch = 50

// Maker computes the digests.
type Maker struct {
	Database *db.DB
	Content  *content.Reader // reads the library
	Publish  events.Publish
	Parallel int           // books at once
	Timeout  time.Duration // per book
}

// Result is the result of the task.
type Result struct {
	Books  int64 `json:"books"`  // with a new digest
	Failed int64 `json:"failed"` // file changed, gone, or not readable
}

// place is the checkpoint of the task.
type place struct {
	Result
	After uuid.UUID `json:"after"` // last book read
	Total int64     `json:"total"` // books to do at the start
}

// book is a book to read, with the result.
type book struct {
	ID       uuid.UUID `db:"id"`
	Bucket   string    `db:"bucket"`
	Prefix   string    `db:"prefix"`
	Key      string    `db:"key"`
	Format   string    `db:"format"`
	Size     int64     `db:"size"`
	ETag     string    `db:"etag"`
	Modified time.Time `db:"modified_at"`
	begun    bool
	digest   string // empty: not readable
	spine    []string
}

// missing joins the books without a digest of their current file.
const missing = ` from book b join library l on l.tenant_id = b.tenant_id and l.id = b.library_id
	where b.tenant_id = app.tenant() and b.id > $1 and b.deleted_at is null and not exists (select from koreader_digest d
	  where d.tenant_id = b.tenant_id and d.book_id = b.id and (d.file_size, d.file_etag, d.file_modified) = (b.size, b.etag, b.modified_at))`

// Make handles koreader_digests tasks. A run that pauses or fails has stored its results.
func (m *Maker) Make(ctx context.Context, h task.Held) (any, error) {
	var at place
	if err := h.Resume(&at); err != nil {
		return nil, err
	}
	for {
		var b pgx.Batch
		var books []book
		db.All(&b, &books, "select b.id, l.bucket, l.prefix, b.key, b.format, b.size, b.etag, b.modified_at"+missing+" order by b.id limit $2", at.After, batch)
		if at.Total == 0 {
			db.Value(&b, &at.Total, "select count(*)"+missing, at.After)
		}
		if err := m.Database.Run(ctx, &b); err != nil {
			return nil, err
		}
		if len(books) == 0 {
			return at.Result, nil
		}
		failure := m.read(ctx, books)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		done, err := m.store(ctx, h, books, &at)
		if err := errors.Join(failure, err); err != nil {
			return nil, err
		}
		m.Publish(ctx, h.Tenant, task.ProgressEvent(h, at.Books+at.Failed, at.Total))
		if done < len(books) || task.MustPause(ctx) {
			return nil, task.Paused(at)
		}
	}
}

// read computes the digests, of all books or, if the time is up, of the first ones. A broken file does not affect the
// others; an error is a failure of the store, and the remaining books are left to do.
func (m *Maker) read(ctx context.Context, books []book) error {
	g, shared := errgroup.WithContext(ctx)
	g.SetLimit(max(1, m.Parallel))
	for i := range books {
		if shared.Err() != nil || i > 0 && task.MustPause(ctx) {
			break
		}
		k := &books[i]
		k.begun = true
		g.Go(func() error {
			_, err := fault.Guarded(func() (any, error) { return nil, m.one(ctx, k) })()
			if errors.Is(err, fault.ErrPanic) {
				slog.ErrorContext(ctx, "no KOReader digest for a book, because reading it crashed", "book", k.ID, "error", err)
				return nil
			}
			if err == nil || ctx.Err() != nil || !m.ofTheFile(ctx, k, err) {
				k.begun = err == nil
				return err
			}
			slog.InfoContext(ctx, "no KOReader digest for a book: its file changed, is gone, or cannot be read",
				"book", k.ID, "error", err)
			return nil
		})
	}
	return g.Wait()
}

// ofTheFile reports whether a failure is caused by the book's file, so that an immediate retry is useless.
func (m *Maker) ofTheFile(ctx context.Context, k *book, err error) bool {
	err = m.Content.Store.Why(ctx, k.Bucket, k.object(), err)
	for _, known := range []error{blob.ErrNotFound, blob.ErrChanged, blob.ErrRange, blob.ErrArchived, blob.ErrDenied, blob.ErrClosed, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

func (k *book) object() blob.Object {
	return blob.Object{Key: k.Prefix + k.Key, Size: k.Size, ETag: k.ETag, Modified: k.Modified}
}

func (m *Maker) one(ctx context.Context, k *book) error {
	ctx, cancel := context.WithTimeout(ctx, m.Timeout)
	defer cancel()
	o := k.object()
	read := func(offset, n int64) ([]byte, error) { return m.Content.Store.ReadRange(ctx, k.Bucket, o, offset, n) }
	digest, err := Of(k.Size, read)
	if err != nil {
		return err
	}
	if strings.EqualFold(k.Format, "epub") {
		if k.spine, err = m.spine(ctx, k.Bucket, o); err != nil {
			return fmt.Errorf("book %s: %w", k.ID, err)
		}
	}
	k.digest = digest
	return nil
}

// spine returns the documents of an e-book in reading order; none if it is unreadable, which its analysis reports, or
// their names are too long.
func (m *Maker) spine(ctx context.Context, bucket string, o blob.Object) ([]string, error) {
	tail, now, err := m.Content.Store.Tail(ctx, bucket, o.Key, make([]byte, min(o.Size, archive.TailBytes)))
	if err != nil {
		return nil, err
	}
	now.Key = o.Key
	fetch := func(offset, n int64) ([]byte, error) { return m.Content.Store.ReadRange(ctx, bucket, now, offset, n) }
	dir, err := archive.ReadDirectory(tail, now.Size, m.Content.Limits, fetch)
	if err != nil {
		return nil, unreadable(err)
	}
	spine, err := epub.Documents(dir, func(e archive.Entry) ([]byte, error) { return m.Content.Bytes(ctx, bucket, now, e) }, m.Content.Publications)
	return spine, unreadable(err)
}

// unreadable returns nil for a damaged file, else the error.
func unreadable(err error) error {
	if errors.As(err, new(*archive.Error)) {
		return nil
	}
	return err
}

// store stores the results of the first books of a batch, up to the first unfinished one, and the checkpoint; done is
// their number.
func (m *Maker) store(ctx context.Context, h task.Held, books []book, at *place) (done int, err error) {
	var b pgx.Batch
	next := *at
	for _, k := range books {
		if !k.begun {
			break
		}
		done, next.After = done+1, k.ID
		if k.digest == "" {
			next.Failed++
			continue
		}
		next.Books++
		b.Queue(`insert into koreader_digest (tenant_id, book_id, digest, spine, file_size, file_etag, file_modified)
			select b.tenant_id, b.id, $2, $3, $4, $5, $6 from book b where b.tenant_id = app.tenant() and b.id = $1 for key share
			on conflict (tenant_id, book_id) do update set digest = excluded.digest, spine = excluded.spine, file_size = excluded.file_size,
			  file_etag = excluded.file_etag, file_modified = excluded.file_modified`, k.ID, k.digest, append([]string{}, k.spine...), k.Size, k.ETag, k.Modified)
	}
	if err := task.QueueProgress(&b, h, next.Books+next.Failed, max(next.Total, next.Books+next.Failed), next); err != nil {
		return 0, err
	}
	if err := m.Database.Run(ctx, &b); err != nil {
		return 0, err
	}
	*at = next
	return done, nil
}

// KOReader reads 1,024 bytes at 0, and at 1,024 times each power of 4, up to 1 GiB (util.partialMD5).
const (
	part     = 1 << 10
	powers   = 11
	together = 1<<16 + part // everything up to the part at 64 KiB is read at once
)

// Of returns KOReader's digest of a file of that size: the MD5 of its parts in hexadecimal. A part may begin within the
// file and end beyond it. The first 65 KiB are read at once, the later parts one by one: at most 8 reads.
func Of(size int64, read func(offset, n int64) ([]byte, error)) (string, error) {
	sum := md5.New()
	var head []byte
	if size > 0 {
		var err error
		if head, err = read(0, min(size, together)); err != nil {
			return "", err
		}
	}
	add := func(offset int64) error {
		end := min(offset+part, size)
		if end <= int64(len(head)) {
			sum.Write(head[offset:end]) // a hash never fails
			return nil
		}
		data, err := read(offset, end-offset)
		if err == nil && int64(len(data)) != end-offset {
			err = io.ErrUnexpectedEOF
		}
		sum.Write(data)
		return err
	}
	for i, offset := -1, int64(0); i < powers && offset < size; i++ {
		if err := add(offset); err != nil {
			return "", err
		}
		offset = part << (2 * (i + 1))
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

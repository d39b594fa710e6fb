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
)

// batch is how many books are stored at once.
const batch = 50

// Maker makes the digests.
type Maker struct {
	Database *db.DB
	Content  *content.Reader // of the library
	Publish  task.Publish
	Parallel int           // books read at once
	Timeout  time.Duration // for one book
}

// Result is what the task leaves.
type Result struct {
	Books  int64 `json:"books"`  // whose digest was made
	Failed int64 `json:"failed"` // whose file is another one by now, gone, or not given by the store
}

// place is where the task goes on.
type place struct {
	Result
	After uuid.UUID `json:"after"` // the id of the last book that was read
	Total int64     `json:"total"` // how many there were to do
}

// book is one to read, and what was found.
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
	digest   string // empty: it could not be read
	spine    []string
}

// missing are the books without a digest of the file that they have now.
const missing = ` from book b join library l on l.tenant_id = b.tenant_id and l.id = b.library_id
	where b.tenant_id = app.tenant() and b.id > $1 and b.deleted_at is null and not exists (select from koreader_digest d
	  where d.tenant_id = b.tenant_id and d.book_id = b.id and (d.file_size, d.file_etag, d.file_modified) = (b.size, b.etag, b.modified_at))`

// Make is the handler of koreader_digests tasks. A run that is paused, or fails, has stored what it found.
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

// read finds what the books are known by, of all or, when the time is up, of the first ones. What is wrong with one
// file keeps no other from its digest; an error is trouble of the store, and what was not begun for it is left.
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
			err := m.one(ctx, k)
			if err == nil || ctx.Err() != nil || !m.ofTheFile(ctx, k, err) {
				k.begun = err == nil
				return err
			}
			slog.Info("a book gets no digest for KOReader: its file is another one by now, gone, or not given by the store", "book", k.ID, "error", err)
			return nil
		})
	}
	return g.Wait()
}

// ofTheFile tells whether a failure is one of the book's file, which trying again at once does not mend.
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

// spine names the documents of an e-book in reading order. Of a book that cannot be read as one there are none: its
// analysis says why.
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

// unreadable is nil for what is wrong with a file, else the error.
func unreadable(err error) error {
	if errors.As(err, new(*archive.Error)) {
		return nil
	}
	return err
}

// store keeps what was found of the first books of a batch, up to one that is left to do, and the place behind them;
// done is how many these are.
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
	together = 1<<16 + part // up to the part at 64 KiB all is read at once
)

// Of is KOReader's digest of a file of so many bytes: the MD5 of its parts, as hexadecimal digits. A part that begins
// within the file may end beyond it. Up to 65 KiB are read in one piece, the parts behind it one by one: at most 8
// reads.
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
			sum.Write(head[offset:end]) // a hash takes everything
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

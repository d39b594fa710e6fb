package page

import (
	"archive/zip"
	"context"
	"io"
	"log/slog"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// files returns the title of a series and the files of its books in order; NotFound if there is no such series, or it
// is empty.
func files(ctx context.Context, d *db.DB, series uuid.UUID) (title string, books []Index, err error) {
	var b pgx.Batch
	var found *string
	var rows []struct {
		BookID   uuid.UUID `db:"id"`
		Key      string    `db:"key"`
		Bucket   string    `db:"bucket"`
		Prefix   string    `db:"prefix"`
		Size     int64     `db:"size"`
		ETag     string    `db:"etag"`
		Modified time.Time `db:"modified_at"`
		Error    *string   `db:"error_message"`
	}
	db.Value(&b, &found, "select title from series where tenant_id = app.tenant() and id = $1", series)
	db.All(&b, &rows, `select b.id, b.key, l.bucket, l.prefix, b.size, b.etag, b.modified_at, b.error_message from book b
		join library l on l.tenant_id = b.tenant_id and l.id = b.library_id
		where b.tenant_id = app.tenant() and b.series_id = $1 and b.deleted_at is null
		order by b.number nulls last, app.file_order(b.key) collate natural_order, b.key`, series)
	switch err := d.Run(ctx, &b); {
	case err != nil:
		return "", nil, err
	case found == nil:
		return "", nil, fault.Missing("Series")
	case len(rows) == 0:
		return "", nil, fault.New(fault.NotFound, "The series has no books")
	}
	for _, row := range rows {
		books = append(books, Index{BookID: row.BookID, Key: row.Key, Bucket: row.Bucket, Prefix: row.Prefix, Size: row.Size, ETag: row.ETag, Modified: row.Modified, Error: row.Error})
	}
	return *found, books, nil
}

// Series sends the files of all books of a series as one archive without compression: the files are compressed already.
// It is built while it is sent, so it has neither size nor ranges. If it fails midway, the connection is cut.
func (s *Server) Series(w http.ResponseWriter, r *http.Request, series uuid.UUID) error {
	title, books, err := files(r.Context(), s.Finder.database, series)
	if err != nil {
		return err
	}
	total := int64(0)
	for _, b := range books {
		total += b.Size
	}
	if s.MaxArchive > 0 && total > s.MaxArchive {
		return fault.New(fault.TooLarge, "The files of the series have %d bytes; the limit is %d: fetch them one by one with /api/v1/books/{id}/file", total,
			s.MaxArchive)
	}
	end, err := s.downloads.begin(r)
	if err != nil {
		return err
	}
	defer end()
	h := w.Header()
	h.Set("Content-Type", "application/zip")
	h.Set("Content-Disposition", disposition(fileName(title)+".zip"))
	h.Set("Cache-Control", "private, no-store")
	if r.Method == http.MethodHead {
		return nil
	}
	out, taken := zip.NewWriter(w), map[string]bool{}
	for i := range books {
		b := &books[i]
		src, err := s.open(r, b, 0, b.Size)
		if err != nil && i == 0 { // before the header is written, so that the failure gets its own status
			return s.unopened(r, b, err)
		}
		if err == nil {
			err = add(out, name(path.Base(b.Key), taken), b, src)
			src.Close()
		}
		if err != nil {
			s.broken(r, b, err)
		}
	}
	if err := out.Close(); err != nil {
		s.broken(r, nil, err)
	}
	return nil
}

// add writes one file.
func add(out *zip.Writer, name string, b *Index, src io.Reader) error {
	w, err := out.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store, Modified: b.Modified})
	if err != nil {
		return err
	}
	if b.Size == 0 {
		return nil
	}
	n, err := io.Copy(w, src)
	if err == nil && n != b.Size {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// broken aborts the response: a part of it must not look complete.
func (s *Server) broken(r *http.Request, b *Index, err error) {
	if r.Context().Err() == nil {
		if b != nil {
			s.changed(r.Context(), b, err)
		}
		httpapi.Note(r.Context(), slog.String("stream", err.Error()))
	}
	panic(http.ErrAbortHandler)
}

// maxFileName is the most that file systems allow for a name in bytes, less room for an extension and a number.
const maxFileName = 240

// fileName makes a title a name for a file: without separators of folders, and not too long.
func fileName(title string) string {
	title = strings.NewReplacer("/", "_", "\\", "_").Replace(title)
	for len(title) > maxFileName {
		_, last := utf8.DecodeLastRuneInString(title)
		title = title[:len(title)-last]
	}
	return title
}

// name returns a name for a file in the archive that is not taken yet.
func name(base string, taken map[string]bool) string {
	base = strings.Map(func(c rune) rune {
		if c == '\\' || unicode.IsControl(c) {
			return '_'
		}
		return c
	}, base)
	ext := path.Ext(base)
	for n := 2; taken[strings.ToLower(base)]; n++ {
		base = strings.TrimSuffix(strings.TrimSuffix(base, ext), " ("+strconv.Itoa(n-1)+")") + " (" + strconv.Itoa(n) + ")" + ext
	}
	taken[strings.ToLower(base)] = true
	return base
}

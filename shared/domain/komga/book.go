package komga

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/format/mediatype"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Book is a book in Komga's format.
type Book struct {
	ID               string        `json:"id"`
	SeriesID         string        `json:"seriesId"`
	SeriesTitle      string        `json:"seriesTitle"`
	LibraryID        string        `json:"libraryId"`
	Name             string        `json:"name" doc:"Name of the file"`
	URL              string        `json:"url" doc:"Path or s3:// address of the file"`
	Number           int           `json:"number"`
	Created          string        `json:"created"`
	LastModified     string        `json:"lastModified"`
	FileLastModified string        `json:"fileLastModified"`
	SizeBytes        int64         `json:"sizeBytes"`
	Size             string        `json:"size" example:"12.3 MiB"`
	Media            Media         `json:"media"`
	Metadata         BookMetadata  `json:"metadata"`
	ReadProgress     *ReadProgress `json:"readProgress"`
	Deleted          bool          `json:"deleted"`
	FileHash         string        `json:"fileHash"`
	Oneshot          bool          `json:"oneshot"`
}

// Media describes the file of a book.
type Media struct {
	Status               string `json:"status" enum:"READY,ERROR,UNKNOWN"`
	MediaType            string `json:"mediaType"`
	PagesCount           int32  `json:"pagesCount"`
	Comment              string `json:"comment" doc:"Why the file cannot be read"`
	MediaProfile         string `json:"mediaProfile" enum:"DIVINA,PDF,EPUB"`
	EpubDivinaCompatible bool   `json:"epubDivinaCompatible" doc:"Whether the pages of an EPUB are images"`
	EpubIsKepub          bool   `json:"epubIsKepub"`
}

// BookMetadata is the metadata of a book; unknown texts are empty.
type BookMetadata struct {
	Title           string   `json:"title"`
	TitleLock       bool     `json:"titleLock"`
	Summary         string   `json:"summary"`
	SummaryLock     bool     `json:"summaryLock"`
	Number          string   `json:"number"`
	NumberLock      bool     `json:"numberLock"`
	NumberSort      float64  `json:"numberSort"`
	NumberSortLock  bool     `json:"numberSortLock"`
	ReleaseDate     *string  `json:"releaseDate" format:"date"`
	ReleaseDateLock bool     `json:"releaseDateLock"`
	Authors         []Author `json:"authors" nullable:"false"`
	AuthorsLock     bool     `json:"authorsLock"`
	Tags            []string `json:"tags" nullable:"false" doc:"Genres of the book"`
	TagsLock        bool     `json:"tagsLock"`
	ISBN            string   `json:"isbn"`
	ISBNLock        bool     `json:"isbnLock"`
	Links           []Link   `json:"links" nullable:"false"`
	LinksLock       bool     `json:"linksLock"`
	Created         string   `json:"created"`
	LastModified    string   `json:"lastModified"`
}

// ReadProgress is the caller's progress in a book.
type ReadProgress struct {
	Page         int32  `json:"page" doc:"Page number, from 1"`
	Completed    bool   `json:"completed"`
	ReadDate     string `json:"readDate"`
	Created      string `json:"created"`
	LastModified string `json:"lastModified"`
	DeviceID     string `json:"deviceId"`
	DeviceName   string `json:"deviceName"`
}

// BookPage is a page image.
type BookPage struct {
	Number    int32  `json:"number" minimum:"1"`
	FileName  string `json:"fileName"`
	MediaType string `json:"mediaType"`
	Width     *int32 `json:"width" doc:"Width in pixels; null if unknown"`
	Height    *int32 `json:"height" doc:"Height in pixels; null if unknown"`
	SizeBytes int64  `json:"sizeBytes"`
	Size      string `json:"size" example:"12.3 MiB"`
}

// BookFilter filters a list of books.
type BookFilter struct {
	Search      string   `query:"search" maxLength:"1000" doc:"Words of the title"`
	LibraryID   []string `query:"libraryId,explode"`
	SeriesID    []string `query:"seriesId,explode"`
	ReadListID  []string `query:"readlistId,explode" doc:"Ids, or want-to-read"`
	ReadStatus  []string `query:"readStatus,explode" doc:"UNREAD, IN_PROGRESS or READ"`
	MediaStatus []string `query:"mediaStatus,explode" doc:"READY or ERROR; other values match no book"`
	Tag         []string `query:"tag,explode" doc:"A genre of the book"`
	Author      []string `query:"author,explode" doc:"A name, or name,role; the role is ignored"`
	Deleted     bool     `query:"deleted" doc:"Books whose files are gone are never listed: true matches no book"`
	Oneshot     bool     `query:"oneshot" doc:"There are no one-shots: true matches no book"`
}

// BookSearch is the body of a filtered list; a null field does not filter.
type BookSearch struct {
	Condition      json.RawMessage `json:"condition,omitempty" doc:"Tree of allOf, anyOf and leaves {field: {operator, value}}"`
	FullTextSearch *string         `json:"fullTextSearch,omitempty" nullable:"true" maxLength:"1000" doc:"Words of the title"`
	SearchTerm     *string         `json:"searchTerm,omitempty" nullable:"true" maxLength:"1000" doc:"Words of the title, like fullTextSearch"`
	LibraryID      []string        `json:"libraryId,omitempty"`
	SeriesID       []string        `json:"seriesId,omitempty"`
	ReadStatus     []string        `json:"readStatus,omitempty"`
	MediaStatus    []string        `json:"mediaStatus,omitempty"`
	Tag            []string        `json:"tag,omitempty"`
	Author         []string        `json:"author,omitempty"`
	Deleted        *bool           `json:"deleted,omitempty" nullable:"true"`
}

// split splits the comma-separated values of a query. Those of a body are whole: names may contain commas.
func (f BookFilter) split() BookFilter {
	for _, values := range []*[]string{&f.LibraryID, &f.SeriesID, &f.ReadListID, &f.ReadStatus, &f.MediaStatus, &f.Tag} {
		*values = separated(*values)
	}
	return f
}

// filter converts the body to query parameters.
func (s BookSearch) filter() BookFilter {
	return BookFilter{LibraryID: s.LibraryID, SeriesID: s.SeriesID, ReadStatus: s.ReadStatus, MediaStatus: s.MediaStatus, Tag: s.Tag, Author: s.Author,
		Deleted: s.Deleted != nil && *s.Deleted}
}

var bookFields = map[string]translator{"libraryId": member("libraryId"), "seriesId": member("seriesId"), "title": same("title"), "tag": same("ownGenre"), "author": author,
	"readStatus": word("readStatus"), "mediaStatus": media, "mediaProfile": profile, "releaseDate": released("releaseDay", dayNumber), "deleted": flag, "oneShot": flag, "readListId": member("readListId")}

// lastRead orders by the caller's last reading.
const lastRead = "last_read"

var bookSorts = map[string]string{"metadata.numberSort": "number", "number": "number", "metadata.title": "title", "name": "title", "title": "title",
	"metadata.releaseDate": "release_date", "releaseDate": "release_date", "series": "series",
	"createdDate": "created_at", "created": "created_at", "lastModifiedDate": "modified_at", "lastModified": "modified_at", "fileLastModified": "modified_at",
	"fileSize": "file_size", "size": "file_size", "media.pagesCount": "page_count", "pagesCount": "page_count",
	"readProgress.readDate": lastRead, "readProgress.lastModified": lastRead, "readDate": lastRead}

// list returns the list for the filter and a condition (nil for none). Last-read order of begun books uses the cheaper
// list of the caller's progress.
func (f BookFilter) list(tree json.RawMessage, find *string, sort httpapi.Sorting) (*book.Listed, error) {
	w := book.ListQuery{Find: find, Sort: sort}
	libraries, of, read := f.LibraryID, f.SeriesID, lower(f.ReadStatus)
	for name, values := range map[string][]string{"libraryId": libraries, "seriesId": of} {
		if err := ids(name, values); err != nil {
			return nil, err
		}
	}
	if len(libraries) == 1 {
		w.Library, libraries = httpapi.OptionalID(libraries[0]), nil
	}
	if len(of) == 1 {
		w.Series, of = httpapi.OptionalID(of[0]), nil
	}
	parts := slices.Concat(oneOf("libraryId", libraries), oneOf("seriesId", of), oneOf("readStatus", read), statuses(f.MediaStatus),
		oneOf("ownGenre", f.Tag), oneOf("author", names(f.Author)), members("readListId", f.ReadListID, nil))
	if f.Deleted || f.Oneshot {
		parts = append(parts, never)
	}
	if tree != nil {
		part, err := condition(tree, bookFields, 1)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	if parts != nil {
		var err error
		if w.Condition, err = all(parts); err != nil {
			return nil, err
		}
	}
	if sort.Sort == lastRead && sort.Order == "desc" && find == nil && (len(read) > 0 && !slices.Contains(read, "unread") || asksForRead(tree)) {
		w.Sort = httpapi.Sorting{}
		return book.ListRead(w)
	}
	return book.List(w)
}

// asksForRead reports whether a condition, or one of the parts that must all hold, requires that a book was begun.
func asksForRead(tree json.RawMessage) bool {
	var c struct {
		AllOf      []json.RawMessage
		ReadStatus struct{ Operator, Value string }
	}
	if tree == nil || json.Unmarshal(tree, &c) != nil {
		return false
	}
	if c.ReadStatus.Operator == "is" {
		return !strings.EqualFold(c.ReadStatus.Value, "unread")
	}
	return slices.ContainsFunc(c.AllOf, asksForRead)
}

// bookRow is a book as selected by bookSQL.
type bookRow struct {
	ID          uuid.UUID  `db:"id"`
	SeriesID    uuid.UUID  `db:"series_id"`
	SeriesTitle string     `db:"series_title"`
	LibraryID   uuid.UUID  `db:"library_id"`
	LibraryPath string     `db:"library_path"`
	Key         string     `db:"key"`
	Title       string     `db:"title"`
	Number      float64    `db:"number"`
	Format      string     `db:"format"`
	Size        int64      `db:"size"`
	Hash        string     `db:"fingerprint"`
	Pages       int32      `db:"page_count"`
	Images      int32      `db:"images"`
	Analyzed    bool       `db:"analyzed"`
	Error       *string    `db:"error"`
	Summary     string     `db:"summary"`
	ISBN        string     `db:"isbn"`
	Year        *int32     `db:"year"`
	Month       *int32     `db:"month"`
	Day         *int32     `db:"day"`
	Authors     []Author   `db:"authors"`
	Locks       []string   `db:"locks"`
	Genres      []string   `db:"genres"`
	FileAt      time.Time  `db:"modified_at"`
	CreatedAt   time.Time  `db:"created_at"`
	UpdatedAt   time.Time  `db:"updated_at"`
	Page        *int32     `db:"current_page"`
	Completed   *bool      `db:"completed"`
	StartedAt   *time.Time `db:"started_at"`
	ReadAt      *time.Time `db:"read_at"`
}

// Characters of a summary in responses: a function's response is limited to 6 MB.
const (
	inList = "500"
	alone  = "100000"
)

// bookSQL selects the books with the given ids, one index lookup each; summary is the length of summaries.
func bookSQL(ids, summary string) string {
	return `with page as materialized (select id, row_number() over () as pos from (` + ids + `) x)
	select b.id, b.series_id, s.title as series_title, b.library_id, l.path as library_path, b.key, b.title, coalesce(b.number, 0) as number,
	  lower(b.format) as format, b.size, b.fingerprint, b.page_count, coalesce(i.images, 0) as images, b.analyzed,
	  coalesce(b.error_message, b.error_type) as error, coalesce(left(m.metadata ->> 'summary', ` + summary + `), '') as summary,
	  coalesce(btrim(split_part(m.metadata ->> 'isbns', ',', 1), '[]" '), '') as isbn, (m.metadata ->> 'year')::integer as year,
	  (m.metadata ->> 'month')::integer as month, (m.metadata ->> 'day')::integer as day, ` + people("m.metadata -> 'authors'") + ` as authors,
	  coalesce(m.locks, '{}') as locks, ` + terms("book", "genre", "b.id") + ` as genres, b.modified_at, b.created_at, b.updated_at,
	  p.current_page, p.completed, p.started_at, p.updated_at as read_at
	from page
	cross join lateral (select * from book x where x.tenant_id = app.tenant() and x.id = page.id limit 1) b
	cross join lateral (select x.title from series x where x.tenant_id = app.tenant() and x.id = b.series_id limit 1) s
	cross join lateral (select x.path from library x where x.tenant_id = app.tenant() and x.id = b.library_id limit 1) l
	left join lateral (select x.metadata, x.locks from book_metadata x where x.tenant_id = app.tenant() and x.book_id = page.id limit 1) m on true
	left join lateral (select cardinality(x.names) as images from page_index x
	  where x.tenant_id = app.tenant() and x.book_id = page.id limit 1) i on true
	left join lateral (select * from progress x
	  where x.tenant_id = app.tenant() and x.account_id = app.account() and x.book_id = page.id limit 1) p on true
	order by page.pos`
}

func (r bookRow) book() Book {
	created, modified := stamp(r.CreatedAt), stamp(r.UpdatedAt)
	locked := func(name string) bool { return slices.Contains(r.Locks, name+"Lock") }
	b := Book{ID: r.ID.String(), SeriesID: r.SeriesID.String(), SeriesTitle: r.SeriesTitle, LibraryID: r.LibraryID.String(), Name: path.Base(r.Key),
		URL: book.Join(r.LibraryPath, r.Key), Number: int(r.Number), Created: created, LastModified: modified, FileLastModified: stamp(r.FileAt),
		SizeBytes: r.Size, Size: size(r.Size), FileHash: r.Hash, Media: r.media(),
		Metadata: BookMetadata{Title: r.Title, TitleLock: locked("title"), Summary: r.Summary, SummaryLock: locked("summary"),
			Number: strconv.FormatFloat(r.Number, 'f', -1, 64), NumberLock: locked("number"), NumberSort: r.Number, NumberSortLock: locked("number"),
			ReleaseDate: book.Released(r.Year, r.Month, r.Day), ReleaseDateLock: locked("year"), Authors: roles(r.Authors), AuthorsLock: locked("authorsJson"),
			Tags: r.Genres, TagsLock: locked("genres"), ISBN: r.ISBN, ISBNLock: locked("isbns"), Links: []Link{}, Created: created, LastModified: modified}}
	if r.Page != nil {
		b.ReadProgress = &ReadProgress{Page: *r.Page, Completed: *r.Completed, ReadDate: stamp(*r.ReadAt), Created: stamp(*r.StartedAt), LastModified: stamp(*r.ReadAt)}
	}
	return b
}

func (r bookRow) media() Media {
	m := Media{Status: "READY", MediaType: mediatype.OfBook(r.Format), PagesCount: r.Pages, MediaProfile: "DIVINA"}
	switch {
	case r.Error != nil:
		m.Status, m.Comment = "ERROR", *r.Error
	case !r.Analyzed:
		m.Status = "UNKNOWN"
	}
	switch r.Format {
	case "pdf":
		m.MediaProfile = "PDF"
	case "epub":
		m.MediaProfile, m.EpubDivinaCompatible = "EPUB", r.Images > 0
	}
	return m
}

// size formats a number of bytes for people.
func size(n int64) string {
	f, unit := float64(n), "B"
	for _, next := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if f < 1024 {
			break
		}
		f, unit = f/1024, next
	}
	if unit == "B" {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, unit)
}

// listBooks returns a page of a list.
func listBooks(ctx context.Context, d *db.DB, list *book.Listed, p Paging) (*Page[Book], error) {
	var b pgx.Batch
	load := queueBooks(&b, list, p)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	return load(), nil
}

// queueBooks adds a page of a list to the batch; load returns it after the batch has run.
func queueBooks(b *pgx.Batch, list *book.Listed, p Paging) (load func() *Page[Book]) {
	return queuePage(b, list, p, bookSQL, bookRow.book)
}

// booksOf returns a page of the books of one series; NotFound if there is no such series.
func booksOf(ctx context.Context, d *db.DB, id uuid.UUID, list *book.Listed, p Paging) (*Page[Book], error) {
	var load func() *Page[Book]
	if err := progress.OfSeries(ctx, d, id, func(b *pgx.Batch) { load = queueBooks(b, list, p) }); err != nil {
		return nil, err
	}
	return load(), nil
}

// one returns the only book of a list; NotFound if it is empty.
func one(ctx context.Context, d *db.DB, list *book.Listed) (*Book, error) {
	ids, args := list.Page(1, 0)
	row, err := db.Get[bookRow](ctx, d, bookSQL(ids, alone), args...)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, fault.Missing("Book")
	}
	return new(row.book()), nil
}

// pagesOf returns the pages of a book.
func pagesOf(ctx context.Context, d *db.DB, added task.Added, id uuid.UUID) (*[]BookPage, error) {
	pages, _, err := book.Pages(ctx, d, added, id, maxPages, 0)
	if err != nil {
		return nil, err
	}
	out := make([]BookPage, len(pages))
	for i, p := range pages {
		out[i] = BookPage{Number: p.PageNumber, FileName: p.FileName, MediaType: p.MediaType, Width: p.Width, Height: p.Height,
			SizeBytes: p.FileSize, Size: size(p.FileSize)}
	}
	return &out, nil
}

// maxPages is more than any readable book has.
const maxPages = 1 << 20

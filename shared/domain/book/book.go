package book

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/progress"
)

// Book is a book in a list.
type Book struct {
	ID               uuid.UUID        `json:"id" db:"id"`
	LibraryID        uuid.UUID        `json:"libraryId" db:"library_id"`
	LibraryName      string           `json:"libraryName" db:"library_name"`
	SeriesID         uuid.UUID        `json:"seriesId" db:"series_id"`
	SeriesName       string           `json:"seriesName" db:"series_name"`
	Title            string           `json:"title" db:"title"`
	TitleSort        string           `json:"titleSort" db:"title_sort"`
	Number           *float64         `json:"number" db:"number"`
	Volume           *int32           `json:"volume" db:"volume"`
	Chapter          *float64         `json:"chapter" db:"chapter"`
	Summary          *string          `json:"summary" db:"summary"`
	Path             string           `json:"path" db:"-"`
	FileFormat       string           `json:"fileFormat" db:"format"`
	FileHash         string           `json:"fileHash" db:"fingerprint" doc:"Fingerprint of the content; empty until the book is analysed"`
	KoreaderHash     *string          `json:"koreaderHash" db:"koreader_hash" doc:"Hash by which KOReader identifies the file; null if it is not known for the current version of the file"`
	FileSize         int64            `json:"fileSize" db:"size" doc:"Size of the file in bytes"`
	PageCount        int32            `json:"pageCount" db:"page_count"`
	ReadingDirection string           `json:"readingDirection" db:"reading_direction" enum:"ltr,rtl,ttb,webtoon" doc:"Reading direction of the series if locked there, else of the file, else of the series, else of the library"`
	Analyzed         bool             `json:"analyzed" db:"analyzed"`
	AnalysisError    *string          `json:"analysisError" db:"error_message" doc:"Reason why the book cannot be read; /books/errors returns its type and time"`
	Deleted          bool             `json:"deleted" db:"deleted" doc:"Whether the file is gone; all other data is kept until it returns"`
	ReadProgress     *progress.Record `json:"readProgress" db:"-" doc:"Progress of the caller"`
	WantToRead       bool             `json:"wantToRead" db:"wanted" doc:"Whether the caller wants to read the book"`
	CreatedAt        time.Time        `json:"createdAt" db:"created_at"`
	UpdatedAt        time.Time        `json:"updatedAt" db:"updated_at"`
}

// AnalysisError says why a book cannot be read.
type AnalysisError struct {
	ErrorType  string    `json:"errorType" enum:"format_detection,encrypted,unsupported,limit,parser,metadata,thumbnail,page_extraction,pdf_rendering,zero_pages,timeout,killed,other"`
	Message    string    `json:"message"`
	OccurredAt time.Time `json:"occurredAt"`
}

// row is a row of the select list columns.
type row struct {
	Book
	LibraryPath string     `db:"library_path"`
	Key         string     `db:"key"`
	ErrorType   *string    `db:"error_type"`
	ErrorAt     *time.Time `db:"error_at"`
	ProgressID  *uuid.UUID `db:"progress_id"`
	AccountID   *uuid.UUID `db:"account_id"`
	CurrentPage *int32     `db:"current_page"`
	Percentage  *float64   `db:"percentage"`
	Completed   *bool      `db:"completed"`
	CompletedAt *time.Time `db:"completed_at"`
	StartedAt   *time.Time `db:"started_at"`
	ReadAt      *time.Time `db:"read_at"`
}

func (r row) book() Book {
	b := r.Book
	b.Path = Join(r.LibraryPath, r.Key)
	if r.ProgressID != nil {
		b.ReadProgress = &progress.Record{ID: *r.ProgressID, UserID: *r.AccountID, BookID: b.ID, CurrentPage: *r.CurrentPage,
			ProgressPercentage: r.Percentage, Completed: *r.Completed, CompletedAt: r.CompletedAt, StartedAt: *r.StartedAt, UpdatedAt: *r.ReadAt}
	}
	return b
}

// errors returns the reasons why the book cannot be read.
func (r row) errors() []AnalysisError {
	if r.ErrorType == nil {
		return []AnalysisError{}
	}
	e := AnalysisError{ErrorType: *r.ErrorType, OccurredAt: r.UpdatedAt}
	if r.AnalysisError != nil {
		e.Message = *r.AnalysisError
	}
	if r.ErrorAt != nil {
		e.OccurredAt = *r.ErrorAt
	}
	return []AnalysisError{e}
}

func books(rows []row) []Book {
	out := make([]Book, len(rows))
	for i, r := range rows {
		out[i] = r.book()
	}
	return out
}

// Join returns the displayed path of a key below a library's root; an empty key is the root itself.
func Join(libraryPath, key string) string {
	if key == "" {
		return libraryPath
	}
	return strings.TrimSuffix(libraryPath, "/") + "/" + key
}

// DirectionSQL is SQL for the reading direction of book b in series s and library l.
const DirectionSQL = `coalesce(case when 'readingDirection' = any(s.locks) then s.reading_direction end, b.reading_direction, s.reading_direction,
	l.default_reading_direction)`

// columns is the select list of a row; its aliases are defined in from. A book whose file is gone shows no number:
// another book may use it until the file returns.
var columns = `b.id, b.library_id, l.name as library_name, l.path as library_path, b.series_id, s.title as series_name, b.key,
	b.title, b.title_sort, case when b.deleted_at is null then b.number end as number, b.volume, b.chapter, m.summary, b.format, b.fingerprint, b.size, b.page_count,
	` + DirectionSQL + ` as reading_direction, b.analyzed,
	b.error_type, b.error_message, b.error_at, b.deleted_at is not null as deleted, b.created_at, b.updated_at,
	p.id as progress_id, p.account_id, p.current_page, ` + progress.PercentageSQL + ` as percentage, p.completed,
	p.completed_at, p.started_at, p.updated_at as read_at, exists (select from wanted w where w.tenant_id = app.tenant()
	  and w.account_id = app.account() and w.book_id = b.id) as wanted, (select k.digest from koreader_digest k where k.tenant_id = app.tenant()
	  and k.book_id = b.id and (k.file_size, k.file_etag, k.file_modified) = (b.size, b.etag, b.modified_at)) as koreader_hash`

// from joins the tables of a row to each id of page, one index lookup each: "limit 1" keeps the planner from reading
// whole tables for large pages.
const from = ` from page
	cross join lateral (select x.id, x.library_id, x.series_id, x.key, x.title, x.title_sort, x.number, x.volume, x.chapter,
	  x.format, x.fingerprint, x.size, x.page_count, x.reading_direction, x.analyzed, x.error_type, x.error_message, x.error_at,
	  x.deleted_at, x.created_at, x.updated_at, x.etag, x.modified_at
	  from book x where x.tenant_id = app.tenant() and x.id = page.id limit 1) b
	cross join lateral (select x.title, x.reading_direction, x.locks from series x
	  where x.tenant_id = app.tenant() and x.id = b.series_id limit 1) s
	cross join lateral (select x.name, x.path, x.default_reading_direction from library x
	  where x.tenant_id = app.tenant() and x.id = b.library_id limit 1) l
	left join lateral (select x.metadata->>'summary' as summary from book_metadata x
	  where x.tenant_id = app.tenant() and x.book_id = page.id limit 1) m on true
	left join lateral (select x.id, x.account_id, x.current_page, x.percentage, x.completed, x.completed_at, x.started_at, x.updated_at
	  from progress x where x.tenant_id = app.tenant() and x.account_id = app.account() and x.book_id = page.id limit 1) p on true
	order by page.pos`

// pageSQL selects the rows of one page. ids is a select of ids in order with n parameters; limit and offset follow as
// two more.
func pageSQL(ids string, n int) string {
	return rowsSQL(ids + limits(n))
}

// rowsSQL selects the rows for page, a select of ids in order.
func rowsSQL(page string) string {
	return "with page as materialized (select id, row_number() over () as pos from (" + page + ") x) select " + columns + from
}

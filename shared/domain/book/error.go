package book

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// WithErrors is a book that cannot be read, with the reasons.
type WithErrors struct {
	Book   Book            `json:"book"`
	Errors []AnalysisError `json:"errors" nullable:"false"`
}

// ErrorPage is a page of books that cannot be read, with the count per error type.
type ErrorPage struct {
	httpapi.Page[WithErrors]
	ErrorCounts map[string]int64 `json:"errorCounts" nullable:"false" doc:"Number of books per error type in the requested library and series, whichever type is listed; types without books are omitted"`
}

// errorsInput filters the list of books that cannot be read.
type errorsInput struct {
	ScopeInput
	ErrorType string `query:"errorType" enum:"format_detection,encrypted,unsupported,limit,parser,metadata,thumbnail,page_extraction,pdf_rendering,zero_pages,timeout,killed,other"`
	httpapi.Paging
	httpapi.Sorting
}

// Retried says how many books are retried, and the first task that retries them.
type Retried struct {
	TaskID        *uuid.UUID `json:"taskId" nullable:"true" doc:"Id of the first task; null if there was nothing to do"`
	TasksEnqueued int        `json:"tasksEnqueued"`
	Books         int        `json:"books"`
	Message       string     `json:"message"`
}

// retriedAtOnce is the maximum number of books per retry request.
const retriedAtOnce = 10_000

// unreadable registers the operations on books that cannot be read.
func unreadable(a *httpapi.API, d *db.DB, added task.Added) {
	httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/books/errors", ID: "listBookErrors", Tag: "Books",
		Summary: "List books that cannot be read, latest first", Permission: auth.BooksRead},
		func(ctx context.Context, in *errorsInput) (*ErrorPage, error) { return listErrors(ctx, d, in) })
	tell := func(ctx context.Context, r *Retried, err error) (*Retried, error) {
		if err == nil && r.TasksEnqueued > 0 {
			added.Tell(ctx, httpapi.TenantOf(ctx).ID)
		}
		return r, err
	}
	httpapi.Register(a, httpapi.Op{Method: "POST", Path: "/api/v1/books/{id}/retry", ID: "retryBook", Tag: "Books",
		Summary: "Retry a book that could not be read", Permission: auth.BooksWrite},
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body *struct {
				ErrorTypes []string `json:"errorTypes,omitempty" nullable:"true" enum:"format_detection,encrypted,unsupported,limit,parser,metadata,thumbnail,page_extraction,pdf_rendering,zero_pages,timeout,killed,other" maxItems:"20" doc:"Retry only if the book has one of these errors; empty means any error"`
			} `required:"false"`
		}) (*Retried, error) {
			var types []string
			if in.Body != nil {
				types = in.Body.ErrorTypes
			}
			r, err := retryOne(ctx, d, in.ID, types)
			return tell(ctx, r, err)
		})
	httpapi.Register(a, httpapi.Op{Method: "POST", Path: "/api/v1/books/retry-all-errors", ID: "retryBookErrors", Tag: "Books",
		Summary: "Retry all books that could not be read, at most 10,000 per request", Permission: auth.BooksWrite},
		func(ctx context.Context, in *struct {
			Body *struct {
				ErrorType *string    `json:"errorType,omitempty" nullable:"true" enum:"format_detection,encrypted,unsupported,limit,parser,metadata,thumbnail,page_extraction,pdf_rendering,zero_pages,timeout,killed,other" doc:"Retry only books with this error"`
				LibraryID *uuid.UUID `json:"libraryId,omitempty" nullable:"true" format:"uuid" doc:"Retry only books of this library"`
			} `required:"false"`
		}) (*Retried, error) {
			var library *uuid.UUID
			var errorType *string
			if in.Body != nil {
				library, errorType = in.Body.LibraryID, in.Body.ErrorType
			}
			r, err := retryAll(ctx, d, library, errorType)
			return tell(ctx, r, err)
		})
}

// errorCount is the number of books with one error type.
type errorCount struct {
	Type  string `db:"error_type"`
	Books int64  `db:"books"`
}

func listErrors(ctx context.Context, d *db.DB, in *errorsInput) (*ErrorPage, error) {
	field, desc, err := orderOf(in.Sorting)
	if err != nil {
		return nil, err
	}
	var b pgx.Batch
	var rows []row
	var total int64
	var counts []errorCount
	failed(in.scope(), in.ErrorType).by(field, desc).queue(&b, &rows, &total, in.Limit(), in.Offset())
	all := in.scope()
	all.where = "b.error_type is not null"
	where, args := all.sql()
	db.All(&b, &counts, "select b.error_type, count(*) as books from book b where "+where+" group by 1", args...)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	page := make([]WithErrors, len(rows))
	for i, r := range rows {
		page[i] = WithErrors{Book: r.book(), Errors: r.errors()}
	}
	out := ErrorPage{Page: *httpapi.NewPage(ctx, in.Paging, page, total), ErrorCounts: map[string]int64{}}
	for _, c := range counts {
		out.ErrorCounts[c.Type] = c.Books
	}
	return &out, nil
}

// failed lists the books with one error type; "" stands for any.
func failed(s scope, errorType string) query {
	s.where = "b.error_type is not null"
	if errorType != "" {
		s.where, s.args = "b.error_type = $1", []any{errorType}
	}
	where, args := s.sql()
	return query{ids: "select b.id from book b where " + where + " and b.error_type is not null order by b.error_at desc, b.id", args: args}.counted(s, where)
}

// retried is a book whose error is cleared.
type retried struct {
	ID        uuid.UUID `db:"id"`
	LibraryID uuid.UUID `db:"library_id"`
}

// findErrors is the query for up to $1 books with errors that match where.
func findErrors(where string) string {
	return `select b.id, b.library_id from book b where b.tenant_id = app.tenant() and b.deleted_at is null and b.error_type is not null and ` + where + `
		order by b.id limit $1`
}

func retryOne(ctx context.Context, d *db.DB, id uuid.UUID, types []string) (*Retried, error) {
	var b pgx.Batch
	var exists bool
	var books []retried
	db.Value(&b, &exists, "select exists (select from book where tenant_id = app.tenant() and id = $1 and deleted_at is null)", id)
	db.All(&b, &books, findErrors("b.id = $2 and (cardinality($3::text[]) = 0 or b.error_type = any($3))"), 1, id, append([]string{}, types...))
	switch err := d.Run(ctx, &b); {
	case err != nil:
		return nil, err
	case !exists:
		return nil, fault.Missing("Book")
	case len(books) == 0:
		return nil, fault.New(fault.BadRequest, "The book has no such error; to read it again, start an analysis")
	}
	return queueRetries(ctx, d, books, 1)
}

func retryAll(ctx context.Context, d *db.DB, library *uuid.UUID, errorType *string) (*Retried, error) {
	var b pgx.Batch
	var books []retried
	var size int64
	setting.Int(&b, setting.ScanBatchSize, &size)
	db.All(&b, &books, findErrors("($2::uuid is null or b.library_id = $2) and ($3::text is null or b.error_type = $3)"), retriedAtOnce, library, errorType)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	return queueRetries(ctx, d, books, int(size))
}

// queueRetries adds tasks that read the books, size books per task, and clears the errors. The books count as not
// analysed until they are read, so the next scan reads those that no task has read.
func queueRetries(ctx context.Context, d *db.DB, books []retried, size int) (*Retried, error) {
	byLibrary := map[uuid.UUID][]uuid.UUID{}
	for _, r := range books {
		byLibrary[r.LibraryID] = append(byLibrary[r.LibraryID], r.ID)
	}
	var b pgx.Batch
	out := &Retried{Books: len(books), Message: fmt.Sprintf("Books queued to be retried: %d", len(books))}
	for library, ids := range byLibrary {
		for part := range slices.Chunk(ids, size) {
			id := new(uuid.UUID)
			err := task.Add(&b, task.Spec{Type: task.AnalyzeBooks, LibraryID: &library, Params: map[string]any{"bookIds": part}}, id)
			if err != nil {
				return nil, err
			}
			if out.TasksEnqueued++; out.TaskID == nil {
				out.TaskID = id
			}
		}
	}
	if len(books) == 0 {
		return out, nil
	}
	ids := make([]uuid.UUID, len(books))
	for i, r := range books {
		ids[i] = r.ID
	}
	b.Queue(`update book k set error_type = null, error_message = null, error_at = null, updated_at = now()
		from (select b.id from book b where b.tenant_id = app.tenant() and b.id = any($1) and b.error_type is not null order by b.id for update) f
		where k.tenant_id = app.tenant() and k.id = f.id`, ids)
	return out, d.Run(ctx, &b)
}

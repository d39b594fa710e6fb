package book

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// NeverReadSQL is a condition: book b was never analysed. A book that failed analysis does not count.
const NeverReadSQL = "not b.analyzed and b.error_type is null"

const analysisQueued = "The analysis of the book is queued"

// analyses registers the operations that start the analysis of books.
func analyses(a *httpapi.API, d *db.DB, added task.Added) {
	op := func(path, id, summary string) httpapi.Op {
		return httpapi.Op{Method: "POST", Path: "/api/v1/books" + path, ID: id, Summary: summary, Tag: "Books", Permission: auth.BooksWrite}
	}
	httpapi.Register(a, op("/{id}/analyze", "analyzeBook", "Analyse a book again"),
		func(ctx context.Context, in *httpapi.IDInput) (*task.Started, error) {
			return task.Start(ctx, d, added, task.Analysis(in.ID), task.OfBook(in.ID), analysisQueued)
		})
	httpapi.Register(a, op("/{id}/analyze-unanalyzed", "analyzeNewBook", "Analyse a book that was never analysed"),
		func(ctx context.Context, in *httpapi.IDInput) (*task.Started, error) {
			s, err := analyzeNew(ctx, d, in.ID)
			if err == nil {
				added.Tell(ctx, httpapi.TenantOf(ctx).ID)
			}
			return s, err
		})
	httpapi.Register(a, op("/bulk/analyze", "analyzeBooks", "Analyse several books: those never analysed or, with force, all"),
		func(ctx context.Context, in *struct {
			Body struct {
				BookIDs []uuid.UUID `json:"bookIds" minItems:"1" maxItems:"500" nullable:"false" doc:"Unknown ids are ignored"`
				Force   bool        `json:"force" required:"false" doc:"Include books that were already analysed"`
			}
		}) (*task.Enqueued, error) {
			out, err := analyzeSeveral(ctx, d, in.Body.BookIDs, in.Body.Force)
			if err == nil {
				added.Tell(ctx, httpapi.TenantOf(ctx).ID)
			}
			return out, err
		})
}

// analyzeNew queues the analysis of a book that was never analysed, or returns the pending task for it.
func analyzeNew(ctx context.Context, d *db.DB, id uuid.UUID) (*task.Started, error) {
	var b pgx.Batch
	var exists bool
	out := task.Started{Message: analysisQueued}
	db.Value(&b, &exists, "select exists (select from book where tenant_id = app.tenant() and id = $1 and deleted_at is null)", id)
	if err := task.AddFor(&b, task.Analysis(id), task.OfNewBook(id), &out.TaskID); err != nil {
		return nil, err
	}
	switch err := d.Run(ctx, &b); {
	case err != nil:
		return nil, err
	case !exists:
		return nil, fault.Missing("Book")
	case out.TaskID == uuid.Nil:
		return nil, fault.New(fault.BadRequest, "The book has already been analysed; to read it again, start an analysis")
	}
	return &out, nil
}

// analyzeSeveral adds a task for each book that was never analysed; with force, for every book.
func analyzeSeveral(ctx context.Context, d *db.DB, ids []uuid.UUID, force bool) (*task.Enqueued, error) {
	var b pgx.Batch
	var n int64
	if force { // also those that wait without it
		b.Queue(`update task set params = params || '{"force": true}' where tenant_id = app.tenant() and id in (select t.id from task t
			where t.tenant_id = app.tenant() and t.dedupe_key in (select $1 || u from unnest($2::uuid[]) u) and t.status in ('pending', 'running')
			  and not t.params @> '{"force": true}' order by t.dedupe_key for no key update)`, task.AnalyzeBook+":", ids)
	}
	err := task.AddEach(&b, task.Spec{Type: task.AnalyzeBook, Params: map[string]any{"force": force}, DedupeKey: task.AnalyzeBook + ":"}, &n,
		`select b.library_id, b.series_id, b.id as book_id, jsonb_build_object('bookIds', jsonb_build_array(b.id)) as params from book b
		where b.tenant_id = app.tenant() and b.id = any($1) and b.deleted_at is null and (`+NeverReadSQL+` or $2) order by b.id`, ids, force)
	if err != nil {
		return nil, err
	}
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	return &task.Enqueued{TasksEnqueued: n, Message: fmt.Sprintf("Books queued for analysis: %d", n)}, nil
}

package scanner

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
)

// fanOutBatch is how many books of a library are assigned to children per transaction.
const fanOutBatch = 10_000

// libraryPlace is the checkpoint and result of a library's fan-out.
type libraryPlace struct {
	After *uuid.UUID `json:"after,omitempty"` // the last book assigned to a child; nil at the end
	Books int64      `json:"books"`
	Tasks int64      `json:"tasks"`
}

// AnalyzeLibrary handles analyze_library tasks: its children analyse every book of a library, or only those never
// analysed, in batches of the setting scanner.batch_size.
func (s *Scanner) AnalyzeLibrary(ctx context.Context, h task.Held) (any, error) {
	var p struct {
		OnlyNew bool `json:"onlyNew"`
	}
	if err := json.Unmarshal(h.Params, &p); err != nil {
		return nil, fmt.Errorf("read parameters of the analysis: %w", err)
	}
	var at libraryPlace
	if err := h.Resume(&at); err != nil {
		return nil, err
	}
	var b pgx.Batch
	var size int64
	setting.Int(&b, setting.ScanBatchSize, &size)
	if err := s.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	for {
		n, err := s.analyzeNext(ctx, h, !p.OnlyNew, size, &at)
		if err != nil {
			return nil, err
		}
		if n < fanOutBatch {
			at.After = nil
			return at, nil
		}
		if task.MustPause(ctx) {
			return nil, task.Paused(at)
		}
	}
}

// analyzeNext assigns the next books of a library to children and stores the checkpoint, in one transaction: after a
// crash the next run continues there. n is the number of books.
func (s *Scanner) analyzeNext(ctx context.Context, h task.Held, force bool, size int64, at *libraryPlace) (n int, err error) {
	var b pgx.Batch
	var ids []uuid.UUID
	db.Values(&b, &ids, `select b.id from book b where b.tenant_id = app.tenant() and b.library_id = $1 and b.deleted_at is null
		and (`+book.NeverReadSQL+` or $2) and ($3::uuid is null or b.id > $3) order by b.id limit $4`, h.LibraryID, force, at.After, fanOutBatch)
	if err := s.Database.Run(ctx, &b); err != nil || len(ids) == 0 {
		return 0, err
	}
	b = pgx.Batch{}
	next := libraryPlace{After: &ids[len(ids)-1], Books: at.Books + int64(len(ids)), Tasks: at.Tasks + (int64(len(ids))+size-1)/size}
	var added int64
	err = task.AddEach(&b, task.Spec{Type: task.AnalyzeBooks, ParentID: &h.ID, Params: analyzeParams{Force: force, Counted: true}}, &added,
		`select $1::uuid as library_id, null::uuid as series_id, null::uuid as book_id, jsonb_build_object('bookIds', jsonb_agg(u.id order by u.n)) as params
		from unnest($2::uuid[]) with ordinality as u(id, n) group by (u.n - 1) / $3`, h.LibraryID, ids, size)
	if err != nil {
		return 0, err
	}
	task.QueueNewChildren(&b, h.ID)
	b.Queue("update task set place = $2, progress_total = $3 where tenant_id = app.tenant() and id = $1", h.ID, toJSON(next), next.Books)
	if err := s.Database.Run(ctx, &b); err != nil {
		return 0, err
	}
	*at = next
	s.Added.Tell(ctx, h.Tenant)
	return len(ids), nil
}

// analyzeCounted analyses books for a parent that is no scan, but counts them in its progress.
func (s *Scanner) analyzeCounted(ctx context.Context, h task.Held, p analyzeParams) (any, error) {
	alone := h
	alone.ParentID = nil // otherwise it is taken for a scan
	out, err := s.analyze(ctx, alone, p.Force, "b.id = any(@books)", pgx.NamedArgs{"books": p.BookIDs})
	if err != nil {
		return nil, err
	}
	var b pgx.Batch
	var parent *task.Held
	task.QueueDone(&b, *h.ParentID, len(p.BookIDs), &parent)
	if err := s.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	if parent != nil {
		s.Publish(ctx, h.Tenant, task.ProgressEvent(*parent, parent.Current, parent.Total))
	}
	return out, nil
}

// renumberEach adds a child per series.
func (s *Scanner) renumberEach(ctx context.Context, h task.Held, ids []uuid.UUID) (any, error) {
	var b pgx.Batch
	var n int64
	err := task.AddEach(&b, task.Spec{Type: task.RenumberSeries, ParentID: &h.ID, DedupeKey: task.RenumberSeries + ":"}, &n,
		`select library_id, id as series_id, null::uuid as book_id, '{}'::jsonb as params from series
		where tenant_id = app.tenant() and id = any($1) order by id`, ids)
	if err != nil {
		return nil, err
	}
	task.QueueNewChildren(&b, h.ID)
	if err := s.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	s.Added.Tell(ctx, h.Tenant)
	return map[string]int64{"tasks": n}, nil
}

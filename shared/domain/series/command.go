package series

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Titled is the response to a command that retitles series: it always starts one task.
type Titled struct {
	task.Started
	Success       bool        `json:"success"`
	TaskIDs       []uuid.UUID `json:"taskIds"`
	TasksEnqueued int         `json:"tasksEnqueued"`
}

// TryInput asks for a dry run.
type TryInput struct {
	DryRun bool `json:"dryRun" required:"false" doc:"Change nothing; the task's result shows what would change"`
}

func (in *TryInput) task() task.Spec { return task.Retitling(in != nil && in.DryRun) }

type titleInput struct {
	ID   uuid.UUID `path:"id" format:"uuid"`
	Body *TryInput `required:"false"`
}

// SeveralInput names the series of a command.
type SeveralInput struct {
	SeriesIDs []uuid.UUID `json:"seriesIds" minItems:"1" maxItems:"500" nullable:"false" doc:"Unknown ids are ignored"`
}

// starter adds and sends the task for a target, or returns the pending task for it.
type starter func(ctx context.Context, s task.Spec, t task.Target, message string) (*task.Started, error)

func command(path, id, summary, tag, permission string) httpapi.Op {
	return httpapi.Op{Method: "POST", Path: "/api/v1" + path, ID: id, Summary: summary, Tag: tag, Permission: permission}
}

// commands registers the operations that start tasks on series.
func commands(a *httpapi.API, d *db.DB, added task.Added) {
	start := func(ctx context.Context, s task.Spec, t task.Target, message string) (*task.Started, error) {
		return task.Start(ctx, d, added, s, t, message)
	}
	for _, c := range []struct {
		path, id, summary, tag, permission, typ, key, message string
		target                                                func(uuid.UUID) task.Target
		params                                                map[string]any
	}{
		{path: "/series/{id}/analyze", id: "analyzeSeries", summary: "Analyse all books of a series again",
			tag: "Series", permission: auth.SeriesWrite, typ: task.AnalyzeSeries,
			message: "The analysis of the series' books is queued", target: task.OfSeries},
		{path: "/series/{id}/analyze-unanalyzed", id: "analyzeNewBooks", summary: "Analyse the books of a series that were never analysed",
			tag: "Series", permission: auth.SeriesWrite, typ: task.AnalyzeSeries, key: "new:",
			message: "The analysis of the series' new books is queued", target: task.OfSeries, params: map[string]any{"onlyNew": true}},
		{path: "/libraries/{id}/analyze", id: "analyzeLibrary", summary: "Analyse all books of a library again",
			tag: "Libraries", permission: auth.LibrariesWrite, typ: task.AnalyzeLibrary,
			message: "The analysis of the library's books is queued", target: task.OfLibrary},
		{path: "/libraries/{id}/analyze-unanalyzed", id: "analyzeNewBooksOfLibrary", summary: "Analyse the books of a library that were never analysed",
			tag: "Libraries", permission: auth.LibrariesWrite, typ: task.AnalyzeLibrary, key: "new:",
			message: "The analysis of the library's new books is queued", target: task.OfLibrary, params: map[string]any{"onlyNew": true}},
		{path: "/series/{id}/renumber", id: "renumberSeries", summary: "Renumber the books of a series by the library's numberStrategy; locked numbers stay unchanged",
			tag: "Series", permission: auth.SeriesWrite, typ: task.RenumberSeries,
			message: "The numbering of the series' books is queued", target: task.OfSeries},
	} {
		httpapi.Register(a, command(c.path, c.id, c.summary, c.tag, c.permission), func(ctx context.Context, in *httpapi.IDInput) (*task.Started, error) {
			return start(ctx, task.Spec{Type: c.typ, Params: c.params, DedupeKey: c.typ + ":" + c.key}, c.target(in.ID), c.message)
		})
	}
	httpapi.Register(a, command("/series/bulk/analyze", "analyzeSeveralSeries", "Analyse the books of several series: those never analysed or, with force, all", "Series", auth.SeriesWrite),
		func(ctx context.Context, in *struct {
			Body struct {
				SeveralInput
				Force bool `json:"force" required:"false" doc:"Include books that were already analysed"`
			}
		}) (*task.Enqueued, error) {
			out, err := analyzeSeveral(ctx, d, in.Body.SeriesIDs, in.Body.Force)
			if err == nil {
				added.Tell(ctx, httpapi.TenantOf(ctx).ID)
			}
			return out, err
		})
	httpapi.Register(a, command("/series/bulk/renumber", "renumberSeveralSeries", "Renumber the books of several series by their libraries' numberStrategy; locked numbers stay", "Series", auth.SeriesWrite),
		func(ctx context.Context, in *struct{ Body SeveralInput }) (*task.Started, error) {
			return start(ctx, task.Spec{Type: task.RenumberSeries, DedupeKey: task.RenumberSeries + ":"}, task.OfSeveralSeries(in.Body.SeriesIDs),
				"The numbering of the series' books is queued")
		})
	titles(a, start)
}

// titles registers the operations that retitle series after their folders.
func titles(a *httpapi.API, start starter) {
	titled := func(s *task.Started, err error) (*Titled, error) {
		if err != nil {
			return nil, err
		}
		return &Titled{Started: *s, Success: true, TaskIDs: []uuid.UUID{s.TaskID}, TasksEnqueued: 1}, nil
	}
	for _, c := range []struct {
		path, id, summary, tag, permission, message string
		target                                      func(uuid.UUID) task.Target
		all                                         bool // applies to all series
	}{
		{path: "/series/{id}/title/reprocess", id: "reprocessSeriesTitle", summary: "Retitle a series from its folder by the library's titlePreprocessingRules; a locked title stays unchanged",
			tag: "Series", permission: auth.SeriesWrite, message: "The retitling of the series is queued", target: task.OfSeries},
		{path: "/libraries/{id}/series/titles/reprocess", id: "reprocessTitles", summary: "Retitle all series of a library from their folders by its titlePreprocessingRules, except locked titles",
			tag: "Libraries", permission: auth.LibrariesWrite, message: "The retitling of the library's series is queued", target: task.OfLibrary, all: true},
	} {
		httpapi.Register(a, command(c.path, c.id, c.summary, c.tag, c.permission), func(ctx context.Context, in *titleInput) (*Titled, error) {
			auth.CallerOf(ctx).SeesAll = c.all
			return titled(start(ctx, in.Body.task(), c.target(in.ID), c.message))
		})
	}
	const message = "The retitling of the series is queued"
	httpapi.Register(a, command("/series/bulk/titles/reprocess", "reprocessSeveralTitles", "Retitle several series from their folders by their libraries' titlePreprocessingRules; locked titles stay unchanged", "Series", auth.SeriesWrite),
		func(ctx context.Context, in *struct {
			Body struct {
				SeveralInput
				TryInput
			}
		}) (*task.Started, error) {
			return start(ctx, in.Body.task(), task.OfSeveralSeries(in.Body.SeriesIDs), message)
		})
	httpapi.Register(a, command("/series/titles/reprocess", "reprocessChosenTitles", "Retitle several series, or all of a library, from their folders by titlePreprocessingRules, except locked titles", "Series", auth.SeriesWrite),
		func(ctx context.Context, in *struct {
			Body struct {
				SeriesIDs []uuid.UUID `json:"seriesIds" required:"false" minItems:"1" maxItems:"500" nullable:"true" doc:"Unknown ids are ignored; if seriesIds is given, libraryId is ignored"`
				LibraryID *uuid.UUID  `json:"libraryId" required:"false" nullable:"true" format:"uuid"`
				TryInput
			}
		}) (*Titled, error) {
			var target task.Target
			switch {
			case in.Body.SeriesIDs != nil:
				target = task.OfSeveralSeries(in.Body.SeriesIDs)
			case in.Body.LibraryID != nil:
				target, auth.CallerOf(ctx).SeesAll = task.OfLibrary(*in.Body.LibraryID), true
			default:
				return nil, fault.Invalid("seriesIds", "is required, unless libraryId selects all series of a library")
			}
			return titled(start(ctx, in.Body.task(), target, message))
		})
}

// analyzeSeveral adds a task for each series that has books to analyse: books never analysed or, with force, all.
func analyzeSeveral(ctx context.Context, d *db.DB, ids []uuid.UUID, force bool) (*task.Enqueued, error) {
	spec := task.Spec{Type: task.AnalyzeSeries, DedupeKey: task.AnalyzeSeries + ":"}
	if !force {
		spec.DedupeKey, spec.Params = spec.DedupeKey+"new:", map[string]any{"onlyNew": true}
	}
	var b pgx.Batch
	var n int64
	err := task.AddEach(&b, spec, &n, `select s.library_id, s.id as series_id, null::uuid as book_id, '{}'::jsonb as params from series s
		where s.tenant_id = app.tenant() and s.id = any($1) and exists (select from book b where b.tenant_id = app.tenant() and b.series_id = s.id
		  and b.deleted_at is null and (`+book.NeverReadSQL+` or $2)) order by s.id`, ids, force)
	if err != nil {
		return nil, err
	}
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	return &task.Enqueued{TasksEnqueued: n, Message: fmt.Sprintf("Series queued for analysis: %d", n)}, nil
}

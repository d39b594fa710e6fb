package series

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Titled is the answer to a command that gives series their titles: one task.
type Titled struct {
	book.Started
	Success       bool        `json:"success"`
	TaskIDs       []uuid.UUID `json:"taskIds"`
	TasksEnqueued int         `json:"tasksEnqueued"`
}

// titleInput tells whether titles are only tried.
type titleInput struct {
	ID   uuid.UUID `path:"id" format:"uuid"`
	Body *struct {
		DryRun bool `json:"dryRun" required:"false" doc:"Change nothing: the task's result tells what would be"`
	} `required:"false"`
}

func (in *titleInput) params() map[string]any {
	return map[string]any{"dryRun": in.Body != nil && in.Body.DryRun}
}

// commands adds the operations that start tasks on series.
func commands(a *httpapi.API, d *db.DB, added task.Added) {
	queued := func(ctx context.Context, s *book.Started, err error) (*book.Started, error) {
		if err == nil {
			added.Tell(ctx, httpapi.TenantOf(ctx).ID)
		}
		return s, err
	}
	for _, c := range []struct {
		path, id, summary, typ, key, message string
		params                               map[string]any
	}{
		{"analyze", "analyzeSeries", "Analyse all books of a series again", task.AnalyzeSeries, "", "The analysis of the series' books is queued", map[string]any{}},
		{"analyze-unanalyzed", "analyzeNewBooks", "Analyse the books of a series that never were", task.AnalyzeSeries, "new:",
			"The analysis of the series' new books is queued", map[string]any{"onlyNew": true}},
		{"renumber", "renumberSeries", "Number the books of a series again, as the library's numberStrategy says; locked numbers stay", task.RenumberSeries, "",
			"The numbering of the series' books is queued", map[string]any{}},
	} {
		httpapi.Register(a, httpapi.Op{Method: "POST", Path: "/api/v1/series/{id}/" + c.path, ID: c.id, Summary: c.summary, Tag: "Series", Permission: auth.SeriesWrite},
			func(ctx context.Context, in *IDInput) (*book.Started, error) {
				s, err := start(ctx, d, "Series", librarySeries, in.ID, task.Spec{Type: c.typ, Params: c.params, SeriesID: &in.ID, DedupeKey: c.typ + ":" + c.key + in.ID.String()}, c.message)
				return queued(ctx, s, err)
			})
	}
	titled := func(s *book.Started, err error) (*Titled, error) {
		if err != nil {
			return nil, err
		}
		return &Titled{Started: *s, Success: true, TaskIDs: []uuid.UUID{s.TaskID}, TasksEnqueued: 1}, nil
	}
	httpapi.Register(a, httpapi.Op{Method: "POST", Path: "/api/v1/series/{id}/title/reprocess", ID: "reprocessSeriesTitle",
		Summary: "Call a series after its folder again, by the library's titlePreprocessingRules; a locked title stays", Tag: "Series", Permission: auth.SeriesWrite},
		func(ctx context.Context, in *titleInput) (*Titled, error) {
			s, err := start(ctx, d, "Series", librarySeries, in.ID, task.Spec{Type: task.ReprocessTitles, Params: in.params(), SeriesID: &in.ID}, "The title of the series is queued to be made again")
			return titled(queued(ctx, s, err))
		})
	httpapi.Register(a, httpapi.Op{Method: "POST", Path: "/api/v1/libraries/{id}/series/titles/reprocess", ID: "reprocessTitles",
		Summary: "Call all series of a library after their folders again, by its titlePreprocessingRules; locked titles stay", Tag: "Libraries", Permission: auth.LibrariesWrite},
		func(ctx context.Context, in *titleInput) (*Titled, error) {
			s, err := start(ctx, d, "Library", libraryItself, in.ID, task.Spec{Type: task.ReprocessTitles, Params: in.params()}, "The titles of the library's series are queued to be made again")
			return titled(queued(ctx, s, err))
		})
}

// Where the library of a task is found.
const (
	librarySeries = "select library_id from series where tenant_id = app.tenant() and id = $1"
	libraryItself = "select id as library_id from library where tenant_id = app.tenant() and id = $1"
)

// start adds a task for a series or all of a library, or finds the one that waits already; library is the query for the
// library of what has the id.
func start(ctx context.Context, d *db.DB, kind, library string, id uuid.UUID, spec task.Spec, message string) (*book.Started, error) {
	at, err := db.Get[struct {
		ID uuid.UUID `db:"library_id"`
	}](ctx, d, library, id)
	if err != nil {
		return nil, err
	}
	if at == nil {
		return nil, fault.Missing(kind)
	}
	var b pgx.Batch
	out := book.Started{Message: message}
	spec.LibraryID = &at.ID
	if err := task.Add(&b, spec, &out.TaskID); err != nil {
		return nil, err
	}
	return &out, d.Run(ctx, &b)
}

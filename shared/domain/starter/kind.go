package starter

import (
	"context"
	"slices"

	"github.com/longbox/longbox/shared/domain/cover"
	"github.com/longbox/longbox/shared/domain/orphan"
	"github.com/longbox/longbox/shared/domain/pack/pdfcache"
	"github.com/longbox/longbox/shared/domain/plugin"
	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/fault"
)

// kind is a type of task that people can start.
type kind struct {
	needs      []string // required parameters
	takes      []string // optional parameters
	permission string   // of its own operation
	// all reports whether the task requires that the caller sees every series; nil for never.
	all   func(*TaskType) bool
	start func(ctx context.Context, s *starter, in *Body) (*task.Started, error)
}

var kinds = map[string]kind{
	task.ScanLibrary: {needs: []string{"libraryId"}, takes: []string{"mode"}, permission: auth.LibrariesWrite, start: startScan},
	task.PurgeDeleted: {needs: []string{"libraryId"}, permission: auth.LibrariesWrite, all: always,
		start: func(ctx context.Context, s *starter, in *Body) (*task.Started, error) {
			return scan.RequestPurge(ctx, s.database, s.added, in.TaskType.LibraryID, nil, in.as)
		}},
	task.AnalyzeBook:    {needs: []string{"bookId"}, takes: []string{"force"}, permission: auth.BooksWrite, start: startAnalysis},
	task.AnalyzeSeries:  simple(task.AnalyzeSeries, "seriesId", auth.SeriesWrite),
	task.AnalyzeLibrary: simple(task.AnalyzeLibrary, "libraryId", auth.LibrariesWrite),
	"reprocess_series_title": {needs: []string{"seriesId"}, takes: []string{"dryRun"}, permission: auth.SeriesWrite,
		start: startTitles},
	task.ReprocessTitles: {takes: []string{"seriesIds", "libraryId", "dryRun"}, permission: auth.SeriesWrite,
		all: func(t *TaskType) bool { return t.SeriesIDs == nil }, start: startTitles},
	task.RenumberSeries: simple(task.RenumberSeries, "seriesId", auth.SeriesWrite),
	"renumber_series_batch": {needs: []string{"seriesIds"}, permission: auth.SeriesWrite,
		start: func(ctx context.Context, s *starter, in *Body) (*task.Started, error) {
			return s.add(ctx, in, task.Spec{Type: task.RenumberSeries, DedupeKey: task.RenumberSeries + ":"}, task.OfSeveralSeries(in.TaskType.SeriesIDs))
		}},
	"generate_thumbnail":        covers(task.BookCovers, []string{"bookId"}),
	task.BookCovers:             covers(task.BookCovers, nil, "bookIds", "seriesIds", "seriesId", "libraryId"),
	"generate_series_thumbnail": covers(task.SeriesCovers, []string{"seriesId"}),
	task.SeriesCovers:           covers(task.SeriesCovers, nil, "seriesIds", "libraryId"),
	task.FindDuplicates: {permission: auth.BooksWrite, start: func(ctx context.Context, s *starter, in *Body) (*task.Started, error) {
		return s.add(ctx, in, task.Spec{Type: task.FindDuplicates, DedupeKey: task.FindDuplicates}, task.Everything())
	}},
	task.CleanUpOrphans: {permission: auth.SystemAdmin, all: always, start: func(ctx context.Context, s *starter, in *Body) (*task.Started, error) {
		return s.add(ctx, in, orphan.Making(), task.Everything())
	}},
	task.CleanUpPDF: {permission: auth.SystemAdmin, all: always, start: func(ctx context.Context, s *starter, in *Body) (*task.Started, error) {
		return s.add(ctx, in, pdfcache.Making(false), task.Everything())
	}},
	task.BackfillTracking: {takes: []string{"seriesIds", "libraryId"}, permission: auth.SeriesWrite,
		all: func(t *TaskType) bool { return t.SeriesIDs == nil },
		start: func(ctx context.Context, s *starter, in *Body) (*task.Started, error) {
			return s.add(ctx, in, task.Spec{Type: task.BackfillTracking, DedupeKey: task.BackfillTracking + ":"}, in.TaskType.target())
		}},
	task.RefreshLibrary: {needs: []string{"jobId"}, permission: auth.LibrariesWrite, all: always,
		start: func(ctx context.Context, s *starter, in *Body) (*task.Started, error) {
			return plugin.StartJob(ctx, s.database, s.added, *in.TaskType.JobID, in.Priority)
		}},
	task.PluginAutoMatch: {needs: []string{"pluginId", "seriesId"}, takes: []string{"sourceScope"}, permission: auth.SeriesWrite, start: startMatch},
}

func always(*TaskType) bool { return true }

// simple is a type with one parameter.
func simple(typ, about, permission string) kind {
	return kind{needs: []string{about}, permission: permission, start: func(ctx context.Context, s *starter, in *Body) (*task.Started, error) {
		return s.add(ctx, in, task.Spec{Type: typ, DedupeKey: typ + ":"}, in.TaskType.target())
	}}
}

// covers is a type that makes covers, for the first given parameter, or for all.
func covers(typ string, needs []string, takes ...string) kind {
	return kind{needs: needs, takes: append(takes, "force"), permission: auth.TasksWrite,
		start: func(ctx context.Context, s *starter, in *Body) (*task.Started, error) {
			return s.add(ctx, in, cover.Making(typ, in.TaskType.Force != nil && *in.TaskType.Force), in.TaskType.target())
		}}
}

func startScan(ctx context.Context, s *starter, in *Body) (*task.Started, error) {
	mode := scan.Normal
	if in.TaskType.Mode != nil {
		mode = *in.TaskType.Mode
	}
	return scan.Request(ctx, s.database, s.publish, s.added, *in.TaskType.LibraryID, scan.Params{Mode: mode}, in.Priority)
}

// startAnalysis analyses a book that was never analysed; with force, any book.
func startAnalysis(ctx context.Context, s *starter, in *Body) (*task.Started, error) {
	id := *in.TaskType.BookID
	if in.TaskType.Force != nil && *in.TaskType.Force {
		return s.add(ctx, in, task.Analysis(id), task.OfBook(id))
	}
	out, err := s.add(ctx, in, task.Analysis(id), task.OfNewBook(id))
	if fault.Is(err, fault.NotFound) {
		return nil, fault.Invalid("taskType.bookId", "there is no such book, or it has already been analysed; to analyse it again, set force")
	}
	return out, err
}

func startTitles(ctx context.Context, s *starter, in *Body) (*task.Started, error) {
	t := &in.TaskType
	if t.SeriesID == nil && t.SeriesIDs == nil && t.LibraryID == nil {
		return nil, fault.Invalid("taskType.seriesIds", "is required, unless libraryId selects all series of a library")
	}
	return s.add(ctx, in, task.Retitling(t.DryRun != nil && *t.DryRun), t.target())
}

func startMatch(ctx context.Context, s *starter, in *Body) (*task.Started, error) {
	out, err := plugin.StartMatch(ctx, s.database, s.added, *in.TaskType.PluginID, *in.TaskType.SeriesID, in.as)
	if err != nil {
		return nil, err
	}
	if len(out.TaskIDs) == 0 { // it has ended meanwhile
		return nil, fault.New(fault.Conflict, "The task ended before its id was known; look at the series")
	}
	return &task.Started{TaskID: out.TaskIDs[0], Message: "The task is queued"}, nil
}

// add adds a task for a target.
func (s *starter) add(ctx context.Context, in *Body, spec task.Spec, t task.Target) (*task.Started, error) {
	in.as(&spec)
	return task.Start(ctx, s.database, s.added, spec, t, "The task is queued")
}

// as sets priority and time.
func (in *Body) as(spec *task.Spec) { spec.Priority, spec.At = in.Priority, in.ScheduledFor }

// target returns the narrowest target among the parameters, or everything.
func (t *TaskType) target() task.Target {
	switch {
	case t.BookID != nil:
		return task.OfBook(*t.BookID)
	case t.BookIDs != nil:
		return task.OfBooks(t.BookIDs)
	case t.SeriesIDs != nil:
		return task.OfSeveralSeries(t.SeriesIDs)
	case t.SeriesID != nil:
		return task.OfSeries(*t.SeriesID)
	case t.LibraryID != nil:
		return task.OfLibrary(*t.LibraryID)
	}
	return task.OfAll()
}

// said returns the names of the given parameters.
func (t *TaskType) said() (names []string) {
	for _, m := range []struct {
		name string
		said bool
	}{{"libraryId", t.LibraryID != nil}, {"seriesId", t.SeriesID != nil}, {"bookId", t.BookID != nil}, {"pluginId", t.PluginID != nil}, {"jobId", t.JobID != nil}, {"seriesIds", t.SeriesIDs != nil},
		{"bookIds", t.BookIDs != nil}, {"mode", t.Mode != nil}, {"force", t.Force != nil}, {"dryRun", t.DryRun != nil}, {"sourceScope", t.SourceScope != nil}} {
		if m.said {
			names = append(names, m.name)
		}
	}
	return names
}

// check rejects superfluous and missing parameters.
func (k kind) check(t *TaskType) error {
	var bad []fault.Field
	said := t.said()
	for _, name := range k.needs {
		if !slices.Contains(said, name) {
			bad = append(bad, fault.Field{Field: "taskType." + name, Message: "is required for tasks of type " + t.Type})
		}
	}
	for _, name := range said {
		if !slices.Contains(k.needs, name) && !slices.Contains(k.takes, name) {
			bad = append(bad, fault.Field{Field: "taskType." + name, Message: "is not valid for tasks of type " + t.Type})
		}
	}
	return fault.InvalidFields(bad)
}

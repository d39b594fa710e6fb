package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/domain/library"
	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/format/handlebars"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// SearchResult is a search result of a plugin.
type SearchResult struct {
	ExternalID      string        `json:"externalId"`
	Title           string        `json:"title"`
	AlternateTitles []string      `json:"alternateTitles" nullable:"true"`
	Year            *float64      `json:"year"`
	CoverURL        *string       `json:"coverUrl"`
	RelevanceScore  *float64      `json:"relevanceScore" doc:"0 to 1"`
	Preview         *SearchDetail `json:"preview"`
}

// SearchDetail holds more about a search result.
type SearchDetail struct {
	Status      *string  `json:"status"`
	Genres      []string `json:"genres" nullable:"true"`
	Rating      *float64 `json:"rating"`
	Description *string  `json:"description"`
	BookCount   *float64 `json:"bookCount"`
	Authors     []string `json:"authors" nullable:"true"`
	Format      *string  `json:"format"`
}

// MatchBody names the plugin to match a series with.
type MatchBody struct {
	PluginID uuid.UUID `json:"pluginId" format:"uuid"`
	Query    *string   `json:"query,omitempty" maxLength:"500" nullable:"true" doc:"Search text to use instead of the title"`
}

// Matched is the result of a match.
type Matched struct {
	Success       bool          `json:"success" doc:"Whether the plugin knows the series"`
	Message       string        `json:"message"`
	MatchedResult *SearchResult `json:"matchedResult"`
	AppliedFields []string      `json:"appliedFields" nullable:"false"`
	SkippedFields []Skipped     `json:"skippedFields" nullable:"false"`
	ExternalURL   *string       `json:"externalUrl"`

	done *Applied // nil if the plugin does not know the series
}

// Enqueued are the tasks that were started.
type Enqueued struct {
	Success       bool        `json:"success"`
	TasksEnqueued int         `json:"tasksEnqueued"`
	TaskIDs       []uuid.UUID `json:"taskIds" nullable:"false" doc:"At most 500 ids"`
	Message       string      `json:"message"`
}

// title returns the search text for a series.
func (p *Plugin) title(d *series.Details) (*SearchTitle, error) {
	out := &SearchTitle{OriginalTitle: d.Metadata.Title, SearchTitle: d.Metadata.Title}
	if p.SearchQueryTemplate != nil {
		about, err := contextOf(d)
		if err != nil {
			return nil, err
		}
		if out.SearchTitle, err = expand(*p.SearchQueryTemplate, about); err != nil {
			return nil, fault.New(fault.BadRequest, "The plugin's searchQueryTemplate cannot be used: %v", err)
		}
	}
	for i := range p.SearchPreprocessingRules {
		after := library.CleanTitle(p.SearchPreprocessingRules[i:i+1], out.SearchTitle)
		if after != out.SearchTitle {
			out.RulesApplied++
		}
		out.SearchTitle = after
	}
	out.SearchTitle = clip(out.SearchTitle)
	return out, nil
}

// expand renders a template to a single line.
func expand(text string, context map[string]any) (string, error) {
	t, err := handlebars.Parse(text)
	if err != nil {
		return "", err
	}
	out, err := t.Execute(context)
	return strings.Join(strings.Fields(out), " "), err
}

// search searches the plugin for a series or book, by a text and further parameters; nil, and why, if no result is
// certain enough. A result without a score is certain if it has the title of the series, or if it is the only one for
// an ISBN.
func (r *Runner) search(ctx context.Context, m *matchable, query string, params map[string]any) (best *SearchResult, why string, a *asked) {
	p := m.plugin
	params["query"] = query
	if p.SearchResultsLimit != nil {
		params["limit"] = *p.SearchResultsLimit
	}
	var found struct {
		Results []SearchResult `json:"results"`
	}
	a = r.ask(ctx, p, "metadata/"+m.kind()+"/search", params, &found)
	if a.fault != nil && a.fault.RPC == notFound { // same as no results
		a.fault = nil
	}
	score := -1.0
	for i := range found.Results {
		f := &found.Results[i]
		of := 0.0
		switch {
		case f.RelevanceScore != nil:
			of = *f.RelevanceScore
		case m.book == nil && strings.EqualFold(f.Title, query), params["isbn"] != nil && len(found.Results) == 1:
			of = 1
		}
		if f.ExternalID != "" && len(f.ExternalID) <= 500 && of > score {
			best, score = f.shown(), of
		}
	}
	switch {
	case a.fault != nil:
		return nil, "", a
	case best == nil:
		return nil, fmt.Sprintf("%s finds nothing for %q", p.DisplayName, query), a
	case score < m.sure:
		return nil, fmt.Sprintf("%s finds no certain match for %q: the best is %q with %.2f; at least %.2f is needed", p.DisplayName, query,
			clip(cut.Storable(best.Title)), score, m.sure), a
	}
	return best, "", a
}

// shown removes unusable values from the result.
func (r *SearchResult) shown() *SearchResult {
	r.CoverURL = outward(r.CoverURL)
	r.Year = integer(r.Year)
	if r.Preview != nil {
		r.Preview.BookCount = integer(r.Preview.BookCount)
	}
	return r
}

// integer returns n if it is one, else nil.
func integer(n *float64) *float64 {
	if n == nil || *n != math.Trunc(*n) {
		return nil
	}
	return n
}

// known returns the plugin's id of a series if it is stored, "" if it must be searched for.
func known(p *Plugin, d *series.Details) string {
	if !p.UseExistingExternalID {
		return ""
	}
	for _, id := range d.ExternalIDs {
		if id.Source == sourcePrefix+p.Name {
			return id.ExternalID
		}
	}
	return ""
}

// match finds a series at the plugin and writes its metadata. query may be empty, and so may id, the plugin's id of the
// series.
func (r *Runner) match(ctx context.Context, m *matchable, query, id string, o options) (*Matched, error) {
	p, d := m.plugin, m.series
	out := &Matched{AppliedFields: []string{}, SkippedFields: []Skipped{}}
	var before []*asked
	if query == "" && id == "" {
		id = known(&p.Plugin, d)
	}
	if id == "" {
		if query == "" {
			t, err := p.title(d)
			if err != nil {
				return nil, err
			}
			query = t.SearchTitle
		}
		if query == "" {
			out.Message = "There is nothing to search for: the plugin's searchQueryTemplate and rules produce an empty text for this series"
			return out, nil
		}
		best, why, asked := r.search(ctx, m, query, map[string]any{})
		if asked.fault != nil || best == nil {
			out.Message = why
			return out, r.errNoted(ctx, p, asked)
		}
		out.MatchedResult, before, id = best, append(before, asked), best.ExternalID
	}
	done, err := r.apply(ctx, p, &seriesEdit{Details: d}, id, o, before...)
	if err != nil {
		return nil, foundAlready(err, id)
	}
	out.Success, out.Message, out.AppliedFields, out.SkippedFields = true, done.Message, done.AppliedFields, done.SkippedFields
	out.ExternalURL, out.done = outward(done.externalURL), done
	return out, nil
}

// foundAlready adds the id that was found to a rate-limit error, so that the retry need not search again.
func foundAlready(err error, id string) error {
	if l, ok := errors.AsType[*limit](err); ok {
		l.found = id
	}
	return err
}

func (s *service) matchRoutes(a *httpapi.API) {
	op := httpapi.Group{Path: "/api/v1", Tag: "Plugins"}.For(auth.SeriesWrite)
	httpapi.Register(a, op("POST", "/series/{id}/metadata/auto-match", "matchSeries", "Match a series with a plugin and apply the metadata found"),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body MatchBody
		}) (*Matched, error) {
			m, err := s.matchable(ctx, in.Body.PluginID, "series", &item{ID: in.ID}, false)
			if err != nil {
				return nil, err
			}
			query := ""
			if in.Body.Query != nil {
				query = clip(cut.Storable(*in.Body.Query))
			}
			return s.match(ctx, m, query, "", options{})
		})
	httpapi.Register(a, op("POST", "/series/{id}/metadata/auto-match/task", "matchSeriesByTask", "Start the task that matches a series with a plugin"),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body struct {
				PluginID uuid.UUID `json:"pluginId" format:"uuid"`
			}
		}) (*Enqueued, error) {
			return s.enqueue(ctx, in.Body.PluginID, oneSeries(in.ID))
		})
	httpapi.Register(a, op("POST", "/series/metadata/auto-match/task/bulk", "matchAllSeriesByTask", "Start the tasks that match several series with a plugin"),
		func(ctx context.Context, in *struct {
			Body struct {
				PluginID  uuid.UUID   `json:"pluginId" format:"uuid"`
				SeriesIDs []uuid.UUID `json:"seriesIds" nullable:"false" minItems:"1" maxItems:"1000"`
			}
		}) (*Enqueued, error) {
			return s.enqueue(ctx, in.Body.PluginID, selection{condition: "s.id = any($2)", arg: in.Body.SeriesIDs})
		})
	httpapi.Register(a, op("POST", "/libraries/{id}/metadata/auto-match/task", "matchLibraryByTask", "Start the tasks that match every series of a library with a plugin"),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body struct {
				PluginID uuid.UUID `json:"pluginId" format:"uuid"`
			}
		}) (*Enqueued, error) {
			return s.enqueue(ctx, in.Body.PluginID, selection{"s.library_id = $2", in.ID, "Library", "select id from library where tenant_id = app.tenant() and id = $1"})
		})
}

// matchable is a series or book to match with a plugin.
type matchable struct {
	subject
	plugin *runnable
	sure   float64 // minimum score
}

// matchable reads a plugin and an item, and checks that the plugin is for the item; patient gives the plugin the
// timeout of a task.
func (r *Runner) matchable(ctx context.Context, plugin uuid.UUID, kind string, i *item, patient bool) (*matchable, error) {
	var b pgx.Batch
	var m matchable
	var threshold string
	queueRunnable(&b, &m.plugin, plugin)
	load := queueSubject(&b, kind, i)
	setting.Value(&b, setting.MatchThreshold, &threshold)
	seconds := queuePatience(&b)
	err := r.Database.Run(ctx, &b)
	if err != nil {
		return nil, err
	}
	if m.subject, err = load(); err != nil {
		return nil, err
	}
	if err := m.plugin.plugin().usable(); err != nil {
		return nil, err
	}
	if err := m.plugin.about(kind, m.library()); err != nil {
		return nil, err
	}
	if patient {
		m.plugin.patient(*seconds)
	}
	if m.sure, err = strconv.ParseFloat(threshold, 64); err != nil {
		m.sure = 1
	}
	return &m, nil
}

// queuePatience reads the timeout in seconds of plugin requests in tasks.
func queuePatience(b *pgx.Batch) (seconds *int64) {
	seconds = new(int64)
	setting.Int(b, setting.PluginTaskTimeout, seconds)
	return seconds
}

// patient sets the timeout of tasks, unless the plugin has its own.
func (p *runnable) patient(seconds int64) {
	if p.RequestTimeoutSeconds == nil {
		p.RequestTimeoutSeconds = new(int32(seconds))
	}
}

// params are the parameters of a task that matches a series.
type params struct {
	PluginID uuid.UUID `json:"pluginId"`
}

// selection selects series to match.
type selection struct {
	condition string // SQL for series s and arg, $2
	arg       any
	what      string // what arg must name, else the error is NotFound; "": it may name nothing
	library   string // SQL for the library of arg, $1
}

func oneSeries(id uuid.UUID) selection {
	return selection{"s.id = $2", id, "Series", "select library_id from series where tenant_id = app.tenant() and id = $1"}
}

// enqueue starts a task for every selected series that the plugin is for, unless one is pending and not put off. as
// changes the tasks.
func (s *service) enqueue(ctx context.Context, plugin uuid.UUID, of selection, as ...func(*task.Spec)) (*Enqueued, error) {
	var b pgx.Batch
	var p *Plugin
	var n int64
	var at *uuid.UUID // library of the selection, if there is only one
	out := &Enqueued{}
	db.One(&b, &p, selectPlugin, plugin)
	db.NoStatementTimeout(&b) // adding thousands of tasks takes long
	if of.what != "" {
		db.Value(&b, &at, of.library, of.arg)
	}
	spec := task.Spec{Type: task.PluginAutoMatch, Params: params{plugin}, DedupeKey: "plugin_auto_match:" + plugin.String() + ":"}
	for _, change := range as {
		change(&spec)
	}
	const waits = `t.tenant_id = app.tenant() and t.type = 'plugin_auto_match' and t.status in ('pending', 'running') and t.series_id = s.id
		  and case when $3::timestamptz is null then not ` + task.PutOffSQL + ` else date_trunc('second', t.scheduled_for) = date_trunc('second', $3) end`
	if err := task.AddEach(&b, spec, &n, `
		select s.library_id, s.id as series_id, null::uuid as book_id, '{}'::jsonb as params from series s join plugin p on p.tenant_id = s.tenant_id and p.id = $1
		where s.tenant_id = app.tenant() and p.enabled and app.asks_series(p) and (p.library_ids = '{}' or s.library_id = any(p.library_ids))
		  and not exists (select from task t where `+waits+" and t.params ->> 'pluginId' = p.id::text) and "+of.condition+" order by s.id",
		plugin, of.arg, spec.At); err != nil {
		return nil, err
	}
	db.Values(&b, &out.TaskIDs, "select t.id from task t join series s on s.tenant_id = t.tenant_id and "+waits+
		" where t.params ->> 'pluginId' = $1::uuid::text and "+of.condition+" order by t.id limit 500", plugin, of.arg, spec.At)
	if err := s.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	if at == nil && of.what != "" {
		return nil, fault.Missing(of.what)
	}
	if err := p.usable(); err != nil {
		return nil, err
	}
	if err := p.gives("series"); err != nil {
		return nil, err
	}
	if at != nil {
		if err := p.isFor(*at); err != nil {
			return nil, err
		}
	}
	s.Added.Tell(ctx, httpapi.TenantOf(ctx).ID)
	out.Success, out.TasksEnqueued = true, int(n)
	out.Message = fmt.Sprintf("%d tasks are queued", n)
	if n == 1 {
		out.Message = "1 task is queued"
	}
	return out, nil
}

// StartMatch starts the task that matches a series with a plugin, or finds the pending one, and calls added; as changes
// the task. NotFound if there is no such plugin or series.
func StartMatch(ctx context.Context, d *db.DB, added task.Added, plugin, series uuid.UUID, as func(*task.Spec)) (*Enqueued, error) {
	s := &service{&Runner{Database: d, Added: added}}
	return s.enqueue(ctx, plugin, oneSeries(series), as)
}

// Outcome is the result of a task.
type Outcome struct {
	Matched bool     `json:"matched"`
	Message string   `json:"message"`
	Applied []string `json:"appliedFields"`
}

// waiting is the checkpoint of a task.
type waiting struct {
	retries
	Found string `json:"found"` // the plugin's id of the series, if it was found already
}

// Match handles plugin_auto_match tasks.
func (r *Runner) Match(ctx context.Context, h task.Held) (any, error) {
	var in params
	if err := json.Unmarshal(h.Params, &in); err != nil || h.SeriesID == nil {
		return nil, fault.New(fault.BadRequest, "The task does not name both a plugin and a series")
	}
	var at waiting
	if err := h.Resume(&at); err != nil {
		return nil, err
	}
	asking, cancel := patience(ctx)
	defer cancel()
	out, err := r.matchByTask(asking, in.PluginID, *h.SeriesID, at.Found)
	if wait, ok := at.again(err, interrupted(ctx, asking, err), fault.TooManyRequests, fault.Conflict); ok {
		if l, ok := errors.AsType[*limit](err); ok {
			at.Found = l.found
		}
		return nil, task.Later(at, wait)
	}
	return out, err
}

// matchByTask is match under the conditions of the library and the plugin; found is the plugin's id of the series, ""
// if unknown.
func (r *Runner) matchByTask(ctx context.Context, plugin, id uuid.UUID, found string) (any, error) {
	m, err := r.matchable(ctx, plugin, "series", &item{ID: id}, true)
	if err != nil {
		return nil, err
	}
	if no, err := r.unwanted(ctx, m); err != nil || no != "" {
		return Outcome{Message: no, Applied: []string{}}, err
	}
	out, err := r.match(ctx, m, "", found, options{})
	if err != nil {
		return nil, err
	}
	return Outcome{out.Success, out.Message, out.AppliedFields}, nil
}

// unwanted returns which condition of its library or of the plugin excludes a series or book from matching by tasks, ""
// if none does.
func (r *Runner) unwanted(ctx context.Context, m *matchable) (string, error) {
	about, err := m.context()
	if err != nil {
		return "", err
	}
	of, err := db.Get[struct {
		Conditions json.RawMessage `db:"auto_match_conditions"`
	}](ctx, r.Database, "select auto_match_conditions from library where tenant_id = app.tenant() and id = $1", m.library())
	if err != nil {
		return "", err
	}
	if of == nil {
		return "", fault.Missing("Library")
	}
	no, err := failed(about, of.Conditions, m.plugin.AutoMatchConditions)
	if err != nil || no == nil {
		return "", err
	}
	return fmt.Sprintf("Skipped: the condition on %s is not met", no.Field), nil
}

package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/domain/cover"
	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/plug"
)

// PreviewBody names an item of a plugin.
type PreviewBody struct {
	PluginID   uuid.UUID `json:"pluginId" format:"uuid"`
	ExternalID string    `json:"externalId" minLength:"1" maxLength:"500" doc:"The plugin's id of the item"`
}

// ApplyBody names the item and the fields to write.
type ApplyBody struct {
	PreviewBody
	Fields []string `json:"fields,omitempty" nullable:"true" maxItems:"100" doc:"Names of the fields to write, as in a preview; null means all"`
	DryRun bool     `json:"dryRun,omitempty" doc:"Write nothing and return what would be written"`
}

// Preview says per field what applying would do.
type Preview struct {
	PluginID    uuid.UUID      `json:"pluginId"`
	PluginName  string         `json:"pluginName"`
	ExternalID  string         `json:"externalId"`
	ExternalURL *string        `json:"externalUrl"`
	Fields      []FieldPreview `json:"fields" nullable:"false"`
	Summary     Summary        `json:"summary"`
}

// Summary counts the fields of a preview by status.
type Summary struct {
	WillApply    int `json:"willApply"`
	Locked       int `json:"locked"`
	NoPermission int `json:"noPermission"`
	Unchanged    int `json:"unchanged"`
	NotProvided  int `json:"notProvided"`
}

// preview builds a Preview from fields.
func preview(p *Plugin, m *common, fields []FieldPreview) *Preview {
	out := &Preview{PluginID: p.ID, PluginName: p.Name, ExternalID: m.ExternalID, ExternalURL: outward(m.ExternalURL), Fields: fields}
	for _, f := range fields {
		*map[string]*int{willApply: &out.Summary.WillApply, locked: &out.Summary.Locked, noPermission: &out.Summary.NoPermission,
			unchanged: &out.Summary.Unchanged, notProvided: &out.Summary.NotProvided}[f.Status]++
	}
	return out
}

// Skipped is a field that was not written, with the reason.
type Skipped struct {
	Field  string `json:"field"`
	Reason string `json:"reason"`
}

// Applied lists what was written, or would be by a dry run.
type Applied struct {
	Success       bool      `json:"success"`
	Message       string    `json:"message"`
	AppliedFields []string  `json:"appliedFields" nullable:"false"`
	SkippedFields []Skipped `json:"skippedFields" nullable:"false"`
	DryRunReport  *Report   `json:"dryRunReport" doc:"Set only for a dry run"`

	externalURL *string
}

// Report lists what a dry run would have written.
type Report struct {
	Changes []Change `json:"changes" nullable:"false"`
}

// Change is a field before and after.
type Change struct {
	Field  string `json:"field"`
	Before any    `json:"before"`
	After  any    `json:"after"`
}

// choose calls write of every field that applies, and lists the applied and skipped ones. only limits it to the
// requested fields; nil means all.
func choose(fields []FieldPreview, only []string) *Applied {
	out := &Applied{Success: true, AppliedFields: []string{}, SkippedFields: []Skipped{}, DryRunReport: &Report{[]Change{}}}
	for _, f := range fields {
		switch {
		case only != nil && !slices.Contains(only, f.Field):
		case f.Status == willApply:
			f.write()
			out.AppliedFields = append(out.AppliedFields, f.Field)
			out.DryRunReport.Changes = append(out.DryRunReport.Changes, Change{f.Field, f.CurrentValue, f.ProposedValue})
		case f.Reason != nil:
			out.SkippedFields = append(out.SkippedFields, Skipped{f.Field, *f.Reason})
		}
	}
	return out
}

// checkFields rejects names that no field of a preview has.
func checkFields(only []string, fields []FieldPreview) error {
	for i, name := range only {
		if !slices.ContainsFunc(fields, func(f FieldPreview) bool { return f.Field == name }) {
			return fault.Invalid(fmt.Sprintf("fields[%d]", i), "must be a field of a preview")
		}
	}
	return nil
}

// withoutCover takes the cover back that was to be written.
func (a *Applied) withoutCover() {
	a.AppliedFields = slices.DeleteFunc(a.AppliedFields, func(f string) bool { return f == "cover" })
}

// skipCover is withoutCover with a reason.
func (a *Applied) skipCover(reason string) {
	a.withoutCover()
	a.SkippedFields = append(a.SkippedFields, Skipped{"cover", reason})
}

// said sets the message.
func (a *Applied) said(verb string) {
	switch len(a.AppliedFields) {
	case 0:
		a.Message = "Nothing " + verb
	case 1:
		a.Message = "1 field " + verb
	default:
		a.Message = fmt.Sprintf("%d fields %s", len(a.AppliedFields), verb)
	}
}

// gives returns why the plugin provides no metadata of a kind, or nil.
func (p *Plugin) gives(kind string) error {
	if p.provides(kind) {
		return nil
	}
	return fault.New(fault.BadRequest, "The plugin %s provides no metadata for a %s", p.Name, kind)
}

// isFor returns why the plugin is not for a library, or nil.
func (p *Plugin) isFor(library uuid.UUID) error {
	if p.serves(library) {
		return nil
	}
	return fault.New(fault.BadRequest, "The plugin %s does not serve this library", p.Name)
}

// about combines gives and isFor.
func (p *Plugin) about(kind string, library uuid.UUID) error {
	if err := p.gives(kind); err != nil {
		return err
	}
	return p.isFor(library)
}

// subject reads a plugin and a series, and checks that the plugin is for the series.
func (r *Runner) subject(ctx context.Context, plugin, id uuid.UUID) (*runnable, *series.Details, error) {
	var b pgx.Batch
	var p *runnable
	queueRunnable(&b, &p, plugin)
	load := series.QueueDetails(&b, id)
	if err := r.Database.Run(ctx, &b); err != nil {
		return nil, nil, err
	}
	d, err := load()
	if err != nil {
		return nil, nil, err
	}
	if err := p.plugin().usable(); err != nil {
		return nil, nil, err
	}
	return p, d, p.about("series", d.LibraryID)
}

func (s *service) seriesRoutes(a *httpapi.API) {
	op := httpapi.Group{Path: "/api/v1/series/{id}/metadata", Tag: "Plugins"}.For(auth.SeriesWrite)
	httpapi.Register(a, op("POST", "/preview", "previewSeriesMetadata", "Preview the metadata of a plugin for a series, with the effect on each field"),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body PreviewBody
		}) (*Preview, error) {
			p, d, err := s.subject(ctx, in.Body.PluginID, in.ID)
			if err != nil {
				return nil, err
			}
			var m seriesMetadata
			asked := s.ask(ctx, p, "metadata/series/get", map[string]any{"externalId": in.Body.ExternalID}, &m)
			if err := s.errNoted(ctx, p, asked); err != nil {
				return nil, err
			}
			m.ExternalID = in.Body.ExternalID
			return preview(&p.Plugin, &m.common, m.propose(&p.Plugin, d, &writes{})), nil
		})
	httpapi.Register(a, op("POST", "/apply", "applySeriesMetadata", "Apply the metadata of a plugin to a series; fields that are locked or that the plugin may not write are skipped"),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body ApplyBody
		}) (*Applied, error) {
			p, d, err := s.subject(ctx, in.Body.PluginID, in.ID)
			if err != nil {
				return nil, err
			}
			out, err := s.apply(ctx, p, d, in.Body.ExternalID, in.Body.Fields, in.Body.DryRun)
			if err != nil {
				return nil, err
			}
			s.tellSeries(ctx, p, d, out)
			return out, nil
		})
	search := op("GET", "/search-title", "getSeriesSearchTitle", "Get the search text that a plugin would receive for a series")
	search.Permission = auth.SeriesRead
	httpapi.Register(a, search, func(ctx context.Context, in *struct {
		httpapi.IDInput
		PluginID uuid.UUID `query:"pluginId" required:"true" format:"uuid"`
	}) (*SearchTitle, error) {
		return s.searchTitle(ctx, in.ID, in.PluginID)
	})
}

// apply fetches a plugin's metadata of a series and writes it.
func (r *Runner) apply(ctx context.Context, p *runnable, d *series.Details, externalID string, only []string, dry bool, before ...*asked) (*Applied, error) {
	if err := checkFields(only, (&seriesMetadata{}).propose(&p.Plugin, d, &writes{})); err != nil {
		return nil, err
	}
	var m seriesMetadata
	all := append(before, r.ask(ctx, p, "metadata/series/get", map[string]any{"externalId": externalID}, &m))
	if all[len(all)-1].fault != nil {
		return nil, r.errNoted(ctx, p, all...)
	}
	m.ExternalID = externalID
	var w writes
	out := choose(m.propose(&p.Plugin, d, &w), only)
	if dry {
		out.said("would be written")
		return out, r.note(ctx, p, all...)
	}
	out.DryRunReport, out.externalURL = nil, m.ExternalURL
	picture := r.picture(ctx, w.cover, out)
	w.given.IDs = append(w.given.IDs, m.own(p.Name)...)
	var b pgx.Batch
	var renaming int64
	var given cover.Given
	if err := w.queue(&b, d, p.Name, out.AppliedFields, picture, &renaming, &given); err != nil {
		return nil, errors.Join(err, r.note(ctx, p, all...))
	}
	if err := r.write(ctx, p, &b, all...); err != nil {
		return nil, err
	}
	out.pictured(picture, given)
	if renaming > 0 {
		r.Added.Tell(ctx, p.Tenant)
	}
	out.said("written")
	return out, nil
}

// pictured takes the cover back if it is unchanged, and marks it as skipped if it was not stored.
func (a *Applied) pictured(picture []byte, given cover.Given) {
	switch {
	case picture == nil:
	case given.Same:
		a.withoutCover()
	case given.Kept == 0:
		a.skipCover("There is no room for another cover from plugins")
	}
}

// picture downloads a cover; nil if there is none or it is unusable.
func (r *Runner) picture(ctx context.Context, address string, out *Applied) []byte {
	if address == "" {
		return nil
	}
	answer, err := r.Client.Ask(ctx, plug.Call{Fetch: address})
	switch {
	case err != nil:
		out.skipCover(err.Error())
	case !cover.IsPicture(answer.Picture):
		out.skipCover("Its address leads to a file that is not an image")
	default:
		return answer.Picture
	}
	return nil
}

// tellSeries publishes what was written.
func (r *Runner) tellSeries(ctx context.Context, p *runnable, d *series.Details, out *Applied) {
	if len(out.AppliedFields) == 0 || out.DryRunReport != nil {
		return
	}
	at := events.Series{ID: d.ID, LibraryID: d.LibraryID}
	told := []events.Event{events.SeriesMetadataUpdated(at, p.ID, out.AppliedFields...), events.SeriesUpdated(at, out.AppliedFields...)}
	if slices.Contains(out.AppliedFields, "cover") && !d.Metadata.Locks["cover"] {
		told = append(told, events.CoverUpdated(events.SeriesEntity, d.ID, &d.LibraryID))
	}
	r.Publish(ctx, p.Tenant, told...)
}

// SearchTitle is the search text that a plugin would get.
type SearchTitle struct {
	OriginalTitle string `json:"originalTitle"`
	SearchTitle   string `json:"searchTitle" doc:"Search text after the plugin's searchQueryTemplate and searchPreprocessingRules"`
	RulesApplied  int    `json:"rulesApplied" doc:"Number of rules that changed the search text"`
}

func (s *service) searchTitle(ctx context.Context, id, plugin uuid.UUID) (*SearchTitle, error) {
	var b pgx.Batch
	var p *Plugin
	db.One(&b, &p, "select "+columns+" from plugin p where p.tenant_id = app.tenant() and p.id = $1", plugin)
	load := series.QueueDetails(&b, id)
	if err := s.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	d, err := load()
	if err != nil {
		return nil, err
	}
	if _, err := found(p, nil); err != nil {
		return nil, err
	}
	return p.title(d)
}

// clip shortens a search text to its limit.
func clip(text string) string { return clipTo(text, 500) }

// clipTo shortens a text to n characters.
func clipTo(text string, n int) string { return cut.Chars(strings.TrimSpace(text), n) }

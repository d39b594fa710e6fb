package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/cover"
	"github.com/longbox/longbox/shared/domain/reference"
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

func (s *Summary) count(status string) {
	switch status {
	case willApply:
		s.WillApply++
	case locked:
		s.Locked++
	case noPermission:
		s.NoPermission++
	case unchanged:
		s.Unchanged++
	case notProvided:
		s.NotProvided++
	}
}

// previewed builds a Preview from fields.
func previewed(p *Plugin, m *common, fields []FieldPreview) *Preview {
	out := &Preview{PluginID: p.ID, PluginName: p.Name, ExternalID: m.ExternalID, ExternalURL: outward(m.ExternalURL), Fields: fields}
	for _, f := range fields {
		out.Summary.count(f.Status)
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

// edit is a series or book, a plugin's metadata of it, and what is to be written of that.
type edit interface {
	kind() string // series or book
	// metadata returns the plugin's metadata, empty before it is read, and the part that series and books share.
	metadata() (all any, part *common)
	// propose compares the item with the plugin's metadata. The write functions of the fields collect what is to be
	// written.
	propose(p *Plugin) []FieldPreview
	collected() *shared
	// queue adds the writes to the batch, on condition that the item still has the same locks.
	queue(b *pgx.Batch, source string, fields []string) error
	// events tell that the fields were written.
	events(plugin uuid.UUID, fields []string) []events.Event
}

// shared is what is to be written to series and books alike, and what the database answers.
type shared struct {
	given        reference.Given
	genres, tags []string // nil: unchanged
	cover        string   // URL
	picture      []byte   // the cover; nil: none
	kept         cover.Given
	renaming     *int64 // tasks that rename books
}

func (s *shared) collected() *shared { return s }

// loader reads a plugin and the item that it edits, and checks that the plugin is for the item.
type loader func(ctx context.Context, plugin, id uuid.UUID) (*runnable, edit, error)

// seriesEdit is a loader.
func (r *Runner) seriesEdit(ctx context.Context, plugin, id uuid.UUID) (*runnable, edit, error) {
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
	return p, &seriesEdit{Details: d}, p.about("series", d.LibraryID)
}

func (s *service) seriesRoutes(a *httpapi.API) {
	op := httpapi.Group{Path: "/api/v1/series/{id}/metadata", Tag: "Plugins"}.For(auth.SeriesWrite)
	s.previewRoute(a, op("POST", "/preview", "previewSeriesMetadata",
		"Preview the metadata of a plugin for a series, with the effect on each field"), s.seriesEdit)
	s.applyRoute(a, op("POST", "/apply", "applySeriesMetadata",
		"Apply the metadata of a plugin to a series; fields that are locked or that the plugin may not write are skipped"), s.seriesEdit)
	search := op("GET", "/search-title", "getSeriesSearchTitle", "Get the search text that a plugin would receive for a series")
	search.Permission = auth.SeriesRead
	httpapi.Register(a, search, func(ctx context.Context, in *struct {
		httpapi.IDInput
		PluginID uuid.UUID `query:"pluginId" required:"true" format:"uuid"`
	}) (*SearchTitle, error) {
		return s.searchTitle(ctx, in.ID, in.PluginID)
	})
}

func (s *service) previewRoute(a *httpapi.API, op httpapi.Op, load loader) {
	httpapi.Register(a, op, func(ctx context.Context, in *struct {
		httpapi.IDInput
		Body PreviewBody
	}) (*Preview, error) {
		p, e, err := load(ctx, in.Body.PluginID, in.ID)
		if err != nil {
			return nil, err
		}
		if err := s.errNoted(ctx, p, s.fetch(ctx, p, e, in.Body.ExternalID)); err != nil {
			return nil, err
		}
		_, m := e.metadata()
		return previewed(&p.Plugin, m, e.propose(&p.Plugin)), nil
	})
}

func (s *service) applyRoute(a *httpapi.API, op httpapi.Op, load loader) {
	httpapi.Register(a, op, func(ctx context.Context, in *struct {
		httpapi.IDInput
		Body ApplyBody
	}) (*Applied, error) {
		p, e, err := load(ctx, in.Body.PluginID, in.ID)
		if err != nil {
			return nil, err
		}
		return s.apply(ctx, p, e, in.Body.ExternalID, options{in.Body.Fields, in.Body.DryRun})
	})
}

// fetch reads the plugin's metadata.
func (r *Runner) fetch(ctx context.Context, p *runnable, e edit, externalID string) *asked {
	all, m := e.metadata()
	out := r.ask(ctx, p, "metadata/"+e.kind()+"/get", map[string]any{"externalId": externalID}, all)
	m.ExternalID = externalID
	return out
}

// options say what to write.
type options struct {
	only []string // fields, nil: all
	dry  bool     // write nothing
}

// apply fetches the plugin's metadata, writes it and publishes that. before are the requests that came first.
func (r *Runner) apply(ctx context.Context, p *runnable, e edit, externalID string, o options, before ...*asked) (*Applied, error) {
	if err := checkFields(o.only, e.propose(&p.Plugin)); err != nil {
		return nil, err
	}
	asked := r.fetch(ctx, p, e, externalID)
	all := append(before, asked)
	if asked.fault != nil {
		return nil, r.errNoted(ctx, p, all...)
	}
	out := choose(e.propose(&p.Plugin), o.only)
	if o.dry {
		out.said("would be written")
		return out, r.note(ctx, p, all...)
	}
	w := e.collected()
	_, m := e.metadata()
	out.DryRunReport, out.externalURL = nil, m.ExternalURL
	w.picture = r.picture(ctx, w.cover, out)
	w.given.IDs = append(w.given.IDs, m.own(p.Name)...)
	var b pgx.Batch
	if err := e.queue(&b, sourcePrefix+p.Name, out.AppliedFields); err != nil {
		return nil, errors.Join(err, r.note(ctx, p, all...))
	}
	if err := r.write(ctx, p, &b, all...); err != nil {
		return nil, err
	}
	out.pictured(w.picture, w.kept)
	if *w.renaming > 0 {
		r.Added.Tell(ctx, p.Tenant)
	}
	out.said("written")
	if len(out.AppliedFields) > 0 {
		r.Publish(ctx, p.Tenant, e.events(p.ID, out.AppliedFields)...)
	}
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

// SearchTitle is the search text that a plugin would get.
type SearchTitle struct {
	OriginalTitle string `json:"originalTitle"`
	SearchTitle   string `json:"searchTitle" doc:"Search text after the plugin's searchQueryTemplate and searchPreprocessingRules"`
	RulesApplied  int    `json:"rulesApplied" doc:"Number of rules that changed the search text"`
}

func (s *service) searchTitle(ctx context.Context, id, plugin uuid.UUID) (*SearchTitle, error) {
	var b pgx.Batch
	var p *Plugin
	db.One(&b, &p, selectPlugin, plugin)
	load := series.QueueDetails(&b, id)
	if err := s.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	d, err := load()
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, fault.Missing("Plugin")
	}
	return p.title(d)
}

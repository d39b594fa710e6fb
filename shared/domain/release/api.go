package release

import (
	"context"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// SeveralSeries names series.
type SeveralSeries struct {
	SeriesIDs []uuid.UUID `json:"seriesIds" minItems:"1" maxItems:"500" nullable:"false" doc:"Ids of series that do not exist are ignored"`
}

// BulkBody is an action on several releases.
type BulkBody struct {
	Action string      `json:"action" enum:"dismiss,mark-acquired,ignore,reset,delete" doc:"reset sets the releases back to announced"`
	IDs    []uuid.UUID `json:"ids" minItems:"1" maxItems:"500" nullable:"false" doc:"Ids of releases that do not exist are ignored"`
}

// Bulk is the number of releases that were changed.
type Bulk struct {
	Action   string `json:"action" enum:"dismiss,mark-acquired,ignore,reset,delete"`
	Affected int64  `json:"affected"`
}

// Reset is the number of releases that were deleted by a reset.
type Reset struct {
	DeletedLedgerEntries int64 `json:"deletedLedgerEntries"`
}

// ResetAll is the result of resetting all sources.
type ResetAll struct {
	Considered           int64 `json:"considered"`
	Reset                int64 `json:"reset"`
	Failed               int64 `json:"failed" doc:"Always 0: either all sources are reset or none"`
	DeletedLedgerEntries int64 `json:"deletedLedgerEntries"`
}

// states maps bulk actions to the resulting states; "" is deleted.
var states = map[string]string{"dismiss": dismissed, "mark-acquired": acquired, "ignore": ignored, "reset": announced, "delete": ""}

var operation = httpapi.Group{Path: "/api/v1", Tag: "Releases"}.Op

// service holds the dependencies of the operations.
type service struct {
	database *db.DB
	publish  events.Publish
	added    task.Added
}

// Routes registers the operations on tracking, releases and their sources.
func Routes(a *httpapi.API, d *db.DB, publish events.Publish, added task.Added) {
	s := &service{d, publish, added}
	s.trackingRoutes(a)
	s.releaseRoutes(a)
	s.sourceRoutes(a)
}

// tell publishes events of the caller's tenant.
func (s *service) tell(ctx context.Context, e ...events.Event) {
	s.publish(ctx, httpapi.TenantOf(ctx).ID, e...)
}

func (s *service) trackingRoutes(a *httpapi.API) {
	httpapi.Register(a, operation("GET", "/series/{id}/tracking", "getTracking", "Get the tracking configuration of a series", auth.SeriesRead),
		func(ctx context.Context, in *httpapi.IDInput) (*Tracking, error) {
			return tracking(ctx, s.database, in.ID)
		})
	httpapi.Register(a, operation("PATCH", "/series/{id}/tracking", "patchTracking", "Update the tracking configuration of a series; fields that are not sent stay unchanged", auth.SeriesWrite),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body TrackingBody
		}) (*Tracking, error) {
			out, library, err := track(ctx, s.database, in.ID, &in.Body)
			if err != nil {
				return nil, err
			}
			s.tell(ctx, changed(in.ID, library, "tracking"))
			return out, nil
		})
	for _, c := range []struct {
		path, id, summary, message string
		tracked                    bool
	}{
		{"track", "trackSeries", "Start tracking several series", "The tracking of the series is queued", true},
		{"untrack", "untrackSeries", "Stop tracking several series", "The end of the series' tracking is queued", false},
	} {
		httpapi.Register(a, operation("POST", "/series/bulk/"+c.path+"-for-releases", c.id, c.summary, auth.SeriesWrite),
			func(ctx context.Context, in *struct{ Body SeveralSeries }) (*task.Started, error) {
				return task.Start(ctx, s.database, s.added, task.Spec{Type: task.TrackSeries, Params: map[string]any{"tracked": c.tracked}}, task.OfSeveralSeries(in.Body.SeriesIDs), c.message)
			})
	}
	httpapi.Register(a, operation("GET", "/series/{id}/aliases", "listAliases", "List the aliases under which releases of a series are announced", auth.SeriesRead),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			httpapi.Paging
		}) (*httpapi.Page[Alias], error) {
			all, err := aliases(ctx, s.database, in.ID)
			if err != nil {
				return nil, err
			}
			return httpapi.All(ctx, in.Paging, all), nil
		})
	add := operation("POST", "/series/{id}/aliases", "addAlias", "Add an alias under which releases of a series are announced; returns 200 if it exists already", auth.SeriesWrite)
	add.Status, add.Also = 201, []int{200}
	httpapi.Register(a, add, func(ctx context.Context, in *struct {
		httpapi.IDInput
		Body AliasBody
	}) (*AddedAlias, error) {
		out, err := addAlias(ctx, s.database, in.ID, &in.Body)
		if err == nil && out.fresh {
			s.tell(ctx, changed(in.ID, out.libraryID, "aliases"))
		}
		return out, err
	})
	httpapi.Register(a, operation("DELETE", "/series/{id}/aliases/{referenceId}", "removeAlias", "Remove an alias from a series", auth.SeriesWrite),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			AliasID uuid.UUID `path:"referenceId" format:"uuid"`
		}) (*httpapi.None, error) {
			library, err := removeAlias(ctx, s.database, in.ID, in.AliasID)
			if err == nil {
				s.tell(ctx, changed(in.ID, library, "aliases"))
			}
			return nil, err
		})
}

func (s *service) releaseRoutes(a *httpapi.API) {
	httpapi.Register(a, operation("GET", "/releases", "listReleases", "List the releases, latest first", auth.SeriesRead),
		func(ctx context.Context, in *struct {
			Filter
			httpapi.Paging
			httpapi.Sorting
		}) (*httpapi.Page[Release], error) {
			return in.list(ctx, s.database, in.Sorting, in.Paging)
		})
	httpapi.Register(a, operation("GET", "/releases/facets", "getReleaseFacets", "Get the languages, libraries and series of the releases, with counts", auth.SeriesRead),
		func(ctx context.Context, in *struct{ Filter }) (*Facets, error) { return in.facets(ctx, s.database) })
	httpapi.Register(a, operation("GET", "/series/{id}/releases", "listSeriesReleases", "List the releases of a series, latest first", auth.SeriesRead),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			State string `query:"state" enum:"announced,dismissed,marked_acquired,ignored,hidden,all" default:"all"`
			httpapi.Paging
		}) (*httpapi.Page[Release], error) {
			return ofOne(ctx, s.database, in.ID, in.State, in.Paging)
		})
	httpapi.Register(a, operation("POST", "/releases/bulk", "changeReleases", "Change or delete several releases", auth.SeriesWrite),
		func(ctx context.Context, in *struct{ Body BulkBody }) (*Bulk, error) {
			all, err := moveAll(ctx, s.database, in.Body.IDs, states[in.Body.Action])
			if err != nil {
				return nil, err
			}
			s.tellPlaces(ctx, all)
			return &Bulk{in.Body.Action, int64(len(all))}, nil
		})
	httpapi.Register(a, operation("PATCH", "/releases/{id}", "patchRelease", "Change the state of a release", auth.SeriesWrite),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body struct {
				State *string `json:"state,omitempty" enum:"announced,dismissed,marked_acquired,ignored,hidden" nullable:"true"`
			}
		}) (*Release, error) {
			return s.move(ctx, in.ID, in.Body.State)
		})
	for _, c := range []struct{ path, id, summary, state string }{
		{"dismiss", "dismissRelease", "Dismiss a release", dismissed},
		{"mark-acquired", "acquireRelease", "Mark a release as acquired", acquired},
	} {
		httpapi.Register(a, operation("POST", "/releases/{id}/"+c.path, c.id, c.summary, auth.SeriesWrite),
			func(ctx context.Context, in *httpapi.IDInput) (*Release, error) { return s.move(ctx, in.ID, &c.state) })
	}
	httpapi.Register(a, operation("DELETE", "/releases/{id}", "deleteRelease", "Delete a release; it returns if its source announces it again", auth.SeriesWrite),
		func(ctx context.Context, in *httpapi.IDInput) (*httpapi.None, error) {
			all, err := moveAll(ctx, s.database, []uuid.UUID{in.ID}, "")
			if err == nil && len(all) == 0 {
				err = missing
			}
			if err != nil {
				return nil, err
			}
			s.tellPlaces(ctx, all)
			return nil, nil
		})
}

// move changes the state of a release and publishes an event.
func (s *service) move(ctx context.Context, id uuid.UUID, state *string) (*Release, error) {
	out, err := move(ctx, s.database, id, state)
	if err != nil {
		return nil, err
	}
	if state != nil {
		s.tell(ctx, changed(out.SeriesID, out.LibraryID, "releases"))
	}
	return &out.Release, nil
}

// tellPlaces publishes one event per series whose releases have changed, at most mostTold.
func (s *service) tellPlaces(ctx context.Context, all []place) {
	seen := map[uuid.UUID]bool{}
	var told []events.Event
	for _, p := range all {
		if !seen[p.SeriesID] && len(told) < mostTold {
			seen[p.SeriesID], told = true, append(told, changed(p.SeriesID, p.LibraryID, "releases"))
		}
	}
	if told != nil {
		s.tell(ctx, told...)
	}
}

func (s *service) sourceRoutes(a *httpapi.API) {
	op := func(method, path, id, summary string) httpapi.Op { // they cover releases of all series
		return operation(method, "/release-sources"+path, id, summary, auth.PluginsManage).OnlyIfSeesAll()
	}
	httpapi.Register(a, op("GET", "", "listReleaseSources", "List the release sources"),
		func(ctx context.Context, in *struct{ httpapi.Paging }) (*httpapi.Page[Source], error) {
			page, total, err := sources(ctx, s.database, in.Paging)
			if err != nil {
				return nil, err
			}
			return httpapi.NewPage(ctx, in.Paging, page, total), nil
		})
	httpapi.Register(a, operation("GET", "/release-sources/applicability", "getReleaseApplicability", "Check whether any enabled plugin announces releases", auth.SeriesRead),
		func(ctx context.Context, in *struct {
			LibraryID string `query:"libraryId" format:"uuid" doc:"Only plugins that apply to this library"`
		}) (*Applicability, error) {
			return applicability(ctx, s.database, httpapi.OptionalID(in.LibraryID))
		})
	httpapi.Register(a, op("PATCH", "/{id}", "patchReleaseSource", "Update a release source; fields that are not sent stay unchanged"),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body SourceBody
		}) (*Source, error) {
			return in.Body.change(ctx, s.database, in.ID)
		})
	httpapi.Register(a, op("POST", "/{id}/reset", "resetReleaseSource", "Reset a release source: delete its releases and its polling state"),
		func(ctx context.Context, in *httpapi.IDInput) (*Reset, error) {
			_, n, of, err := reset(ctx, s.database, &in.ID)
			s.tellPlaces(ctx, of)
			return &Reset{n}, err
		})
	httpapi.Register(a, op("POST", "/reset-all", "resetReleaseSources", "Reset all release sources: delete their releases and their polling state"),
		func(ctx context.Context, _ *struct{}) (*ResetAll, error) {
			sources, n, of, err := reset(ctx, s.database, nil)
			s.tellPlaces(ctx, of)
			return &ResetAll{Considered: sources, Reset: sources, DeletedLedgerEntries: n}, err
		})
	httpapi.Register(a, op("POST", "/{id}/poll-now", "pollReleaseSource", "Start the task that polls a release source"),
		func(ctx context.Context, in *httpapi.IDInput) (*Polled, error) {
			out, err := poll(ctx, s.database, in.ID)
			if err == nil {
				s.added.Tell(ctx, httpapi.TenantOf(ctx).ID)
			}
			return out, err
		})
	httpapi.Register(a, op("POST", "/poll-now-all", "pollReleaseSources", "Start the tasks that poll all enabled release sources"),
		func(ctx context.Context, _ *struct{}) (*PolledAll, error) {
			out, err := pollAll(ctx, s.database)
			if err == nil {
				s.added.Tell(ctx, httpapi.TenantOf(ctx).ID)
			}
			return out, err
		})
}

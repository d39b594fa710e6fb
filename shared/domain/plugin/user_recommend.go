package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Limits of recommendations: per plugin and user, of dismissals, and of the last-read series that a plugin receives.
const (
	mostRecommendations = 200
	mostDismissed       = 500
	mostTold            = 1000
)

// Recommendations are what plugins recommend to the caller.
type Recommendations struct {
	Recommendations []Recommendation       `json:"recommendations" nullable:"false" doc:"Best first"`
	Sources         []RecommendationSource `json:"sources" nullable:"false"`
}

// Recommendation is one recommendation.
type Recommendation struct {
	ExternalID        string              `json:"externalId"`
	ExternalURL       *string             `json:"externalUrl"`
	Title             string              `json:"title"`
	CoverURL          *string             `json:"coverUrl"`
	Summary           *string             `json:"summary"`
	Genres            []string            `json:"genres" nullable:"false"`
	Tags              []RecommendationTag `json:"tags" nullable:"false"`
	Score             float64             `json:"score" doc:"0 to 1"`
	Reason            string              `json:"reason"`
	BasedOn           []string            `json:"basedOn" nullable:"false"`
	InLibrary         bool                `json:"inLibrary" doc:"Whether the caller has it, according to the plugin's service"`
	InCodex           bool                `json:"inCodex" doc:"Whether it is a series of this server"`
	SeriesID          *uuid.UUID          `json:"codexSeriesId"`
	Status            *string             `json:"status"`
	Format            *string             `json:"format"`
	CountryOfOrigin   *string             `json:"countryOfOrigin"`
	StartYear         *int32              `json:"startYear"`
	Rating            *int32              `json:"rating" doc:"0 to 100"`
	Popularity        *int32              `json:"popularity"`
	TotalVolumeCount  *int32              `json:"totalVolumeCount"`
	TotalChapterCount *float64            `json:"totalChapterCount"`
	Source            string              `json:"source" doc:"Display name of the plugin"`
	SourcePlugin      string              `json:"sourcePlugin" doc:"Name of the plugin"`
}

// RecommendationTag is a tag of a recommendation.
type RecommendationTag struct {
	Name     string `json:"name"`
	Category string `json:"category"`
	Rank     int32  `json:"rank"`
}

// RecommendationSource is a plugin that recommends.
type RecommendationSource struct {
	PluginID    uuid.UUID  `json:"pluginId" db:"plugin_id"`
	PluginName  string     `json:"pluginName" db:"name"`
	Source      string     `json:"source" db:"display_name"`
	Cached      bool       `json:"cached" db:"recommended_from_cache" doc:"Whether the plugin returned cached recommendations without asking its service"`
	GeneratedAt *time.Time `json:"generatedAt" db:"recommended_at" doc:"Null if the plugin was never asked"`
	TaskID      *uuid.UUID `json:"taskId" db:"task_id" doc:"Id of the task that is fetching new recommendations"`
	TaskStatus  *string    `json:"taskStatus" db:"task_status"`
	Unasked     bool       `json:"-" db:"unasked"`
}

// Refreshed names the tasks that fetch new recommendations.
type Refreshed struct {
	Message string      `json:"message"`
	TaskIDs []uuid.UUID `json:"taskIds" nullable:"false"`
}

// Dismissed says whether a recommendation was dismissed.
type Dismissed struct {
	Dismissed bool `json:"dismissed"`
}

func (s *service) recommendRoutes(a *httpapi.API) {
	op := httpapi.Group{Path: "/api/v1/user/recommendations", Tag: "User plugins"}.For(auth.ProgressRead)
	httpapi.Register(a, op("GET", "", "listRecommendations", "List the recommendations of the caller's plugins; plugins that were never asked are asked in a task"),
		func(ctx context.Context, _ *struct{}) (*Recommendations, error) {
			out, unasked, err := s.recommendations(ctx)
			if err != nil || !unasked {
				return out, err
			}
			if _, err := s.refresh(ctx, " and "+unaskedSQL); err != nil && !fault.Is(err, fault.Conflict) {
				return nil, err
			}
			out, _, err = s.recommendations(ctx)
			return out, err
		})
	httpapi.Register(a, op("POST", "/refresh", "refreshRecommendations", "Start the tasks that fetch new recommendations from the caller's plugins"),
		func(ctx context.Context, _ *struct{}) (*Refreshed, error) { return s.refresh(ctx, "") })
	httpapi.Register(a, op("POST", "/{externalId}/dismiss", "dismissRecommendation", "Dismiss a recommendation and notify the plugin"),
		func(ctx context.Context, in *struct {
			ExternalID string `path:"externalId" maxLength:"500"`
			Body       *struct {
				Reason *string `json:"reason,omitempty" enum:"not_interested,already_read,already_owned" nullable:"true"`
			}
		}) (*Dismissed, error) {
			if in.Body == nil {
				return s.dismiss(ctx, in.ExternalID, nil)
			}
			return s.dismiss(ctx, in.ExternalID, in.Body.Reason)
		})
}

// recommending joins the caller's plugins that recommend; a condition follows.
const recommending = ` from user_plugin u join plugin p on p.tenant_id = u.tenant_id and p.id = u.plugin_id
	where u.tenant_id = app.tenant() and u.account_id = app.account() and u.enabled and p.enabled
	and coalesce((p.manifest -> 'capabilities' ->> 'userRecommendationProvider')::boolean, false)`

// unaskedSQL is a condition on a user_plugin u: its plugin was not asked yet, or series were hidden from the user
// since, on which its recommendations may be based. If the last task failed, there is no automatic retry.
const unaskedSQL = `(u.recommendations_task_id is null or app.limited() and u.recommended_sight is distinct from app.sight() and not exists (select from task t
	where t.tenant_id = app.tenant() and t.id = u.recommendations_task_id and t.status <> 'completed'))`

// errNoRecommender says that the caller has no plugin that recommends.
var errNoRecommender = fault.New(fault.NotFound, "You have not enabled a plugin that gives recommendations")

// recommendations returns the stored recommendations, without those that may name series hidden since; unasked reports
// whether a plugin should be asked.
func (s *service) recommendations(ctx context.Context) (out *Recommendations, unasked bool, err error) {
	var b pgx.Batch
	var rows []struct {
		Item   json.RawMessage `db:"item"`
		Series *uuid.UUID      `db:"series_id"`
	}
	sources := []RecommendationSource{}
	db.All(&b, &sources, `select u.plugin_id, p.name, p.display_name, u.recommended_from_cache, u.recommended_at, t.id as task_id, t.status as task_status,
		  u.connected and `+unaskedSQL+` as unasked
		from (select u.*, `+connectedSQL+` as connected`+recommending+`) u join plugin p on p.tenant_id = app.tenant() and p.id = u.plugin_id
		left join task t on t.tenant_id = app.tenant() and t.id = u.recommendations_task_id and t.status in ('pending', 'running') order by p.name`)
	db.All(&b, &rows, `select i.item, e.series_id from (select u.*, p.name, coalesce(p.manifest -> 'capabilities' ->> 'externalIdSource', '') as source`+recommending+`) u
		cross join lateral jsonb_array_elements(u.recommendations) i(item)
		left join lateral (select x.series_id from external_id x join series s on s.tenant_id = app.tenant() and s.id = x.series_id
		  where x.tenant_id = app.tenant() and x.source in (u.source, 'plugin:' || u.name) and x.external_id = i.item ->> 'externalId' and x.series_id is not null limit 1) e on true
		where not app.limited() or u.recommended_sight = app.sight()
		order by (i.item ->> 'score')::double precision desc, u.name, i.item ->> 'externalId'`)
	if err := s.Database.Run(ctx, &b); err != nil {
		return nil, false, err
	}
	if len(sources) == 0 {
		return nil, false, errNoRecommender
	}
	out = &Recommendations{Recommendations: []Recommendation{}, Sources: sources}
	for _, row := range rows {
		var one Recommendation
		if err := json.Unmarshal(row.Item, &one); err != nil {
			return nil, false, err
		}
		one.SeriesID, one.InCodex = row.Series, row.Series != nil
		out.Recommendations = append(out.Recommendations, one)
	}
	return out, slices.ContainsFunc(sources, func(s RecommendationSource) bool { return s.Unasked }), nil
}

// refresh starts the tasks that ask those of the caller's plugins that match the condition which; Conflict if all are
// being asked already.
func (s *service) refresh(ctx context.Context, which string) (*Refreshed, error) {
	var all []mine
	var some bool
	var b pgx.Batch
	db.All(&b, &all, "select "+ownColumns+recommending+" and "+connectedSQL+which+" order by u.id")
	db.Value(&b, &some, "select exists (select"+recommending+")")
	if err := s.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	if len(all) == 0 && some {
		return nil, fault.New(fault.BadRequest, "None of your plugins for recommendations is connected: sign in to its service, or enter your credentials")
	}
	if len(all) == 0 {
		return nil, errNoRecommender
	}
	var adding pgx.Batch
	started, err := enqueueFor(&adding, recommendColumn, nil, all)
	if err != nil {
		return nil, err
	}
	if err := s.Database.Run(ctx, &adding); err != nil {
		return nil, err
	}
	out := &Refreshed{TaskIDs: started()}
	if len(out.TaskIDs) == 0 {
		return nil, fault.New(fault.Conflict, "Your plugins are already being asked for recommendations")
	}
	s.Added.Tell(ctx, httpapi.TenantOf(ctx).ID)
	out.Message = fmt.Sprintf("%d plugins are being asked", len(out.TaskIDs))
	if len(out.TaskIDs) == 1 {
		out.Message = "1 plugin is being asked"
	}
	return out, nil
}

// dismiss removes a recommendation, and informs the plugins that gave it.
func (s *service) dismiss(ctx context.Context, externalID string, reason *string) (*Dismissed, error) {
	const recommended = " and u.recommendations @> jsonb_build_array(jsonb_build_object('externalId', $1::text))"
	if cut.Storable(externalID) != externalID {
		return nil, fault.Missing("Recommendation")
	}
	all, err := db.List[mine](ctx, s.Database, "select "+ownColumns+recommending+recommended+" order by u.id", externalID)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fault.Missing("Recommendation")
	}
	var b pgx.Batch
	for i := range all {
		in := userParams{PluginID: all[i].PluginID, UserID: all[i].Account, ExternalID: externalID}
		if reason != nil {
			in.Reason = *reason
		}
		if err := task.Add(&b, task.Spec{Type: task.UserPluginDismissal, Params: in, DedupeKey: task.UserPluginDismissal + ":" + all[i].ID.String() + ":" + externalID}, new(uuid.UUID)); err != nil {
			return nil, err
		}
	}
	for i := range all { // tasks are locked before their targets
		b.Queue(`update user_plugin u set dismissed = (array_append(array_remove(u.dismissed, $1), $1))[greatest(1, cardinality(array_remove(u.dismissed, $1)) + 2 - $3):],
			recommendations = (select coalesce(jsonb_agg(i.item order by i.n), '[]') from jsonb_array_elements(u.recommendations) with ordinality i(item, n) where i.item ->> 'externalId' <> $1)
			where u.tenant_id = app.tenant() and u.id = $2`, externalID, all[i].ID, mostDismissed)
	}
	if err := s.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	s.Added.Tell(ctx, httpapi.TenantOf(ctx).ID)
	return &Dismissed{true}, nil
}

// Dismiss handles user_plugin_recommendation_dismiss tasks.
func (r *Runner) Dismiss(ctx context.Context, h task.Held) (any, error) {
	at := &retries{}
	return r.inName(ctx, h, at, at, func(_, asking context.Context, p *runnable, in userParams) (any, error) {
		params := map[string]any{"externalId": in.ExternalID}
		if in.Reason != "" {
			params["reason"] = in.Reason
		}
		asked := r.ask(asking, p, "recommendations/dismiss", params, nil)
		if err := r.outcome(asking, p, asked); err != nil && asked.fault.RPC != methodNotFound {
			return nil, err
		}
		return Dismissed{true}, nil
	})
}

// Recommend handles user_plugin_recommendations tasks.
func (r *Runner) Recommend(ctx context.Context, h task.Held) (any, error) {
	at := &retries{}
	return r.inName(ctx, h, at, at, func(ctx, asking context.Context, p *runnable, _ userParams) (any, error) {
		library, dismissed, sight, err := r.library(ctx, p)
		if err != nil {
			return nil, err
		}
		var told struct {
			Recommendations []json.RawMessage
			Cached          bool
		}
		asked := r.ask(asking, p, "recommendations/get", map[string]any{"library": library, "limit": mostRecommendations, "excludeIds": dismissed}, &told)
		if asked.fault != nil {
			return nil, r.outcome(asking, p, asked)
		}
		items := p.usableOnes(told.Recommendations, dismissed)
		data, err := json.Marshal(items)
		if err != nil {
			return nil, err
		}
		var b pgx.Batch
		queueLock(&b, p.ID) // before the user's record of it
		b.Queue(`update user_plugin u set recommended_at = now(), recommended_from_cache = $3, recommended_sight = $4, recommendations = (select coalesce(jsonb_agg(i.item order by i.n), '[]')
			  from jsonb_array_elements($2::jsonb) with ordinality i(item, n) where i.item ->> 'externalId' <> all(u.dismissed))
			where u.tenant_id = app.tenant() and u.id = $1`, p.mine.ID, data, told.Cached, sight)
		if err := r.write(ctx, p, &b, asked); err != nil {
			return nil, err
		}
		return map[string]int{"recommendations": len(items), "leftOut": len(told.Recommendations) - len(items)}, nil
	})
}

// usableOnes returns the recommendations that can be shown, within their limits.
func (p *Plugin) usableOnes(raw []json.RawMessage, dismissed []string) []Recommendation {
	out := []Recommendation{}
	for _, r := range raw {
		one := Recommendation{Genres: []string{}, Tags: []RecommendationTag{}, BasedOn: []string{}}
		var v any
		if json.Unmarshal(r, &v) != nil {
			continue
		}
		data, err := json.Marshal(cleaned(v))
		if err != nil || json.Unmarshal(data, &one) != nil || one.ExternalID == "" || len(one.ExternalID) > 500 || one.Title == "" || slices.Contains(dismissed, one.ExternalID) {
			continue
		}
		one.Source, one.SourcePlugin, one.SeriesID, one.InCodex = p.DisplayName, p.Name, nil, false
		one.Title, one.Reason, one.ExternalURL, one.CoverURL = clip(one.Title), clip(one.Reason), outward(one.ExternalURL), outward(one.CoverURL)
		for _, text := range []*string{one.Summary, one.Status, one.Format, one.CountryOfOrigin} {
			if text != nil {
				*text = clipTo(*text, 5000)
			}
		}
		one.Genres, one.Tags, one.BasedOn = orNone(one.Genres), orNone(one.Tags), orNone(one.BasedOn)
		one.Genres, one.Tags, one.BasedOn = one.Genres[:min(len(one.Genres), 50)], one.Tags[:min(len(one.Tags), 50)], one.BasedOn[:min(len(one.BasedOn), 20)]
		one.Score = math.Min(math.Max(one.Score, 0), 1)
		if out = append(out, one); len(out) == mostRecommendations {
			break
		}
	}
	return out
}

// libraryEntry is a series with progress, as plugins receive it.
type libraryEntry struct {
	SeriesID        uuid.UUID       `json:"seriesId" db:"id"`
	Title           string          `json:"title" db:"title"`
	AlternateTitles []string        `json:"alternateTitles" db:"alternate_titles"`
	Year            *int32          `json:"year,omitempty" db:"year"`
	Status          *string         `json:"status,omitempty" db:"status"`
	Genres          []string        `json:"genres" db:"genres"`
	Tags            []string        `json:"tags" db:"tags"`
	TotalVolumes    *int32          `json:"totalVolumeCount,omitempty" db:"total_volume_count"`
	TotalChapters   *float64        `json:"totalChapterCount,omitempty" db:"total_chapter_count"`
	ExternalIDs     json.RawMessage `json:"externalIds" db:"external_ids"`
	ReadingStatus   string          `json:"readingStatus" db:"reading_status"`
	BooksRead       int64           `json:"booksRead" db:"books_read"`
	BooksOwned      int64           `json:"booksOwned" db:"books_owned"`
	UserRating      *int32          `json:"userRating,omitempty" db:"rating"`
	UserNotes       *string         `json:"userNotes,omitempty" db:"notes"`
	StartedAt       *time.Time      `json:"startedAt,omitempty" db:"started_at"`
	LastReadAt      *time.Time      `json:"lastReadAt,omitempty" db:"last_read_at"`
	CompletedAt     *time.Time      `json:"completedAt,omitempty" db:"completed_at"`
}

// library returns the series with the user's progress, last read first, the user's dismissals, and a fingerprint of
// what the user can see.
func (r *Runner) library(ctx context.Context, p *runnable) (out []libraryEntry, dismissed []string, sight string, err error) {
	out = []libraryEntry{}
	dismissed = []string{}
	var b pgx.Batch
	db.All(&b, &out, `with mine as materialized (
		  select b.series_id, min(q.started_at) as started_at, max(q.updated_at) as last_read_at, max(q.completed_at) as completed_at, count(*) filter (where q.completed) as books_read
		  from progress q join book b on b.tenant_id = q.tenant_id and b.id = q.book_id and b.deleted_at is null
		  where q.tenant_id = app.tenant() and q.account_id = app.account() group by b.series_id order by max(q.updated_at) desc limit $1)
		select s.id, s.title, s.year, s.status, s.total_volume_count, s.total_chapter_count, m.started_at, m.last_read_at, m.books_read, s.book_count as books_owned, r.rating, r.notes,
		  case when m.books_read >= s.book_count then 'completed' else 'reading' end as reading_status, case when m.books_read >= s.book_count then m.completed_at end as completed_at,
		  array(select t.title from alternate_title t where t.tenant_id = app.tenant() and t.series_id = s.id order by t.id limit 20) as alternate_titles,
		  array(select g.name from series_genre x join genre g on g.tenant_id = x.tenant_id and g.id = x.genre_id where x.tenant_id = app.tenant() and x.series_id = s.id order by g.name limit 50) as genres,
		  array(select g.name from series_tag x join tag g on g.tenant_id = x.tenant_id and g.id = x.tag_id where x.tenant_id = app.tenant() and x.series_id = s.id order by g.name limit 50) as tags,
		  (select coalesce(jsonb_agg(jsonb_build_object('source', x.source, 'externalId', x.external_id) order by x.source), '[]') from external_id x
		    where x.tenant_id = app.tenant() and x.series_id = s.id) as external_ids
		from mine m join series s on s.tenant_id = app.tenant() and s.id = m.series_id
		left join series_rating r on r.tenant_id = app.tenant() and r.account_id = app.account() and r.series_id = s.id
		order by m.last_read_at desc, s.id`, mostTold)
	db.Value(&b, &dismissed, "select dismissed from user_plugin where tenant_id = app.tenant() and id = $1", p.mine.ID)
	db.Value(&b, &sight, "select app.sight()")
	if err := r.Database.Run(ctx, &b); err != nil {
		return nil, nil, "", err
	}
	rated := p.mine.host().SyncRatings // otherwise the user's ratings stay private
	for i := range out {
		switch e := &out[i]; {
		case !rated:
			e.UserRating, e.UserNotes = nil, nil
		case e.UserNotes != nil:
			*e.UserNotes = clipTo(*e.UserNotes, maxNotes)
		}
	}
	return out, dismissed, sight, nil
}

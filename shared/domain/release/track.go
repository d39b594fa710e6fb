package release

import (
	"context"
	"encoding/json"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Tracker handles the tasks on tracking.
type Tracker struct {
	Database *db.DB
	Publish  task.Publish
}

// batch is the number of series per transaction.
const batch = 200

// Done is the result of both tasks.
type Done struct {
	Series  int `json:"series"`
	Aliases int `json:"aliases"` // new ones
}

// Track handles bulk_track_for_releases tasks. Series that it tracks get their titles as aliases.
func (t *Tracker) Track(ctx context.Context, h task.Held) (any, error) {
	var in struct {
		SeriesIDs []uuid.UUID `json:"seriesIds"`
		Tracked   bool        `json:"tracked"`
	}
	if err := json.Unmarshal(h.Params, &in); err != nil {
		return nil, fault.New(fault.BadRequest, "The task's parameters cannot be read")
	}
	var b pgx.Batch
	var all []place
	db.All(&b, &all, `with these as (
		  insert into series_tracking as t (tenant_id, series_id, tracked)
		  select app.tenant(), s.id, $2 from series s where s.tenant_id = app.tenant() and s.id = any($1) order by s.id
		  on conflict (tenant_id, series_id) do update set tracked = excluded.tracked, updated_at = now() where t.tracked <> excluded.tracked returning t.series_id)
		select s.id as series_id, s.library_id from these join series s on s.tenant_id = app.tenant() and s.id = these.series_id`, in.SeriesIDs, in.Tracked)
	if err := t.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	out := Done{Series: len(all)}
	told := make([]events.Event, len(all))
	for i, p := range all {
		told[i] = changed(p.SeriesID, p.LibraryID, "tracking")
	}
	t.Publish(ctx, h.Tenant, told...)
	if !in.Tracked {
		return out, nil
	}
	n, err := t.backfill(ctx, h, "t.series_id = any($1)", in.SeriesIDs)
	if n != nil {
		out.Aliases = n.Aliases
	}
	return out, err
}

// Backfill handles backfill_tracking_from_metadata tasks, for the tracked series in the params, in a library, or all.
func (t *Tracker) Backfill(ctx context.Context, h task.Held) (any, error) {
	var in struct {
		SeriesIDs []uuid.UUID `json:"seriesIds"`
		LibraryID *uuid.UUID  `json:"libraryId"`
	}
	if err := json.Unmarshal(h.Params, &in); err != nil {
		return nil, fault.New(fault.BadRequest, "The task's parameters cannot be read")
	}
	if in.LibraryID == nil {
		in.LibraryID = h.LibraryID
	}
	var out *Done
	var err error
	switch {
	case in.SeriesIDs != nil:
		out, err = t.backfill(ctx, h, "t.series_id = any($1)", in.SeriesIDs)
	case in.LibraryID != nil:
		out, err = t.backfill(ctx, h, "s.library_id = $1", *in.LibraryID)
	default:
		out, err = t.backfill(ctx, h, "$1", true)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// at is the checkpoint of a task.
type at struct {
	After uuid.UUID `json:"after"`
	Done
}

// backfill adds the titles of tracked series that match a condition ($1) as aliases.
func (t *Tracker) backfill(ctx context.Context, h task.Held, condition string, arg any) (*Done, error) {
	var place at
	if err := h.Resume(&place); err != nil {
		return nil, err
	}
	var total int64
	from := " from series_tracking t join series s on s.tenant_id = app.tenant() and s.id = t.series_id where t.tenant_id = app.tenant() and t.tracked and " + condition
	var b pgx.Batch
	db.Value(&b, &total, "select count(*)"+from, arg)
	if err := t.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	for {
		var page []titled
		var b pgx.Batch
		db.All(&b, &page, "select s.id, s.library_id, s.title || array(select a.title from alternate_title a where a.tenant_id = app.tenant() and a.series_id = s.id order by a.id) as titles"+
			from+" and t.series_id > $2 order by t.series_id limit $3", arg, place.After, batch)
		if err := t.Database.Run(ctx, &b); err != nil {
			return nil, err
		}
		if len(page) == 0 {
			return &place.Done, nil
		}
		place.After = page[len(page)-1].ID
		place.Series += len(page)
		if err := t.addTitles(ctx, h, page, &place, total); err != nil {
			return nil, err
		}
		if task.MustPause(ctx) {
			return nil, task.Paused(place)
		}
	}
}

// titled is a series with its titles.
type titled struct {
	ID        uuid.UUID `db:"id"`
	LibraryID uuid.UUID `db:"library_id"`
	Titles    []string  `db:"titles"`
}

// addTitles adds the missing aliases of series.
func (t *Tracker) addTitles(ctx context.Context, h task.Held, page []titled, at *at, total int64) error {
	var ids []uuid.UUID
	var names, normalized []string
	for _, s := range page {
		for _, title := range s.Titles[:min(len(s.Titles), mostAliases)] {
			// Longer ones cannot be stored.
			if n := normalize(title); n != "" && len(n) <= maxAlias && utf8.RuneCountInString(title) <= 1000 {
				ids, names, normalized = append(ids, s.ID), append(names, title), append(normalized, n)
			}
		}
	}
	var b pgx.Batch
	var fresh []uuid.UUID
	db.Values(&b, &fresh, `insert into series_alias (tenant_id, id, series_id, alias, normalized, source)
		select app.tenant(), gen_random_uuid(), u.id, u.name, u.normalized, 'metadata'
		from (select x.*, row_number() over (partition by x.id order by x.nth) as further
		  from (select distinct on (y.id, y.normalized) y.* from unnest($1::uuid[], $2::text[], $3::text[]) with ordinality as y(id, name, normalized, nth)
		    order by y.id, y.normalized, y.nth) x
		  where not exists (select from series_alias a where a.tenant_id = app.tenant() and a.series_id = x.id and a.normalized = x.normalized)) u
		join series s on s.tenant_id = app.tenant() and s.id = u.id
		where (select count(*) from series_alias a where a.tenant_id = app.tenant() and a.series_id = u.id) + u.further <= $4
		order by u.nth on conflict do nothing returning series_id`, ids, names, normalized, mostAliases)
	if err := task.QueueProgress(&b, h, int64(at.Series), max(total, int64(at.Series)), at); err != nil {
		return err
	}
	if err := t.Database.Run(ctx, &b); err != nil {
		return err
	}
	at.Aliases += len(fresh)
	told := []events.Event{task.ProgressEvent(h, int64(at.Series), max(total, int64(at.Series)))}
	has := map[uuid.UUID]bool{}
	for _, id := range fresh {
		has[id] = true
	}
	for _, s := range page {
		if has[s.ID] {
			told = append(told, changed(s.ID, s.LibraryID, "aliases"))
		}
	}
	t.Publish(ctx, h.Tenant, told...)
	return nil
}

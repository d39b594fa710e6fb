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
	Publish  events.Publish
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
	var done at
	if err := h.Resume(&done); err != nil {
		return nil, err
	}
	if h.Place == nil {
		if err := t.set(ctx, h, in.SeriesIDs, in.Tracked, &done); err != nil {
			return nil, err
		}
	}
	if in.Tracked {
		if err := t.backfill(ctx, h, &done, "t.series_id = any($1)", in.SeriesIDs); err != nil {
			return nil, err
		}
	}
	return Done{Series: done.Changed, Aliases: done.Aliases}, nil
}

// set starts or ends the tracking of series, and stores in the checkpoint how many that changed. A later request about
// a series counts more, even if its task ran before. One that has not begun will run after this one.
func (t *Tracker) set(ctx context.Context, h task.Held, ids []uuid.UUID, tracked bool, at *at) error {
	var all []place
	err := t.Database.Tx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `with these as (
			  insert into series_tracking as t (tenant_id, series_id, tracked)
			  select app.tenant(), s.id, $2 from series s where s.tenant_id = app.tenant() and s.id = any($1)
			    and not exists (select from task l where l.tenant_id = app.tenant() and l.id > $3 and l.type = $4
			      and l.created_at > (select o.created_at - interval '1 minute' from task o where o.tenant_id = app.tenant() and o.id = $3)
			      and (l.status in ('running', 'completed') or l.status = 'pending' and l.place is not null)
			      and l.params -> 'seriesIds' ? s.id::text) order by s.id
			  on conflict (tenant_id, series_id) do update set tracked = excluded.tracked, updated_at = now() where t.tracked <> excluded.tracked returning t.series_id)
			select s.id as series_id, s.library_id from these join series s on s.tenant_id = app.tenant() and s.id = these.series_id`, ids, tracked, h.ID, task.TrackSeries)
		if err != nil {
			return err
		}
		if all, err = pgx.CollectRows(rows, pgx.RowToStructByName[place]); err != nil {
			return err
		}
		at.Changed = len(all)
		current := 0 // the aliases follow
		if !tracked {
			current = len(ids)
		}
		return remember(ctx, tx, h, int64(current), int64(len(ids)), at)
	})
	if err != nil {
		return err
	}
	told := make([]events.Event, len(all))
	for i, p := range all {
		told[i] = changed(p.SeriesID, p.LibraryID, "tracking")
	}
	t.Publish(ctx, h.Tenant, told...)
	return nil
}

// remember stores the progress and the checkpoint of a task in a transaction.
func remember(ctx context.Context, tx pgx.Tx, h task.Held, current, total int64, at *at) error {
	var b pgx.Batch
	if err := task.QueueProgress(&b, h, current, total, at); err != nil {
		return err
	}
	return tx.SendBatch(ctx, &b).Close()
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
	var done at
	err := h.Resume(&done)
	switch {
	case err != nil:
	case in.SeriesIDs != nil:
		err = t.backfill(ctx, h, &done, "t.series_id = any($1)", in.SeriesIDs)
	case in.LibraryID != nil:
		err = t.backfill(ctx, h, &done, "s.library_id = $1", *in.LibraryID)
	default:
		err = t.backfill(ctx, h, &done, "$1", true)
	}
	if err != nil {
		return nil, err
	}
	return &done.Done, nil
}

// at is the checkpoint of a task.
type at struct {
	Changed int       `json:"changed"` // number of series whose tracking Track has started or ended
	After   uuid.UUID `json:"after"`
	Done
}

// backfill adds the titles of tracked series that match a condition ($1) as aliases.
func (t *Tracker) backfill(ctx context.Context, h task.Held, at *at, condition string, arg any) error {
	from := " from series_tracking t join series s on s.tenant_id = app.tenant() and s.id = t.series_id where t.tenant_id = app.tenant() and t.tracked and " + condition
	total, err := db.GetValue[int64](ctx, t.Database, "select count(*)"+from, arg)
	if err != nil {
		return err
	}
	for {
		page, err := db.List[titled](ctx, t.Database, "select s.id, s.library_id, s.title || array(select a.title from alternate_title a where a.tenant_id = app.tenant() and a.series_id = s.id order by a.id) as titles"+
			from+" and t.series_id > $2 order by t.series_id limit $3", arg, at.After, batch)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return nil
		}
		at.After = page[len(page)-1].ID
		at.Series += len(page)
		if err := t.addTitles(ctx, h, page, at, total); err != nil {
			return err
		}
		if task.MustPause(ctx) {
			return task.Paused(at)
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
	current := int64(at.Series)
	total = max(total, current)
	var fresh []uuid.UUID
	err := t.Database.Tx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `insert into series_alias (tenant_id, id, series_id, alias, normalized, source)
			select app.tenant(), gen_random_uuid(), u.id, u.name, u.normalized, 'metadata'
			from (select x.*, row_number() over (partition by x.id order by x.nth) as further
			  from (select distinct on (y.id, y.normalized) y.* from unnest($1::uuid[], $2::text[], $3::text[]) with ordinality as y(id, name, normalized, nth)
			    order by y.id, y.normalized, y.nth) x
			  where not exists (select from series_alias a where a.tenant_id = app.tenant() and a.series_id = x.id and a.normalized = x.normalized)) u
			join series s on s.tenant_id = app.tenant() and s.id = u.id
			where (select count(*) from series_alias a where a.tenant_id = app.tenant() and a.series_id = u.id) + u.further <= $4
			order by u.nth on conflict do nothing returning series_id`, ids, names, normalized, mostAliases)
		if err != nil {
			return err
		}
		if fresh, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID]); err != nil {
			return err
		}
		at.Aliases += len(fresh)
		return remember(ctx, tx, h, current, total, at)
	})
	if err != nil {
		return err
	}
	told := []events.Event{task.ProgressEvent(h, current, total)}
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

package scanner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/library"
	"github.com/longbox/longbox/shared/domain/scan/follow"
	"github.com/longbox/longbox/shared/domain/strategy"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
)

// move describes the books of one library that moved to another series because of their metadata.
type move struct {
	library uuid.UUID
	from    []uuid.UUID // the series that the books were in
	created []uuid.UUID // new series
	books   []written
	renamed []renamed   // series that continue in place of new ones
	back    []written   // books that moved to those new ones in earlier batches
	emptied []uuid.UUID // series without books that were removed
}

// queueMoves moves books to the series that their metadata names, and adds missing series. It leaves out books that
// have changed since they were read. If all books of a series get the same new name, the series is renamed. Emptied
// series are deleted if the setting purge.purge_empty_series allows it; what people have given them moves to the new
// series.
func queueMoves(b *pgx.Batch, scanID *uuid.UUID, found []analyzed) ([]*move, error) {
	books := map[uuid.UUID][]analyzed{}
	for _, a := range found {
		if a.Result != nil && a.file.Later && a.file.Path != a.SeriesPath {
			books[a.LibraryID] = append(books[a.LibraryID], a)
		}
	}
	var out []*move
	for id := range books {
		out = append(out, &move{library: id})
	}
	slices.SortFunc(out, func(x, y *move) int { return bytes.Compare(x.library[:], y.library[:]) })
	for _, m := range out {
		if err := m.queue(b, scanID, books[m.library]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (m *move) queue(b *pgx.Batch, scanID *uuid.UUID, books []analyzed) error {
	var rules []library.TitleRule
	if len(books[0].Rules) > 0 {
		if err := json.Unmarshal(books[0].Rules, &rules); err != nil {
			return fmt.Errorf("title rules of library %s: %w", m.library, err)
		}
	}
	var places []strategy.Place
	var ids []uuid.UUID
	var revisions []int
	var paths []string
	for _, a := range books {
		places, paths = append(places, a.file.Place), append(paths, a.file.Path)
		ids, revisions, m.from = append(ids, a.ID), append(revisions, a.Revision), append(m.from, a.SeriesID)
	}
	added := queueSeries(b, m.library, rules, places)
	db.All(b, &m.books, `update book k set series_id = s.id, updated_at = now(),
		  left_series_id = case when k.fingerprint <> '' then k.series_id end, left_at = now() -- one that was never read was in none
		from unnest($2::uuid[], $3::integer[], $4::text[]) as u(id, revision, path)
		  join series s on s.tenant_id = app.tenant() and s.library_id = $1 and s.path = u.path
		where k.tenant_id = app.tenant() and k.id = u.id and k.revision = u.revision and k.series_id <> s.id
		returning k.id, k.series_id, k.revision`, m.library, ids, revisions, paths)
	queueAdded(b, scanID, added, &m.created)
	// The heir of a series without books is the new series that most of its books went to, now or before.
	b.Queue(`update series s set heir = p.heir from (
		  select distinct on (o.id) o.id, n.id as heir from series o
		    join book k on k.tenant_id = app.tenant() and k.left_series_id = o.id and k.series_id <> o.id
		    join series n on n.tenant_id = app.tenant() and n.id = k.series_id
		  where o.tenant_id = app.tenant() and o.id = any($3)
		  group by o.tenant_id, o.id, n.tenant_id, n.id
		  having n.id = o.heir or n.library_id = o.library_id
		    and coalesce(n.placed_at, n.created_at) >= greatest(least(min(k.left_at), app.follow_since($1, $2)), o.created_at)
		  order by o.id, count(*) desc, n.id) p
		where s.tenant_id = app.tenant() and s.id = p.id
		  and not exists (select from book r where r.tenant_id = app.tenant() and r.series_id = s.id)`, m.library, scanID, m.from)
	// If all books that a series had now name one new series, that series is the same one under a corrected name. This
	// does not apply if most books of the new series come from elsewhere.
	db.All(b, &m.renamed, `select p.id, p.was from (
		  select distinct u.left_series as id, k.series_id as was, x.since from (select app.follow_since($1, $2) as since) x
		    cross join unnest($3::uuid[], $4::uuid[]) as u(id, left_series)
		    join book k on k.tenant_id = app.tenant() and k.id = u.id and k.left_series_id = u.left_series and k.series_id <> u.left_series and k.left_at = now()
		    join series s on s.tenant_id = app.tenant() and s.id = u.left_series and s.created_at < x.since
		  order by 1, 2 offset 0) p
		where case when not exists (select from book r where r.tenant_id = app.tenant() and r.series_id = p.id)
		  and (select 2 * count(*) filter (where n.left_series_id = p.id and n.left_at >= p.since) > count(*) from book n
		    where n.tenant_id = app.tenant() and n.series_id = p.was)
		  and not exists (select from book o where o.tenant_id = app.tenant() and o.library_id = $1 and o.left_series_id = p.id and o.left_at >= p.since and o.series_id <> p.was)
		  then app.replace_series($2, p.id, p.was, p.since) end`, m.library, scanID, ids, m.from)
	db.All(b, &m.back, `select id, series_id, revision from book where tenant_id = app.tenant() and series_id = any($1) and left_series_id = series_id
		and left_at < now() and left_at >= app.follow_since($2, $3) and deleted_at is null`, m.from, m.library, scanID)
	db.Values(b, &m.emptied, `with gone as (select id from app.drop_empty_series($1) as d(id)),
		counted as (
		  update scan set series_created = greatest(series_created - (select count(*) from gone), 0)
		  where tenant_id = app.tenant() and id = $2)
		select id from gone`, m.from, scanID)
	return nil
}

// moveEvents returns the events about the series.
func moveEvents(moves []*move) (out []events.Event) {
	for _, m := range moves {
		for _, id := range m.created {
			if !slices.ContainsFunc(m.renamed, func(r renamed) bool { return r.Was == id }) {
				out = append(out, events.SeriesCreated(events.Series{ID: id, LibraryID: m.library}))
			}
		}
		for _, r := range m.renamed {
			out = append(out, events.SeriesDeleted(events.Series{ID: r.Was, LibraryID: m.library}), follow.SeriesRenamed(events.Series{ID: r.ID, LibraryID: m.library}))
		}
		if len(m.renamed) > 0 {
			for _, w := range m.back {
				out = append(out, events.BookUpdated(events.Book{ID: w.ID, SeriesID: w.SeriesID, LibraryID: m.library}, "seriesId"))
			}
		}
		for _, id := range m.emptied {
			out = append(out, events.SeriesDeleted(events.Series{ID: id, LibraryID: m.library}))
		}
	}
	return out
}

// unsettled returns, by library, the series whose books changed position: series that books have joined or left; if
// titles are made of positions, also series in which books were analysed or between which files moved; and without a
// scan, which handles its own series, all of them.
func unsettled(found []analyzed, sets map[uuid.UUID]*strategy.Set, moves []*move, moved []follow.Book, alone bool) map[uuid.UUID][]uuid.UUID {
	out := map[uuid.UUID][]uuid.UUID{}
	for _, m := range moves {
		out[m.library] = append(out[m.library], m.from...)
		for _, w := range m.books {
			out[m.library] = append(out[m.library], w.SeriesID)
		}
	}
	for _, f := range moved {
		if f.What != follow.Heir && (alone || sets[f.LibraryID].Positioned()) {
			out[f.LibraryID] = append(out[f.LibraryID], f.SeriesID, f.LeftSeries)
		}
	}
	for _, a := range found {
		if alone || sets[a.LibraryID].Positioned() {
			out[a.LibraryID] = append(out[a.LibraryID], a.SeriesID)
		}
	}
	return out
}

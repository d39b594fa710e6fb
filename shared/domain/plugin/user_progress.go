package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/domain/rating"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/db"
)

// Limits of a sync: entries and bytes per request; pages of the service's entries; series of which the service knows
// more; series per query; and books per update.
const (
	partSize   = 200
	partBytes  = 2 << 20
	mostParts  = 200
	mostAhead  = 5000
	someSeries = 50
	someBooks  = 500
)

// sources returns the sources of the ids by which a plugin's service identifies series, in order of precedence.
func (p *Plugin) sources() []string {
	own := sourcePrefix + p.Name
	if p.Manifest != nil && p.Manifest.Capabilities.ExternalIDSource != nil && *p.Manifest.Capabilities.ExternalIDSource != "" {
		return []string{*p.Manifest.Capabilities.ExternalIDSource, own}
	}
	return []string{own}
}

// ofSeries selects the books of series $1 in order, with the caller's progress.
const ofSeries = `select b.series_id, b.id, b.volume::double precision as volume, b.chapter, p.completed, p.current_page, p.percentage, p.started_at, p.completed_at, p.updated_at,
	  exists (select from completion c where c.tenant_id = b.tenant_id and c.account_id = app.account() and c.book_id = b.id) as finished
	from book b left join progress p on p.tenant_id = b.tenant_id and p.account_id = app.account() and p.book_id = b.id
	where b.tenant_id = app.tenant() and b.series_id = any($1) and b.deleted_at is null order by b.series_id, b.number, b.title_sort, b.id`

// nextRead is SQL for the series with progress of the user and an id from the sources $1, of at most $3 ids after $2.
const nextRead = `with mine as materialized (
	  select distinct b.series_id from progress q join book b on b.tenant_id = q.tenant_id and b.id = q.book_id and b.deleted_at is null
	  where q.tenant_id = app.tenant() and q.account_id = app.account()),
	called as materialized (
	  select distinct on (m.series_id) m.series_id, e.external_id
	  from mine m join external_id e on e.tenant_id = app.tenant() and e.series_id = m.series_id and e.source = any($1)
	  order by m.series_id, array_position($1, e.source)),
	next as (select distinct external_id collate "C" as external_id from called where external_id collate "C" > $2 order by 1 limit $3)
	select c.series_id, c.external_id, s.title, s.status, s.total_volume_count::double precision as total_volume_count, s.total_chapter_count,
	  r.rating::double precision as rating, r.notes
	from next n join called c on c.external_id = n.external_id join series s on s.tenant_id = app.tenant() and s.id = c.series_id
	left join series_rating r on r.tenant_id = app.tenant() and r.account_id = app.account() and r.series_id = c.series_id order by n.external_id, c.series_id`

// push sends the next series with progress to the service, and reports whether there are more. Several series with the
// same id, such as editions, are one entry.
func (r *Runner) push(ctx context.Context, p *runnable, host hostConfig, at *syncPlace) (more bool, err error) {
	some, err := db.List[readSeries](ctx, r.Database, nextRead, p.sources(), at.After, partSize)
	if err != nil || len(some) == 0 {
		return false, err
	}
	ids := make([]uuid.UUID, len(some))
	for i := range some {
		ids[i] = some[i].ID
	}
	books, err := r.booksOf(ctx, ids)
	if err != nil {
		return false, err
	}
	var entries []json.RawMessage
	size, last, groups := 0, "", 0
	for i := 0; i < len(some); groups++ {
		if size > partBytes { // the rest is for the next request
			more = true
			break
		}
		var e *syncEntry
		ahead := false
		for last = some[i].ExternalID; i < len(some) && some[i].ExternalID == last; i++ {
			e = e.with(some[i].entry(books[some[i].ID], host, p.forUsers().WantsDetailedProgress))
			ahead = ahead || slices.Contains(at.Ahead, some[i].ID)
		}
		if e == nil || ahead {
			continue
		}
		data, err := json.Marshal(e)
		if err != nil {
			return false, err
		}
		entries, size = append(entries, data), size+len(data)
	}
	if err := r.send(ctx, p, entries, &at.Result); err != nil {
		return false, err
	}
	at.After = last
	return more || groups == partSize, nil
}

// send sends entries to the service, and counts the accepted and the failed ones.
func (r *Runner) send(ctx context.Context, p *runnable, entries []json.RawMessage, out *SyncResult) error {
	if len(entries) == 0 {
		return nil
	}
	var told struct {
		Success []struct{ Status string }
		Failed  []struct{ ExternalID string }
	}
	asked := r.ask(ctx, p, "sync/pushProgress", map[string]any{"entries": entries}, &told)
	if err := r.outcome(ctx, p, asked); err != nil {
		return err
	}
	for _, s := range told.Success {
		if s.Status == "failed" {
			out.PushFailures++
		} else {
			out.Pushed++
		}
	}
	out.PushFailures += len(told.Failed)
	return nil
}

// booksOf returns the books of the given series, by series.
func (r *Runner) booksOf(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID][]readBook, error) {
	out := map[uuid.UUID][]readBook{}
	for some := range slices.Chunk(ids, someSeries) {
		all, err := db.List[readBook](ctx, r.Database, ofSeries, some)
		if err != nil {
			return nil, err
		}
		for _, b := range all {
			out[b.Series] = append(out[b.Series], b)
		}
	}
	return out, nil
}

// pull applies the next page of the service's entries, and reports whether there are more.
func (r *Runner) pull(ctx context.Context, p *runnable, host hostConfig, at *syncPlace) (more bool, err error) {
	var told struct {
		Entries    []json.RawMessage
		NextCursor string
		HasMore    bool
	}
	params := map[string]any{"limit": partSize}
	if at.Cursor != "" {
		params["cursor"] = at.Cursor
	}
	asked := r.ask(ctx, p, "sync/pullProgress", params, &told)
	if err := r.outcome(ctx, p, asked); err != nil {
		return false, err
	}
	entries, unread := []heardEntry{}, []string{}
	for _, raw := range told.Entries {
		var e heardEntry
		if err := json.Unmarshal(raw, &e); err == nil && len(entries) < partSize {
			entries = append(entries, e)
			continue
		}
		at.Result.PullIncomplete = true // more than was requested, or malformed
		if unread = append(unread, cut.Storable(e.ExternalID)); e.ExternalID == "" {
			at.lacks("the service has an entry without a readable externalId")
		}
	}
	if err := r.leaveOut(ctx, p, unread, at); err != nil {
		return false, err
	}
	if err := r.takeOver(ctx, p, host, entries, at); err != nil {
		return false, err
	}
	at.Parts++
	if !told.HasMore {
		return false, nil
	}
	before, next := at.Cursor, told.NextCursor
	at.Cursor = cut.Storable(next)
	switch {
	case next == "" || next == before || len(next) > 1000 || at.Cursor != next:
		at.lacks("the plugin says that there is more, but its nextCursor cannot be used")
	case at.Parts >= mostParts:
		at.lacks(fmt.Sprintf("the service has more than %d pages of entries", mostParts))
	default:
		return true, nil
	}
	at.Result.PullIncomplete = true
	return false, nil
}

// leaveOut keeps the push from the series of entries that could not be read.
func (r *Runner) leaveOut(ctx context.Context, p *runnable, unread []string, at *syncPlace) error {
	if len(unread) == 0 {
		return nil
	}
	all, err := db.List[calledSeries](ctx, r.Database, calledByID, p.sources(), unread)
	for _, s := range all {
		at.ahead(s.ID)
	}
	return err
}

// calledSeries is a series with its name in an entry.
type calledSeries struct {
	Called string    `db:"called"`
	ID     uuid.UUID `db:"id"`
}

// calledByID selects the series with the ids $2 of the sources $1.
const calledByID = `select e.external_id as called, e.series_id as id from external_id e
	where e.tenant_id = app.tenant() and e.source = any($1) and e.external_id = any($2) and e.series_id is not null`

// takeOver applies entries to the matching series.
func (r *Runner) takeOver(ctx context.Context, p *runnable, host hostConfig, entries []heardEntry, at *syncPlace) error {
	out := &at.Result
	out.Pulled += len(entries)
	var ids, titles []string
	for i := range entries {
		e := &entries[i]
		e.ExternalID, e.Title = cut.Storable(e.ExternalID), naming.Normalize(clip(cut.Storable(e.Title)))
		ids = append(ids, e.ExternalID)
		if host.SearchFallback && e.Title != "" {
			titles = append(titles, e.Title)
		}
	}
	var b pgx.Batch
	var byID, byTitle []calledSeries
	db.All(&b, &byID, calledByID+" order by array_position($1, e.source) desc, e.series_id", p.sources(), ids)
	if len(titles) > 0 {
		db.All(&b, &byTitle, `select s.search_title as called, s.id from series s where s.tenant_id = app.tenant()
			and s.library_id in (select l.id from library l where l.tenant_id = app.tenant()) and s.search_title = any($1)
			and not exists (select from external_id e where e.tenant_id = app.tenant() and e.series_id = s.id and e.source = any($2)) order by s.id desc`, titles, p.sources())
	}
	if err := r.Database.Run(ctx, &b); err != nil {
		return err
	}
	called, titled := map[string]uuid.UUID{}, map[string]uuid.UUID{}
	h := heard{alike: map[string][]uuid.UUID{}, about: map[uuid.UUID]*heardEntry{}}
	for _, s := range byID {
		called[s.Called], h.alike[s.Called] = s.ID, append(h.alike[s.Called], s.ID)
	}
	for _, s := range byTitle {
		titled[s.Called] = s.ID
	}
	for i := range entries {
		id, ok := called[entries[i].ExternalID]
		if !ok && host.SearchFallback {
			id, ok = titled[entries[i].Title]
		}
		if !ok {
			continue
		}
		out.Matched++
		if h.about[id] == nil {
			h.series = append(h.series, id)
		}
		h.about[id] = &entries[i]
	}
	if len(h.series) == 0 {
		return nil
	}
	return r.mark(ctx, p, host, &h, at)
}

// heard are the series that entries of the service are about.
type heard struct {
	series []uuid.UUID
	about  map[uuid.UUID]*heardEntry // the last entry of each
	alike  map[string][]uuid.UUID    // the series with the same id at the service
}

// mark marks books as read by the entries of their series, and rates series that the user has not rated.
func (r *Runner) mark(ctx context.Context, p *runnable, host hostConfig, h *heard, at *syncPlace) error {
	all := slices.Clone(h.series)
	for _, id := range h.series {
		all = append(all, h.alike[h.about[id].ExternalID]...)
	}
	slices.SortFunc(all, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	books, err := r.booksOf(ctx, slices.Compact(all))
	if err != nil {
		return err
	}
	var read []uuid.UUID
	scores := map[uuid.UUID]int32{}
	changed := map[uuid.UUID]bool{}
	for _, id := range h.series {
		e := h.about[id]
		unread := e.unread(books[id], host)
		if len(unread) > 0 {
			read, changed[id] = append(read, unread...), true
		}
		told := (&readSeries{}).entry(marked(books[id], unread), host, false)
		for _, other := range h.alike[e.ExternalID] {
			if other != id {
				told = told.with((&readSeries{}).entry(books[other], host, false))
			}
		}
		if e.ahead(told) {
			at.ahead(id)
		}
		if s := e.Score; host.SyncRatings && s != nil && *s >= 1 && *s <= 100 {
			scores[id] = int32(*s)
		}
	}
	for some := range slices.Chunk(read, someBooks) {
		if err := progress.ReadBooksBy(ctx, r.Database, sourcePrefix+p.Name, some); err != nil {
			return err
		}
	}
	if len(scores) > 0 {
		rated, err := rating.First(ctx, r.Database, scores)
		if err != nil {
			return err
		}
		for _, id := range rated {
			changed[id] = true
		}
	}
	at.Result.Applied += len(changed)
	return nil
}

// marked returns the books with some more of them read.
func marked(books []readBook, more []uuid.UUID) []readBook {
	out, yes := slices.Clone(books), true
	for i := range out {
		if slices.Contains(more, out[i].ID) {
			out[i].Completed = &yes
		}
	}
	return out
}

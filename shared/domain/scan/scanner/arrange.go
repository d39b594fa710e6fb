package scanner

import (
	"context"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/strategy"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
)

// neighbour is a book among the books of its series.
type neighbour struct {
	ID       uuid.UUID `db:"id"`
	Key      string    `db:"key"`
	Series   string    `db:"series"`
	Title    string    `db:"title"`
	Number   *float64  `db:"number"`
	Volume   *int      `db:"volume"`
	Chapter  *float64  `db:"chapter"`
	Numbered bool      `db:"numbered"` // by its file, or by a person who has locked it
	Named    bool      `db:"named"`    // by a person who has locked it
	Position int       `db:"position"`
	Count    int       `db:"count"`
}

// arrange updates what depends on neighbours in some series of a library: the position if it is the number, and the
// title made from it. Locked fields stay. The transaction has locked the library. It returns the events, one per
// changed series, since a new book may shift all books behind it.
func arrange(ctx context.Context, tx pgx.Tx, set *strategy.Set, library uuid.UUID, series []uuid.UUID) ([]events.Event, error) {
	if len(series) == 0 || !set.Arranges() {
		return nil, nil
	}
	var read, write pgx.Batch
	var books []neighbour
	var numbers []numbered
	if set.Positions() {
		db.All(&read, &numbers, `select id, n as number from (
			  select id, number, row_number() over (partition by series_id order by app.file_order(key) collate natural_order, key) as n
			  from book where tenant_id = app.tenant() and series_id = any($1) and deleted_at is null) r
			where number is distinct from n
			  and not exists (select from book_metadata m where m.tenant_id = app.tenant() and m.book_id = r.id and 'numberLock' = any(m.locks))`, series)
	}
	if set.Positioned() || set.PositionsSome() {
		// A file's number also counts as the book's position in its series.
		db.All(&read, &books, `select n.*, coalesce(m.metadata ->> 'seriesPosition' is not null or m.locks && '{numberLock,seriesPositionLock}', false) as numbered,
			  coalesce('titleLock' = any(m.locks), false) as named
			from (
			  select b.id, b.key, s.title as series, b.title, b.number, b.volume, b.chapter,
			    row_number() over (partition by b.series_id order by app.file_order(b.key) collate natural_order, b.key) as position, count(*) over (partition by b.series_id) as count
			  from book b join series s on s.tenant_id = b.tenant_id and s.id = b.series_id
			  where b.tenant_id = app.tenant() and b.series_id = any($1) and b.deleted_at is null) n
			left join book_metadata m on m.tenant_id = app.tenant() and m.book_id = n.id`, series)
	}
	if err := tx.SendBatch(ctx, &read).Close(); err != nil {
		return nil, err
	}
	if set.PositionsSome() {
		numbers = somePositions(set, books)
	}
	var titles []titled
	if set.Positioned() {
		titles = positionTitles(books)
	}
	if len(numbers)+len(titles) == 0 {
		return nil, nil
	}
	var renumbered, renamed []uuid.UUID // series
	queueArranged(&write, numbers, titles, &renumbered, &renamed)
	if err := tx.SendBatch(ctx, &write).Close(); err != nil {
		return nil, err
	}
	var out []events.Event
	for _, id := range series {
		if slices.Contains(renumbered, id) || slices.Contains(renamed, id) {
			out = append(out, events.SeriesUpdated(events.Series{ID: id, LibraryID: library}, "books"))
		}
	}
	return out, nil
}

// numbered is a book with its position in natural file order, which becomes its number.
type numbered struct {
	ID     uuid.UUID `db:"id"`
	Number int       `db:"number"`
}

// titled is a book with the title made from its series and position.
type titled struct {
	ID    uuid.UUID
	Title string
}

// somePositions returns the books without a number of their own (number strategy smart).
func somePositions(set *strategy.Set, books []neighbour) (out []numbered) {
	for _, n := range books {
		if !n.Numbered && set.Read(n.Key, nil).Position && (n.Number == nil || *n.Number != float64(n.Position)) {
			out = append(out, numbered{n.ID, n.Position})
		}
	}
	return out
}

// positionTitles returns the books whose title differs from series and position (book strategy series_name).
func positionTitles(books []neighbour) (out []titled) {
	for _, n := range books {
		if title := strategy.Title(n.Series, n.Volume, n.Chapter, n.Position, n.Count); title != n.Title && !n.Named {
			out = append(out, titled{n.ID, title})
		}
	}
	return out
}

// queueArranged sets the unlocked numbers and titles of books, and returns their series.
func queueArranged(b *pgx.Batch, numbers []numbered, titles []titled, renumbered, renamed *[]uuid.UUID) {
	var ids, named []uuid.UUID
	var positions []int
	var texts, sorts, searches []string
	for _, n := range numbers {
		ids, positions = append(ids, n.ID), append(positions, n.Number)
	}
	for _, t := range titles {
		named, texts = append(named, t.ID), append(texts, t.Title)
		sorts, searches = append(sorts, naming.SortTitle(t.Title)), append(searches, naming.Normalize(t.Title))
	}
	queueLockBooks(b, slices.Concat(ids, named))
	if len(ids) > 0 {
		db.Values(b, renumbered, `with done as (
			  update book k set number = u.number from unnest($1::uuid[], $2::integer[]) as u(id, number)
			  where k.tenant_id = app.tenant() and k.id = u.id and k.number is distinct from u.number
			    and not exists (select from book_metadata m where m.tenant_id = app.tenant() and m.book_id = k.id and 'numberLock' = any(m.locks))
			  returning k.series_id)
			select distinct series_id from done`, ids, positions)
	}
	if len(named) > 0 {
		db.Values(b, renamed, `with done as (
			  update book k set title = u.title, search_title = u.search, updated_at = now(),
			    title_sort = case when `+sortHeld+` then k.title_sort else u.sort end
			  from unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) as u(id, title, sort, search)
			  left join lateral (select coalesce((select m.locks from book_metadata m where m.tenant_id = app.tenant() and m.book_id = u.id), '{}') as locks) l on true
			  where k.tenant_id = app.tenant() and k.id = u.id and not 'titleLock' = any(l.locks) returning k.series_id)
			select distinct series_id from done`, named, texts, sorts, searches)
	}
}

// runAndArrange runs a batch and arranges series of the libraries that it has locked, in one transaction: if the worker
// dies, both are undone. series is called after the batch has run. Most batches of a scan skip this: the scan arranges
// at its end. It returns the events for the series whose books changed.
func (s *Scanner) runAndArrange(ctx context.Context, b *pgx.Batch, sets map[uuid.UUID]*strategy.Set, some bool,
	series func() map[uuid.UUID][]uuid.UUID) (out []events.Event, err error) {
	arranges := false
	for _, set := range sets {
		arranges = arranges || set.Positioned() || some && set.Arranges()
	}
	if !arranges {
		return nil, s.Database.Run(ctx, b)
	}
	err = s.Database.Tx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		for library, ids := range series() {
			told, err := arrange(ctx, tx, sets[library], library, ids)
			if err != nil {
				return err
			}
			out = append(out, told...)
		}
		return nil
	})
	return out, err
}

// arrangeSeries arranges series of the library in a transaction of its own.
func (r *run) arrangeSeries(ctx context.Context, series []uuid.UUID) error {
	if len(series) == 0 || !r.set.Arranges() {
		return nil
	}
	var out []events.Event
	err := r.Database.Tx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var b pgx.Batch
		queueLock(&b, r.library.ID)
		err := tx.SendBatch(ctx, &b).Close()
		if err == nil {
			out, err = arrange(ctx, tx, r.set, r.library.ID, series)
		}
		return err
	})
	if err == nil {
		r.Publish(ctx, r.tenant, out...)
	}
	return err
}

// arrangeTouched arranges the series that a scan has changed.
func (r *run) arrangeTouched(ctx context.Context) error {
	for part := range slices.Chunk(slices.Collect(maps.Keys(r.touched)), renumberBatch) {
		if err := r.arrangeSeries(ctx, part); err != nil {
			return err
		}
		for _, id := range part {
			delete(r.touched, id)
		}
		if len(r.touched) > 0 && task.MustPause(ctx) {
			return r.pause()
		}
	}
	return nil
}

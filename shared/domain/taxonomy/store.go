package taxonomy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
)

// most is how many genres, or tags, people can give a series.
const most = 1000

// kind is genres or tags.
type kind struct {
	table  string
	what   string // in messages and the ids of operations
	plural string // in paths and bodies
}

var (
	genres = kind{"genre", "Genre", "genres"}
	tags   = kind{"tag", "Tag", "tags"}
)

// sql is a text with {t} for the table of the kind; {named} says that t has one of the names $2, and {room} that the
// series s, which is one of $1, has fewer than there may be.
func (k kind) sql(text string) string {
	return strings.NewReplacer("{t}", k.table, "{named}", "lower(t.name) in (select lower(n) from unnest($2::text[]) n)",
		"{room}", fmt.Sprintf("s.tenant_id = app.tenant() and s.id = any($1) and (select count(*) from series_%s y where y.tenant_id = s.tenant_id and y.series_id = s.id) < %d",
			k.table, most)).Replace(text)
}

// QueueNames adds the names that a table (genre, tag) has not yet, where a condition with the parameters args from $2
// on is met, and holds all of them until the transaction ends. All is done in one order, so that no two writers can
// deadlock.
func QueueNames(b *pgx.Batch, table string, names []string, condition string, args ...any) {
	hold := "select from " + table + " where tenant_id = app.tenant() and lower(name) in (select lower(n) from unnest($1::text[]) n) order by lower(name) for key share"
	b.Queue(hold, names)
	b.Queue(`insert into `+table+` (tenant_id, id, name)
		select app.tenant(), gen_random_uuid(), n.name from (select distinct on (lower(name)) name from unnest($1::text[]) u(name) order by lower(name), name) n
		where `+condition+` on conflict (tenant_id, lower(name)) do nothing`, append([]any{names}, args...)...)
	b.Queue(hold, names) // those that somebody else has added meanwhile
}

// touched are series that a change has met.
type touched struct {
	ID        uuid.UUID `db:"id"`
	LibraryID uuid.UUID `db:"library_id"`
}

// change is what a batch does to the genres or tags of series.
type change struct {
	fewer, more []touched
}

// met are the series that have lost or got something.
func (c *change) met() []touched {
	out := append(slices.Clone(c.fewer), c.more...)
	slices.SortFunc(out, func(a, b touched) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	return slices.Compact(out)
}

// hold makes those who write a series wait for each other; those who write several call book.LockSeries.
func hold(b *pgx.Batch, series uuid.UUID) {
	b.Queue("select from series where tenant_id = app.tenant() and id = $1 for no key update", series)
}

// queueTake takes from series, which are locked, what a condition on x and t with the parameters $2 on
// says.
func (k kind) queueTake(b *pgx.Batch, c *change, series []uuid.UUID, condition string, args ...any) {
	db.All(b, &c.fewer, k.sql(`with gone as (
		  delete from series_{t} x using {t} t where x.tenant_id = app.tenant() and x.series_id = any($1) and t.tenant_id = x.tenant_id and t.id = x.{t}_id
		    and `+condition+` returning x.series_id)
		update series s set updated_at = now() where s.tenant_id = app.tenant() and s.id in (select series_id from gone) returning s.id, s.library_id`),
		append([]any{series}, args...)...)
}

// queueGive gives series, which are locked, the names, but none that has as many as there may be.
func (k kind) queueGive(b *pgx.Batch, c *change, series []uuid.UUID, names []string) {
	QueueNames(b, k.table, names, strings.ReplaceAll(k.sql("exists (select from series s where {room})"), "$1", "$2"), series)
	db.All(b, &c.more, k.sql(`with come as (
		  insert into series_{t} (tenant_id, series_id, {t}_id) select s.tenant_id, s.id, t.id from series s join {t} t on t.tenant_id = s.tenant_id and {named}
		  where {room} on conflict do nothing returning series_id)
		update series s set updated_at = now() where s.tenant_id = app.tenant() and s.id in (select series_id from come) returning s.id, s.library_id`), series, names)
}

// list is a page of all there are, with how many series have each.
func (k kind) list(ctx context.Context, d *db.DB, limit, offset int) ([]book.Term, int64, error) {
	used := k.sql(" from {t} t where t.tenant_id = app.tenant() and exists (select from series_{t} x where x.tenant_id = app.tenant() and x.{t}_id = t.id)")
	var b pgx.Batch
	var page []book.Term
	var total int64
	db.All(&b, &page, k.sql("select t.id, t.name, t.created_at, (select count(*) from series_{t} x where x.tenant_id = app.tenant() and x.{t}_id = t.id) as series_count")+
		used+" order by lower(t.name), t.id limit $1 offset $2", limit, offset)
	db.Value(&b, &total, "select count(*)"+used)
	return page, total, d.Run(ctx, &b)
}

// clean removes what no series has, and tells the names.
func (k kind) clean(ctx context.Context, d *db.DB) (names []string, err error) {
	var b pgx.Batch
	db.Values(&b, &names, "select app.clean_terms($1)", k.table)
	return names, d.Run(ctx, &b)
}

// told is of how many series it is told that they have one less; of more it is told that their libraries changed.
const told = 500

// remove takes one from every series that has it, and tells what to publish; NotFound where there is none.
func (k kind) remove(ctx context.Context, d *db.DB, id uuid.UUID) ([]events.Event, error) {
	having := k.sql(" from series_{t} x join series s on s.tenant_id = x.tenant_id and s.id = x.series_id where x.tenant_id = app.tenant() and x.{t}_id = $1")
	var b pgx.Batch
	var met []touched
	var libraries []uuid.UUID
	var n int64
	b.Queue("select set_config('statement_timeout', '0', true)") // that of 30,000 series takes its time: DATABASE_TIMEOUT bounds it
	db.All(&b, &met, "select s.id, s.library_id"+having+" limit $2", id, told+1)
	db.Values(&b, &libraries, "select distinct s.library_id"+having, id)
	db.Affected(&b, &n, "delete from "+k.table+" where tenant_id = app.tenant() and id = $1", id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, fault.Missing(k.what)
	}
	if len(met) <= told {
		return k.events(met), nil
	}
	out := make([]events.Event, len(libraries))
	for i, library := range libraries {
		out[i] = events.LibraryUpdated(library)
	}
	return out, nil
}

// of are those of a series; NotFound where there is no such series.
func (k kind) of(ctx context.Context, d *db.DB, series uuid.UUID) (terms []book.Term, err error) {
	var b pgx.Batch
	var exists bool
	progress.QueueSeriesExists(&b, &exists, series)
	book.QueueTerms(&b, &terms, k.table, "$1", series)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if !exists {
		return nil, fault.Missing("Series")
	}
	return terms, nil
}

// replace gives a series just these, and tells whether that was a change.
func (k kind) replace(ctx context.Context, d *db.DB, series uuid.UUID, names []string) (terms []book.Term, met []touched, err error) {
	var b pgx.Batch
	var exists bool
	var c change
	these := []uuid.UUID{series}
	hold(&b, series)
	progress.QueueSeriesExists(&b, &exists, series)
	k.queueTake(&b, &c, these, "not {named}", names)
	k.queueGive(&b, &c, these, names)
	book.QueueTerms(&b, &terms, k.table, "$1", series)
	if err := d.Run(ctx, &b); err != nil {
		return nil, nil, err
	}
	if !exists {
		return nil, nil, fault.Missing("Series")
	}
	return terms, c.met(), nil
}

// QueueReplace gives a series, which the batch has locked, just these genres or tags (table).
func QueueReplace(b *pgx.Batch, table string, series uuid.UUID, names []string) {
	k, c, these := kind{table: table}, &change{}, []uuid.UUID{series}
	k.queueTake(b, c, these, "not {named}", names)
	k.queueGive(b, c, these, names)
}

// add gives a series one more; Conflict where it has as many as there may be.
func (k kind) add(ctx context.Context, d *db.DB, series uuid.UUID, name string) (*book.Term, []touched, error) {
	var b pgx.Batch
	var exists bool
	var c change
	var out *book.Term
	these, names := []uuid.UUID{series}, []string{name}
	hold(&b, series)
	progress.QueueSeriesExists(&b, &exists, series)
	k.queueGive(&b, &c, these, names)
	db.One(&b, &out, k.sql(`select t.id, t.name, t.created_at, (select count(*) from series_{t} x where x.tenant_id = app.tenant() and x.{t}_id = t.id) as series_count
		from series_{t} l join {t} t on t.tenant_id = l.tenant_id and t.id = l.{t}_id where l.tenant_id = app.tenant() and l.series_id = $1 and {named}`), series, names)
	if err := d.Run(ctx, &b); err != nil {
		return nil, nil, err
	}
	switch {
	case !exists:
		return nil, nil, fault.Missing("Series")
	case out == nil:
		return nil, nil, fault.New(fault.Conflict, "The series has %d %s already, and can have no more", most, k.plural)
	}
	return out, c.met(), nil
}

// drop takes one from a series; NotFound where there is no such series, or it has none of the kind with this id.
func (k kind) drop(ctx context.Context, d *db.DB, series, id uuid.UUID) ([]touched, error) {
	var b pgx.Batch
	var exists bool
	var c change
	these := []uuid.UUID{series}
	hold(&b, series)
	progress.QueueSeriesExists(&b, &exists, series)
	k.queueTake(&b, &c, these, "t.id = $2", id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	switch {
	case !exists:
		return nil, fault.Missing("Series")
	case len(c.fewer) == 0:
		return nil, fault.New(fault.NotFound, "The series has no such %s", strings.ToLower(k.what))
	}
	return c.met(), nil
}

// change takes names from several series and adds others, and tells of which that was a change.
func (k kind) change(ctx context.Context, d *db.DB, series []uuid.UUID, more, fewer []string) ([]touched, error) {
	var b pgx.Batch
	var c change
	book.LockSeries(&b, series)
	k.queueTake(&b, &c, series, "{named}", fewer)
	k.queueGive(&b, &c, series, more)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	return c.met(), nil
}

// events tell of series that these have changed.
func (k kind) events(of []touched) []events.Event {
	out := make([]events.Event, len(of))
	for i, s := range of {
		out[i] = events.SeriesUpdated(events.Series{ID: s.ID, LibraryID: s.LibraryID}, k.plural)
	}
	return out
}

// maxName is the length of the longest name, in characters.
const maxName = 200

// clean brings names into their form; BadRequest names what is wrong.
func clean(field string, names []string) ([]string, error) {
	out := make([]string, len(names))
	var bad []fault.Field
	for i, name := range names {
		if out[i] = name; !book.Printable(&out[i]) || utf8.RuneCountInString(out[i]) > maxName {
			bad = append(bad, fault.Field{Field: fmt.Sprintf("%s[%d]", field, i), Message: fmt.Sprintf("must be 1 to %d printable characters", maxName)})
		}
	}
	return out, fault.InvalidFields(bad)
}

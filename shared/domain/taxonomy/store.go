package taxonomy

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/owner"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
)

// most is how many genres, or tags, people can give a series or a book.
const most = 1000

// kind is genres or tags.
type kind struct {
	table  string
	what   string // in messages
	plural string // in paths and bodies
}

var (
	genres = kind{table: "genre", what: "Genre", plural: "genres"}
	tags   = kind{table: "tag", what: "Tag", plural: "tags"}
)

// used is SQL: a series or a book has t.
func (k kind) used() string {
	return "(" + book.HasTerm("series", k.table) + " or " + book.HasTerm("book", k.table) + ")"
}

// set is the genres, or tags, of owners.
type set struct {
	kind
	owner.Owner
}

// sql is a text as of owner.Owner, with {t} for the table of the kind, {touched}, which are the columns of an owner
// that was changed, {named}, which says that t has one of the names $2, {these}, which says that the owner o is one
// of $1, and {room}, which is how many more o may have.
func (s set) sql(text string) string {
	return s.SQL(text, "{t}", s.table, "{touched}", "o.id, o.library_id, {series} as series_id",
		"{named}", "lower(t.name) in (select lower(n) from unnest($2::text[]) n)",
		"{these}", "{there} and o.id = any($1)",
		"{room}", strconv.Itoa(most)+" - (select count(*) from {o}_"+s.table+" y where y.tenant_id = o.tenant_id and y.{id} = o.id)")
}

// lock makes those who write these owners wait for each other.
func (s set) lock(b *pgx.Batch, ids []uuid.UUID) {
	if s.Owner == owner.Book {
		book.LockBooks(b, ids)
	} else {
		book.LockSeries(b, ids)
	}
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

// change is what a batch does to the genres or tags of owners. Of a series, ID and SeriesID are the same.
type change struct {
	fewer, more []events.Book
}

// met are the owners that have lost or got something.
func (c *change) met() []events.Book {
	out := append(slices.Clone(c.fewer), c.more...)
	slices.SortFunc(out, func(a, b events.Book) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	return slices.Compact(out)
}

// hold makes those who write an owner wait for each other, and tells whether it is there; those who write several call
// lock.
func (s set) hold(b *pgx.Batch, exists *bool, id uuid.UUID) {
	db.Value(b, exists, s.sql("select true from {o} o where {there} and o.id = $1 for no key update"), id)
}

// queueTake takes from owners, which are locked, what a condition on x and t with the parameters $2 on says.
func (s set) queueTake(b *pgx.Batch, c *change, ids []uuid.UUID, condition string, args ...any) {
	db.All(b, &c.fewer, s.sql(`with gone as (
		  delete from {o}_{t} x using {t} t, {o} o where x.tenant_id = app.tenant() and x.{id} = any($1) and t.tenant_id = x.tenant_id and t.id = x.{t}_id
		    and {there} and o.id = x.{id} and `+condition+` returning x.{id})
		update {o} o set updated_at = now() where o.tenant_id = app.tenant() and o.id in (select {id} from gone) returning {touched}`),
		append([]any{ids}, args...)...)
}

// queueGive gives owners, which are locked, the names, but none more than it may have.
func (s set) queueGive(b *pgx.Batch, c *change, ids []uuid.UUID, names []string) {
	QueueNames(b, s.table, names, strings.ReplaceAll(s.sql("exists (select from {o} o where {these} and {room} > 0)"), "$1", "$2"), ids)
	db.All(b, &c.more, s.sql(`with come as (
		  insert into {o}_{t} (tenant_id, {id}, {t}_id) select n.tenant_id, n.id, n.term from (
		    select o.*, t.id as term, row_number() over (partition by o.id order by lower(t.name)) as nth
		    from (select o.tenant_id, o.id, {room} as room from {o} o where {these} offset 0) o join {t} t on t.tenant_id = o.tenant_id and {named}
		    where o.room > 0 and not exists (select from {o}_{t} y where y.tenant_id = o.tenant_id and y.{id} = o.id and y.{t}_id = t.id)) n
		  where n.nth <= n.room on conflict do nothing returning {id})
		update {o} o set updated_at = now() where o.tenant_id = app.tenant() and o.id in (select {id} from come) returning {touched}`), ids, names)
}

// list is a page of all there are, with how many series have each.
func (k kind) list(ctx context.Context, d *db.DB, limit, offset int) ([]book.Term, int64, error) {
	used := " from " + k.table + " t where t.tenant_id = app.tenant() and " + k.used()
	var b pgx.Batch
	var page []book.Term
	var total int64
	db.All(&b, &page, "select "+book.TermColumns(k.table)+used+" order by t.name collate natural_order, t.id limit $1 offset $2", limit, offset)
	db.Value(&b, &total, "select count(*)"+used)
	return page, total, d.Run(ctx, &b)
}

// clean removes what neither series nor books have, and tells the names.
func (k kind) clean(ctx context.Context, d *db.DB) ([]string, error) {
	return db.ListValues[string](ctx, d, "select app.clean_terms($1)", k.table)
}

// told is the maximum number of series and books that get their own event; beyond it, only their libraries do.
const told = 500

// removeRows is how many series, and books, a deletion starts with, and removeTime is the time per request.
const (
	removeRows = 500
	removeTime = 20 * time.Second
)

// remove takes a term from everything that has it, and returns what to publish, also if there is an error; NotFound if
// there is no such term. It takes a common term in several transactions, which start with that many rows. If it stops
// in between, by an error or at end, the next call continues.
func (k kind) remove(ctx context.Context, d *db.DB, id uuid.UUID, rows int, end time.Time) ([]events.Event, error) {
	var found bool
	var lost losers
	steps := db.Steps{Size: rows}
	for {
		var part removed
		err := steps.Next(func(rows int, limit time.Duration) (err error) {
			part, err = k.removePart(ctx, d, id, rows, limit)
			return err
		})
		lost.add(part.owners)
		found = found || part.found
		switch {
		case err == nil && !found:
			err = fault.Missing(k.what)
		case err == nil && part.left && time.Now().After(end):
			err = fault.New(fault.Unavailable, "The %s has too many series and books to delete it in one request; delete it again to continue",
				k.table).After(time.Second)
		}
		if err != nil || !part.left {
			return lost.events(k), err
		}
	}
}

// removed are the series and books from which a term was taken, whether there was the term, and whether it is left.
type removed struct {
	owners      [2][]events.Book
	found, left bool
}

func (k kind) sets() [2]set { return [2]set{{k, owner.Series}, {k, owner.Book}} }

// removePart takes a term from up to that many series, and books; if none has it any more, it deletes the term.
func (k kind) removePart(ctx context.Context, d *db.DB, id uuid.UUID, rows int, limit time.Duration) (out removed, err error) {
	var b pgx.Batch
	var n int64
	unused := ""
	db.StatementTimeout(&b, limit)
	for i, s := range k.sets() {
		having := "from {o}_{t} y where y.tenant_id = app.tenant() and y.{t}_id = $1"
		db.All(&b, &out.owners[i], s.sql(`with gone as (
			  delete from {o}_{t} x where x.tenant_id = app.tenant() and x.{t}_id = $1 and x.{id} = any(array(select y.{id} `+having+` limit $2)) returning x.{id})
			select {touched} from {o} o where {there} and o.id in (select {id} from gone)`), id, rows)
		unused += s.sql(" and not exists (select " + having + ")")
	}
	db.Affected(&b, &n, "delete from "+k.table+" where tenant_id = app.tenant() and id = $1"+unused, id)
	db.Value(&b, &out.left, "select exists (select from "+k.table+" where tenant_id = app.tenant() and id = $1)", id)
	err = d.Run(ctx, &b)
	out.found = n > 0 || out.left
	return out, err
}

// losers are the series and books that have lost a term; of very many, only their libraries are kept.
type losers struct {
	n         int
	owners    [2][]events.Book
	libraries map[uuid.UUID]bool
}

func (l *losers) add(part [2][]events.Book) {
	if l.libraries == nil {
		l.libraries = map[uuid.UUID]bool{}
	}
	for i, owners := range part {
		l.n += len(owners)
		l.owners[i] = append(l.owners[i], owners...)
		for _, t := range owners {
			l.libraries[t.LibraryID] = true
		}
	}
	if l.n > told {
		l.owners = [2][]events.Book{}
	}
}

// events are those of the series and books; of very many, those of their libraries.
func (l *losers) events(k kind) (out []events.Event) {
	if l.n > told {
		for library := range l.libraries {
			out = append(out, events.LibraryUpdated(library))
		}
		return out
	}
	for i, s := range k.sets() {
		out = append(out, s.events(l.owners[i])...)
	}
	return out
}

// of are those of an owner; NotFound where there is none.
func (s set) of(ctx context.Context, d *db.DB, id uuid.UUID) (terms []book.Term, err error) {
	var b pgx.Batch
	var exists bool
	db.Value(&b, &exists, s.sql("select exists (select from {o} o where {there} and o.id = $1)"), id)
	book.QueueTerms(&b, &terms, s.table, s.Table, id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if !exists {
		return nil, fault.Missing(s.What)
	}
	return terms, nil
}

// replace gives an owner just these, and tells whether that was a change.
func (s set) replace(ctx context.Context, d *db.DB, id uuid.UUID, names []string) (terms []book.Term, met []events.Book, err error) {
	var b pgx.Batch
	var exists bool
	var c change
	s.hold(&b, &exists, id)
	s.queueReplace(&b, &c, id, names)
	book.QueueTerms(&b, &terms, s.table, s.Table, id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, nil, err
	}
	if !exists {
		return nil, nil, fault.Missing(s.What)
	}
	return terms, c.met(), nil
}

func (s set) queueReplace(b *pgx.Batch, c *change, id uuid.UUID, names []string) {
	these := []uuid.UUID{id}
	s.queueTake(b, c, these, "not {named}", names)
	s.queueGive(b, c, these, names)
}

// QueueReplaceOfSeries gives a series, which the batch has locked, just these genres or tags (table).
func QueueReplaceOfSeries(b *pgx.Batch, table string, id uuid.UUID, names []string) {
	set{kind{table: table}, owner.Series}.queueReplace(b, &change{}, id, names)
}

// QueueReplaceOfBook is QueueReplaceOfSeries for a book.
func QueueReplaceOfBook(b *pgx.Batch, table string, id uuid.UUID, names []string) {
	set{kind{table: table}, owner.Book}.queueReplace(b, &change{}, id, names)
}

// add gives an owner one more; Conflict where it has as many as there may be.
func (s set) add(ctx context.Context, d *db.DB, id uuid.UUID, name string) (*book.Term, []events.Book, error) {
	var b pgx.Batch
	var exists bool
	var c change
	var out *book.Term
	these, names := []uuid.UUID{id}, []string{name}
	s.hold(&b, &exists, id)
	s.queueGive(&b, &c, these, names)
	db.One(&b, &out, s.sql("select "+book.TermColumns(s.table)+`
		from {o}_{t} l join {t} t on t.tenant_id = l.tenant_id and t.id = l.{t}_id where l.tenant_id = app.tenant() and l.{id} = $1 and {named}`), id, names)
	if err := d.Run(ctx, &b); err != nil {
		return nil, nil, err
	}
	switch {
	case !exists:
		return nil, nil, fault.Missing(s.What)
	case out == nil:
		return nil, nil, fault.New(fault.Conflict, "The %s already has %d %s, the most it can have; remove one first", s.Table, most, s.plural)
	}
	return out, c.met(), nil
}

// drop takes one from an owner; NotFound where there is no such owner, or it has none of the kind with this id.
func (s set) drop(ctx context.Context, d *db.DB, owner, id uuid.UUID) ([]events.Book, error) {
	var b pgx.Batch
	var exists bool
	var c change
	s.hold(&b, &exists, owner)
	s.queueTake(&b, &c, []uuid.UUID{owner}, "t.id = $2", id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	switch {
	case !exists:
		return nil, fault.Missing(s.What)
	case len(c.fewer) == 0:
		return nil, fault.New(fault.NotFound, "The %s has no such %s", s.Table, strings.ToLower(s.what))
	}
	return c.met(), nil
}

// change takes names from several owners and adds others, and tells of which that was a change.
func (s set) change(ctx context.Context, d *db.DB, ids []uuid.UUID, more, fewer []string) ([]events.Book, error) {
	var b pgx.Batch
	var c change
	s.lock(&b, ids)
	s.queueTake(&b, &c, ids, "{named}", fewer)
	s.queueGive(&b, &c, ids, more)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	return c.met(), nil
}

// events tell of owners that these have changed.
func (s set) events(of []events.Book) []events.Event {
	out := make([]events.Event, len(of))
	for i, t := range of {
		out[i] = s.Updated(t.ID, t.SeriesID, t.LibraryID, s.plural)
	}
	return out
}

// maxName is the length of the longest name, in characters.
const maxName = 200

// ValidName brings a name into its form, and reports whether a genre or tag can have it.
func ValidName(name *string) bool {
	return naming.Printable(name) && utf8.RuneCountInString(*name) <= maxName
}

// clean brings names into their form; BadRequest names what is wrong.
func clean(field string, names []string) ([]string, error) {
	out := make([]string, len(names))
	var bad []fault.Field
	for i, name := range names {
		if out[i] = name; !ValidName(&out[i]) {
			bad = append(bad, fault.Field{Field: fmt.Sprintf("%s[%d]", field, i), Message: fmt.Sprintf("must be 1 to %d printable characters", maxName)})
		}
	}
	return out, fault.InvalidFields(bad)
}

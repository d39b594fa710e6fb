package reference

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/owner"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// most is how many entries of a kind people can add to a series or book.
const most = 200

// owner is a kind of thing that has references: series or book.
type owner struct {
	table, path, column string
	what                string // in messages and operation ids
	there               string // SQL: the row o exists
	series              string // SQL: the series of row o
	reading, writing    string
}

var (
	ofSeries = owner{"series", "series", "series_id", "Series", "true", "o.id", auth.SeriesRead, auth.SeriesWrite}
	ofBook   = owner{"book", "books", "book_id", "Book", "o.deleted_at is null", "o.series_id", auth.BooksRead, auth.BooksWrite}
)

// touched locates an owner that was changed.
type touched struct {
	SeriesID  uuid.UUID `db:"series_id"`
	LibraryID uuid.UUID `db:"library_id"`
}

// told returns the event that a field of an owner has changed.
func (o owner) told(id uuid.UUID, at *touched, field string) events.Event {
	if o == ofBook {
		return events.BookUpdated(events.Book{ID: id, SeriesID: at.SeriesID, LibraryID: at.LibraryID}, field)
	}
	return events.SeriesUpdated(events.Series{ID: id, LibraryID: at.LibraryID}, field)
}

// is is an SQL condition: row o is the owner $1.
func (o owner) is() string {
	return "o.tenant_id = app.tenant() and o.id = $1 and " + o.there
}

// queueTouch updates updated_at of owner id if condition holds.
func (o owner) queueTouch(b *pgx.Batch, dst **touched, condition string, id uuid.UUID, args ...any) {
	db.One(b, dst, "update "+o.table+" o set updated_at = now() where "+o.is()+" and "+condition+" returning "+o.series+" as series_id, o.library_id",
		append([]any{id}, args...)...)
}

// column is a column that people write.
type column struct{ name, kind string }

// kind is a kind of reference, represented as a T.
type kind[T any] struct {
	table, path, field string   // in the database, in paths, and in events
	what               string   // in messages
	id                 string   // in operation ids
	columns            []column // the first two are name and value
	unique             bool     // the first column is unique per owner
	rest               string   // further columns
	again              string   // SQL that resets the further columns on replacement
	spelled            string   // SQL for the first column, from the name $2 as people write it
}

// sql is a text as of owner.Owner, with {k} for the table of the kind.
func (k kind[T]) sql(o owner.Owner, text string) string { return o.SQL(text, "{k}", k.table) }

func (k kind[T]) all() string {
	names := "x.id"
	for _, c := range k.columns {
		names += ", x." + c.name
	}
	return names + ", x.created_at, x.updated_at" + k.rest
}

// queue adds the select of all of an owner to the batch.
func (k kind[T]) queue(b *pgx.Batch, dst *[]T, o owner.Owner, id uuid.UUID) {
	db.All(b, dst, k.sql(o, "select "+k.all()+" from {k} x where x.tenant_id = app.tenant() and x.{id} = $1 order by x."+k.columns[0].name+", x.id"), id)
}

func (k kind[T]) list(ctx context.Context, d *db.DB, o owner.Owner, id uuid.UUID) (out []T, err error) {
	var b pgx.Batch
	var exists bool
	db.Value(&b, &exists, o.SQL("select exists (select from {o} o where {is})"), id)
	k.queue(&b, &out, o, id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if !exists {
		return nil, fault.Missing(o.What)
	}
	return out, nil
}

// add inserts a reference with a value per column, or replaces the one with the same name. Conflict if the limit is
// reached.
func (k kind[T]) add(ctx context.Context, d *db.DB, o owner.Owner, id uuid.UUID, values []any) (*T, *touched, error) {
	insert, room, conflict := k.insertion(o)
	var b pgx.Batch
	var exists bool
	var at *touched
	var out *T
	db.Value(&b, &exists, "select true from "+o.table+" o where "+o.is()+" for no key update", id) // serializes writers
	db.One(&b, &out, insert+" and "+room+conflict+" returning "+k.all(), append([]any{id}, values...)...)
	queueTouch(&b, &at, o, k.sql(o, "exists (select from {k} y where y.tenant_id = app.tenant() and y.{id} = o.id and y.updated_at = now())"), id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, nil, err
	}
	switch {
	case !exists:
		return nil, nil, fault.Missing(o.What)
	case out == nil || at == nil:
		return nil, nil, fault.New(fault.Conflict, "There are %d already, and can be no more", most)
	}
	return out, at, nil
}

// insertion returns SQL that inserts a row for owner $1, with values from $2 on, to which a condition is appended; the
// condition that there is room; and the conflict clause for a row with the same name.
func (k kind[T]) insertion(o owner.Owner) (insert, room, conflict string) {
	names, given, set := "", "", "updated_at = now()"+k.again
	for i, c := range k.columns {
		names, given = names+", "+c.name, given+fmt.Sprintf(", $%d::%s", i+2, c.kind)
		set += fmt.Sprintf(", %[1]s = excluded.%[1]s", c.name)
	}
	const mine = "select from {k} y where y.tenant_id = app.tenant() and y.{id} = o.id"
	room = fmt.Sprintf("(select count(*) from (%s limit %d) y) < %[2]d", mine, most)
	if k.unique {
		room = "(" + room + " or exists (" + mine + " and y." + k.columns[0].name + " = $2))"
		conflict = " on conflict (tenant_id, {id}, " + k.columns[0].name + ") where {id} is not null do update set " + set
	}
	insert = "insert into {k} as x (tenant_id, id, {id}" + names + ") select app.tenant(), gen_random_uuid(), o.id" + given + " from {o} o where {is}"
	return k.sql(o, insert), k.sql(o, room), k.sql(o, conflict)
}

// named is an SQL condition: row x belongs to owner $1 and has the id $2 or, if unique, the service $2.
func (k kind[T]) named(o owner.Owner) string {
	by := "x.id::text = lower($2)"
	if k.unique {
		by = "(" + by + " or x." + k.columns[0].name + " = " + k.spelled + ")"
	}
	return k.sql(o, "x.tenant_id = app.tenant() and x.{id} = $1 and "+by)
}

// remove deletes one reference.
func (k kind[T]) remove(ctx context.Context, d *db.DB, o owner.Owner, id uuid.UUID, name string) (*touched, error) {
	var b pgx.Batch
	var exists bool
	var at *touched
	db.Value(&b, &exists, o.SQL("select exists (select from {o} o where {is})"), id)
	queueTouch(&b, &at, o, k.sql(o, "exists (select from {k} x where "+k.named(o)+")"), id, name)
	b.Queue(k.sql(o, "delete from {k} x where "+k.named(o)+" and exists (select from {o} o where {is})"), id, name)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	switch {
	case !exists:
		return nil, fault.Missing(o.What)
	case at == nil:
		return nil, fault.Missing(k.what)
	}
	return at, nil
}

// rename changes the non-nil fields of a title; if nothing changes, the series is not touched.
func rename(ctx context.Context, d *db.DB, series, id uuid.UUID, label, title *string) (*Title, *touched, error) {
	var b pgx.Batch
	var exists bool
	var at *touched
	var out *Title
	name, changes := id.String(), label != nil || title != nil
	db.Value(&b, &exists, owner.Series.SQL("select exists (select from {o} o where {is})"), series)
	if changes {
		queueTouch(&b, &at, owner.Series, "exists (select from alternate_title x where "+titles.named(owner.Series)+")", series, name)
	}
	db.One(&b, &out, "update alternate_title x set label = coalesce($3, x.label), title = coalesce($4, x.title), updated_at = case when $5 then now() else x.updated_at end where "+
		titles.named(owner.Series)+" returning "+titles.all(), series, name, label, title, changes)
	if err := d.Run(ctx, &b); err != nil {
		return nil, nil, err
	}
	switch {
	case !exists:
		return nil, nil, fault.Missing(owner.Series.What)
	case out == nil:
		return nil, nil, fault.Missing(titles.what)
	}
	return out, at, nil
}

var (
	titles = kind[Title]{table: "alternate_title", path: "alternate-titles", field: "alternateTitles", what: "Alternate title",
		columns: []column{{"label", "text"}, {"title", "text"}}, rest: ", x.series_id"}
	ids = kind[ExternalID]{table: "external_id", path: "external-ids", field: "externalIds", what: "External id",
		columns: []column{{"source", "text"}, {"external_id", "text"}, {"external_url", "text"}}, unique: true,
		rest: ", x.series_id, x.book_id, x.metadata_hash, x.last_synced_at", again: ", metadata_hash = null, last_synced_at = null", spelled: "$2"}
	links = kind[Link]{table: "external_link", path: "external-links", field: "externalLinks", what: "External link",
		columns: []column{{"source_name", "text"}, {"url", "text"}, {"external_id", "text"}}, unique: true, rest: ", x.series_id, x.book_id", spelled: "$2"}
	ratings = kind[Rating]{table: "external_rating", path: "external-ratings", field: "externalRatings", what: "External rating",
		columns: []column{{"source_name", "text"}, {"rating", "double precision"}, {"vote_count", "integer"}}, unique: true,
		rest: ", x.series_id, x.fetched_at", again: ", fetched_at = now()", spelled: "lower($2)"}
)

// OfSeries holds all references of a series.
type OfSeries struct {
	AlternateTitles []Title      `json:"alternateTitles" nullable:"false"`
	ExternalIDs     []ExternalID `json:"externalIds" nullable:"false"`
	ExternalLinks   []Link       `json:"externalLinks" nullable:"false"`
	ExternalRatings []Rating     `json:"externalRatings" nullable:"false"`
}

// Queue adds the selects of all references of a series to the batch.
func Queue(b *pgx.Batch, dst *OfSeries, series uuid.UUID) {
	titles.queue(b, &dst.AlternateTitles, owner.Series, series)
	ids.queue(b, &dst.ExternalIDs, owner.Series, series)
	links.queue(b, &dst.ExternalLinks, owner.Series, series)
	ratings.queue(b, &dst.ExternalRatings, owner.Series, series)
}

// QueueClear deletes all references of several series.
func QueueClear(b *pgx.Batch, series []uuid.UUID) {
	for _, table := range strings.Fields("alternate_title external_id external_link external_rating") {
		b.Queue("delete from "+table+" where tenant_id = app.tenant() and series_id = any($1)", series)
	}
}

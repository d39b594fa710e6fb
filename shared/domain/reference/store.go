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

// most is how many of a kind people can give a series or a book.
const most = 200

// touched is where an owner stands that was changed.
type touched struct {
	SeriesID  uuid.UUID `db:"series_id"`
	LibraryID uuid.UUID `db:"library_id"`
}

// queueTouch notes a change of owner id where a condition is met.
func queueTouch(b *pgx.Batch, dst **touched, o owner.Owner, condition string, id uuid.UUID, args ...any) {
	db.One(b, dst, o.SQL("update {o} o set updated_at = now() where {is} and "+condition+" returning {series} as series_id, o.library_id"),
		append([]any{id}, args...)...)
}

// column is one that people write.
type column struct{ name, kind string }

// kind is something that hangs on owners, as a T.
type kind[T any] struct {
	table, path, field string   // in the database, in paths, and in events
	what               string   // in messages
	columns            []column // the first two are what it is called by and what it says
	unique             bool     // of its first column an owner has one
	rest               string   // further columns
	again              string   // SQL that sets them where another takes its place
	spelled            string   // SQL of the first column where $2 is what people call it
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

// queue asks for all that hang on an owner.
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

// add hangs one on an owner, with a value for each column, or puts it into the place of the one that is called the
// same; Conflict where there are as many as there may be.
func (k kind[T]) add(ctx context.Context, d *db.DB, o owner.Owner, id uuid.UUID, values []any) (*T, *touched, error) {
	insert, room, conflict := k.insertion(o)
	var b pgx.Batch
	var exists bool
	var at *touched
	var out *T
	// The lock makes writers wait for each other.
	db.Value(&b, &exists, o.SQL("select true from {o} o where {is} for no key update"), id)
	db.One(&b, &out, insert+" and "+room+conflict+" returning "+k.all(), append([]any{id}, values...)...)
	queueTouch(&b, &at, o, k.sql(o, "exists (select from {k} y where y.tenant_id = app.tenant() and y.{id} = o.id and y.updated_at = now())"), id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, nil, err
	}
	switch {
	case !exists:
		return nil, nil, fault.Missing(o.What)
	case out == nil || at == nil:
		return nil, nil, fault.New(fault.Conflict, "There are already %d, the most there can be; delete one first", most)
	}
	return out, at, nil
}

// insertion is SQL that hangs one on the owner $1, with values from $2 on, up to a condition; that there is room for
// it; and what becomes of the one that is called the same.
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

// named is SQL: the row x is of owner $1 and goes by the id or, where that is unique, the service $2.
func (k kind[T]) named(o owner.Owner) string {
	by := "x.id::text = lower($2)"
	if k.unique {
		by = "(" + by + " or x." + k.columns[0].name + " = " + k.spelled + ")"
	}
	return k.sql(o, "x.tenant_id = app.tenant() and x.{id} = $1 and "+by)
}

// remove takes one away.
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

// rename changes what of a title is not nil; where that is nothing, no series was touched.
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

// OfSeries is all that hangs on a series.
type OfSeries struct {
	AlternateTitles []Title      `json:"alternateTitles" nullable:"false"`
	ExternalIDs     []ExternalID `json:"externalIds" nullable:"false"`
	ExternalLinks   []Link       `json:"externalLinks" nullable:"false"`
	ExternalRatings []Rating     `json:"externalRatings" nullable:"false"`
}

// Queue asks for all that hangs on a series.
func Queue(b *pgx.Batch, dst *OfSeries, series uuid.UUID) {
	titles.queue(b, &dst.AlternateTitles, owner.Series, series)
	ids.queue(b, &dst.ExternalIDs, owner.Series, series)
	links.queue(b, &dst.ExternalLinks, owner.Series, series)
	ratings.queue(b, &dst.ExternalRatings, owner.Series, series)
}

// QueueClear takes all of it away from several series.
func QueueClear(b *pgx.Batch, series []uuid.UUID) {
	for _, table := range strings.Fields("alternate_title external_id external_link external_rating") {
		b.Queue("delete from "+table+" where tenant_id = app.tenant() and series_id = any($1)", series)
	}
}

package cover

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/owner"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
)

// owner is a kind of thing that has covers: series or book.
type owner struct {
	entity           events.EntityType // also the table
	path             string
	what             string // in messages and operation ids
	many             string // in messages
	fallback         string // what is shown if nothing was chosen
	there            string // SQL: the row o exists
	reading, writing string
}

var (
	ofSeries = covered{owner.Series, "the default cover"}
	ofBook   = covered{owner.Book, "the cover in the file"}
)

// sql fills in a template: {o} is the table of the owner, {c} the table of its covers, {id} the owner's column there,
// and {is} the condition that row o is the owner $1.
func (o owner) sql(text string) string {
	return strings.NewReplacer("{o}", string(o.entity), "{c}", string(o.entity)+"_cover", "{id}", string(o.entity)+"_id",
		"{is}", "o.tenant_id = app.tenant() and o.id = $1 and "+o.there).Replace(text)
}

// a names the owner in messages.
func (o owner) a() string { return "a " + string(o.entity) }

// hold locks an owner against concurrent changes of its covers, and reports whether it exists.
func (o covered) hold(b *pgx.Batch, exists *bool, id uuid.UUID) {
	db.Value(b, exists, o.sql("select true from {o} o where {is} for no key update"), id)
}

// changed is an owner whose covers have changed, and the series that show its cover as theirs.
type changed struct {
	library uuid.UUID
	showing []events.Series
}

// queueChanged selects the series that show the book's cover as theirs.
func (o covered) queueChanged(b *pgx.Batch, c *changed, id uuid.UUID) {
	if o == ofBook {
		QueueShowing(b, []uuid.UUID{id}, &c.showing)
	}
}

// Told returns the events for a new cover of a series or book, and of the series that show it as theirs.
func Told(entity events.EntityType, id, library uuid.UUID, showing []events.Series) []events.Event {
	out := []events.Event{events.CoverUpdated(entity, id, &library)}
	for _, s := range showing {
		out = append(out, events.CoverUpdated(events.SeriesEntity, s.ID, &s.LibraryID))
	}
	return out
}

// QueueShowing selects the series that show the cover of one of the books, by the rules of shared/domain/rendition: the
// book that people chose or, without an uploaded picture or one beside the books, the first readable book.
func QueueShowing(b *pgx.Batch, books []uuid.UUID, out *[]events.Series) {
	if len(books) == 0 {
		return
	}
	// Each book gets its own lookup: a join with the series would read all books of the tenant.
	db.All(b, out, `select x.id, x.library_id from (select s.id, s.library_id, s.path, s.cover_source,
		    (select c.id from book c where c.tenant_id = app.tenant() and c.series_id = s.id and c.deleted_at is null
		      and c.id = case when s.cover_source like 'book:%' then substr(s.cover_source, 6)::uuid end) as chosen,
		    (select f.id from book f where f.tenant_id = app.tenant() and f.series_id = s.id and f.deleted_at is null and f.fingerprint <> ''
		      order by f.number, f.title_sort, f.id limit 1) as first
		  from series s where s.tenant_id = app.tenant()
		    and s.id = any(array(select k.series_id from book k where k.tenant_id = app.tenant() and k.id = any($1)))) x
		where coalesce(x.chosen, x.first) = any($1)
		  and not exists (select from series_cover u where u.tenant_id = app.tenant() and u.series_id = x.id and x.cover_source = 'custom:' || u.id)
		  and (x.chosen is not null or x.cover_source = 'first_book' or not exists (select from sidecar p where p.tenant_id = app.tenant()
		    and p.library_id = x.library_id and p.about = x.path and p.kind = 'cover' and p.document is not null))
		order by x.id`, books)
}

package cover

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/owner"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
)

// covered is what people give covers: a series or a book.
type covered struct {
	owner.Owner
	fallback string // what is shown where nothing was chosen
}

var (
	ofSeries = covered{owner.Series, "the default cover"}
	ofBook   = covered{owner.Book, "the cover in the file"}
)

// sql is a text as of owner.Owner, with {c} for the table of the owner's covers.
func (o covered) sql(text string) string { return o.SQL(text, "{c}", o.Table+"_cover") }

// hold makes those who change the covers of an owner wait for each other, and tells whether it is there.
func (o covered) hold(b *pgx.Batch, exists *bool, id uuid.UUID) {
	db.Value(b, exists, o.sql("select true from {o} o where {is} for no key update"), id)
}

// changed is an owner whose covers were changed, and those series that show it as theirs.
type changed struct {
	library uuid.UUID
	showing []events.Series
}

// queueChanged asks which series show the book as theirs.
func (o covered) queueChanged(b *pgx.Batch, c *changed, id uuid.UUID) {
	if o == ofBook {
		QueueShowing(b, []uuid.UUID{id}, &c.showing)
	}
}

// Told are the events that say that a series or book shows another cover, and the series that show it as theirs.
func Told(entity events.EntityType, id, library uuid.UUID, showing []events.Series) []events.Event {
	out := []events.Event{events.CoverUpdated(entity, id, &library)}
	for _, s := range showing {
		out = append(out, events.CoverUpdated(events.SeriesEntity, s.ID, &s.LibraryID))
	}
	return out
}

// QueueShowing asks which series show the cover of one of the books, by the rules of shared/domain/rendition: of the
// one that people chose, or, without a picture that was uploaded or lies beside the books, of the first that could be
// read.
func QueueShowing(b *pgx.Batch, books []uuid.UUID, out *[]events.Series) {
	if len(books) == 0 {
		return
	}
	// Each book is looked up by itself: joined with the series, all books of the tenant would be read.
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

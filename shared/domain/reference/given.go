package reference

import (
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/owner"
)

// Given holds a plugin's references to a series or a book, in the form of user input.
type Given struct {
	Titles  []TitleBody // of a series
	IDs     []IDBody
	Links   []LinkBody
	Ratings []RatingBody // of a series
}

// Check leaves out of it what people could not have written, and of each service all but the last.
func (g *Given) Check() {
	g.Titles = valid(g.Titles, (*TitleBody).values, func(t *TitleBody) (string, bool) { return t.Title, short(t.Label, 100) && short(t.Title, 500) })
	g.IDs = valid(g.IDs, (*IDBody).values, func(i *IDBody) (string, bool) {
		return i.Source, short(i.Source, 100) && short(i.ExternalID, 500) && (i.ExternalURL == nil || short(*i.ExternalURL, 2000))
	})
	g.Links = valid(g.Links, (*LinkBody).values, func(l *LinkBody) (string, bool) { return l.SourceName, short(l.SourceName, 100) && short(l.URL, 2000) })
	g.Ratings = valid(g.Ratings, (*RatingBody).values, func(r *RatingBody) (string, bool) { return r.SourceName, short(r.SourceName, 100) })
}

// short tells whether a text has something, and so many characters at most.
func short(text string, most int) bool {
	return text != "" && len(text) <= 4*most && utf8.RuneCountInString(text) <= most
}

// valid are those that people could have written, as many as they could; of those with one name the last.
func valid[T any](all []T, values func(*T, *check) []any, named func(*T) (name string, short bool)) (out []T) {
	places := map[string]int{}
	for _, v := range all {
		var c check
		if _, ok := named(&v); !ok {
			continue
		}
		if values(&v, &c); len(c.bad) > 0 {
			continue
		}
		name, _ := named(&v)
		if at, again := places[name]; again {
			out[at] = v
		} else if len(out) < most {
			places[name], out = len(out), append(out, v)
		}
	}
	return out
}

// QueueGivenSeries hangs it on a series, which the batch has locked: titles that it has not yet; of each service the
// id, page and rating takes the place of the one that was there. What finds no room is left out.
func QueueGivenSeries(b *pgx.Batch, id uuid.UUID, g *Given) {
	for _, t := range g.Titles {
		titles.queueGiven(b, owner.Series, id, t.values(&check{}), "y.title = $3::text")
	}
	queueGivenServices(b, owner.Series, id, g)
	for _, r := range g.Ratings {
		ratings.queueGiven(b, owner.Series, id, r.values(&check{}), "")
	}
}

// QueueGivenBook is QueueGivenSeries for a book.
func QueueGivenBook(b *pgx.Batch, id uuid.UUID, g *Given) { queueGivenServices(b, owner.Book, id, g) }

func queueGivenServices(b *pgx.Batch, o owner.Owner, id uuid.UUID, g *Given) {
	for _, x := range g.IDs {
		ids.queueGiven(b, o, id, x.values(&check{}), "")
	}
	for _, l := range g.Links {
		links.queueGiven(b, o, id, l.values(&check{}), "")
	}
}

// queueGiven hangs one on an owner as add does; of a kind of which there may be several, not where same says that the
// row y is the same.
func (k kind[T]) queueGiven(b *pgx.Batch, o owner.Owner, id uuid.UUID, values []any, same string) {
	insert, room, conflict := k.insertion(o)
	if same != "" {
		room += k.sql(o, " and not exists (select from {k} y where y.tenant_id = app.tenant() and y.{id} = o.id and "+same+")")
	}
	b.Queue(insert+" and "+room+conflict, append([]any{id}, values...)...)
	if k.table == ids.table { // it was looked at just now
		b.Queue(o.SQL("update external_id x set last_synced_at = now() where x.tenant_id = app.tenant() and x.{id} = $1 and x.source = $2"), id, values[0])
	}
}

package reference

import (
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/owner"
)

// Given holds the references of a series or book that a plugin provides, in the form of user input.
type Given struct {
	Titles  []TitleBody // for a series
	IDs     []IDBody
	Links   []LinkBody
	Ratings []RatingBody // for a series
}

// Check removes entries that would be invalid as user input, and keeps only the last one per service.
func (g *Given) Check() {
	g.Titles = valid(g.Titles, (*TitleBody).values, func(t *TitleBody) (string, bool) { return t.Title, short(t.Label, 100) && short(t.Title, 500) })
	g.IDs = valid(g.IDs, (*IDBody).values, func(i *IDBody) (string, bool) {
		return i.Source, short(i.Source, 100) && short(i.ExternalID, 500) && (i.ExternalURL == nil || short(*i.ExternalURL, 2000))
	})
	g.Links = valid(g.Links, (*LinkBody).values, func(l *LinkBody) (string, bool) { return l.SourceName, short(l.SourceName, 100) && short(l.URL, 2000) })
	g.Ratings = valid(g.Ratings, (*RatingBody).values, func(r *RatingBody) (string, bool) { return r.SourceName, short(r.SourceName, 100) })
}

// short reports whether a text is not empty and has at most that many characters.
func short(text string, most int) bool {
	return text != "" && len(text) <= 4*most && utf8.RuneCountInString(text) <= most
}

// valid returns the valid entries, up to the limit for users; of entries with the same name, the last one.
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

// QueueGivenSeries adds references to a series, which the batch has locked: titles that it lacks, and per service an
// id, page and rating, which replace the old ones. Entries beyond the limit are dropped.
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

// queueGiven inserts one like add. For a kind that allows several, it does nothing if a row y matches the condition
// same.
func (k kind[T]) queueGiven(b *pgx.Batch, o owner.Owner, id uuid.UUID, values []any, same string) {
	insert, room, conflict := k.insertion(o)
	if same != "" {
		room += k.sql(o, " and not exists (select from {k} y where y.tenant_id = app.tenant() and y.{id} = o.id and "+same+")")
	}
	b.Queue(insert+" and "+room+conflict, append([]any{id}, values...)...)
	if k.table == ids.table { // its limit was just checked
		b.Queue(fmt.Sprintf("update external_id x set last_synced_at = now() where x.tenant_id = app.tenant() and x.%s = $1 and x.source = $2", o.column), id, values[0])
	}
}

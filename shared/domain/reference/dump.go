package reference

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
)

// ID is the short form of an ExternalID.
type ID struct {
	Source      string  `json:"source" db:"source" doc:"Name of the service, for example comicinfo"`
	ExternalID  string  `json:"externalId" db:"external_id"`
	ExternalURL *string `json:"externalUrl" db:"external_url"`
}

// queueAll adds the select for several series to the batch; series is SQL of an array of their ids. load returns the
// result by series.
func (k kind[T]) queueAll(b *pgx.Batch, series string, of func(*T) uuid.UUID) (load func() map[uuid.UUID][]T) {
	var rows []T
	db.All(b, &rows, "select "+k.all()+" from "+k.table+" x where x.tenant_id = app.tenant() and x.series_id = any"+series+" order by x."+k.columns[0].name+", x.id")
	return func() map[uuid.UUID][]T {
		out := map[uuid.UUID][]T{}
		for _, r := range rows {
			out[of(&r)] = append(out[of(&r)], r)
		}
		return out
	}
}

// QueueAll adds the selects of all references of several series to the batch; series is SQL of an array of their ids,
// in parentheses. load returns them by series after the batch has run.
func QueueAll(b *pgx.Batch, series string) (load func() func(uuid.UUID) OfSeries) {
	ofTitles := titles.queueAll(b, series, func(t *Title) uuid.UUID { return t.SeriesID })
	ofIDs := ids.queueAll(b, series, func(i *ExternalID) uuid.UUID { return *i.SeriesID })
	ofLinks := links.queueAll(b, series, func(l *Link) uuid.UUID { return *l.SeriesID })
	ofRatings := ratings.queueAll(b, series, func(r *Rating) uuid.UUID { return r.SeriesID })
	return func() func(uuid.UUID) OfSeries {
		titles, ids, links, ratings := ofTitles(), ofIDs(), ofLinks(), ofRatings()
		return func(id uuid.UUID) OfSeries {
			return OfSeries{append([]Title{}, titles[id]...), append([]ExternalID{}, ids[id]...), append([]Link{}, links[id]...), append([]Rating{}, ratings[id]...)}
		}
	}
}

// QueueAllIDs adds the select of the external ids of several series to the batch; series is SQL of an array of their
// ids, in parentheses.
func QueueAllIDs(b *pgx.Batch, series string) (load func() map[uuid.UUID][]ID) {
	var rows []struct {
		SeriesID uuid.UUID `db:"series_id"`
		ID
	}
	db.All(b, &rows, "select series_id, source, external_id, external_url from external_id where tenant_id = app.tenant() and series_id = any"+series+" order by source, id")
	return func() map[uuid.UUID][]ID {
		out := map[uuid.UUID][]ID{}
		for _, r := range rows {
			out[r.SeriesID] = append(out[r.SeriesID], r.ID)
		}
		return out
	}
}

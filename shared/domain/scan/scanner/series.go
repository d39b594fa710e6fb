package scanner

import (
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/analysis"
	"github.com/longbox/longbox/shared/domain/library"
	"github.com/longbox/longbox/shared/domain/strategy"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// strategies are the columns of a library with its strategies.
type strategies struct {
	SeriesStrategy string          `db:"series_strategy"`
	SeriesConfig   json.RawMessage `db:"series_config"`
	BookStrategy   string          `db:"book_strategy"`
	BookConfig     json.RawMessage `db:"book_config"`
	NumberStrategy string          `db:"number_strategy"`
	NumberConfig   json.RawMessage `db:"number_config"`
}

const strategyColumns = "l.series_strategy, l.series_config, l.book_strategy, l.book_config, l.number_strategy, l.number_config"

func (s strategies) set() (*strategy.Set, error) {
	set, bad := strategy.New(strategy.Options{Series: s.SeriesStrategy, SeriesConfig: s.SeriesConfig, Book: s.BookStrategy,
		BookConfig: s.BookConfig, Number: s.NumberStrategy, NumberConfig: s.NumberConfig})
	if len(bad) > 0 { // validated when the library was saved, possibly by another version
		return nil, fault.New(fault.BadRequest, "The library's strategies are not valid: %s %s; change the library", bad[0].Field, bad[0].Message)
	}
	return set, nil
}

// queueSeries inserts the missing series with the metadata from their folders. After books were added to them,
// queueAdded must be called with the ids that were intended for them.
func queueSeries(b *pgx.Batch, libraryID uuid.UUID, rules []library.TitleRule, places []strategy.Place) (ids []uuid.UUID) {
	var paths, names, titles, sorts, searches []string
	var publishers, imprints, authors, extras []*string
	seen := map[string]bool{}
	for _, p := range places {
		if seen[p.Path] {
			continue
		}
		seen[p.Path] = true
		title := library.CleanTitle(rules, p.Name)
		ids, paths, names = append(ids, uuid.Must(uuid.NewV7())), append(paths, p.Path), append(names, p.Name)
		titles, sorts, searches = append(titles, title), append(sorts, naming.SortTitle(title)), append(searches, naming.Normalize(title))
		publishers, imprints = append(publishers, nonEmpty(p.Publisher)), append(imprints, nonEmpty(p.Imprint))
		authors, extras = append(authors, authorJSON(p.Author)), append(extras, objectJSON(p.Extra))
	}
	b.Queue(`insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title, publisher, imprint, authors, custom_metadata)
		select app.tenant(), u.id, $1, u.path, u.name, u.title, u.sort, u.search, u.publisher, u.imprint, u.authors::jsonb, u.extra::jsonb
		from unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[])
		  as u(id, path, name, title, sort, search, publisher, imprint, authors, extra)
		on conflict (tenant_id, library_id, path) do nothing`, libraryID, ids, paths, names, titles, sorts, searches, publishers, imprints, authors, extras)
	return ids
}

// queueAdded counts the series that were added for books, and deletes those that got none: another worker was first
// with the books, and has put them elsewhere. created receives the ids of the others.
func queueAdded(b *pgx.Batch, scanID *uuid.UUID, ids []uuid.UUID, created *[]uuid.UUID) {
	b.Queue(`delete from series s where s.tenant_id = app.tenant() and s.id = any($1)
		and not exists (select from book k where k.tenant_id = app.tenant() and k.series_id = s.id)`, ids)
	db.Values(b, created, `with added as (select id from series where tenant_id = app.tenant() and id = any($1)),
		counted as (
		  update scan set series_created = series_created + (select count(*) from added)
		  where tenant_id = app.tenant() and id = $2)
		select id from added`, ids, scanID)
}

func authorJSON(name string) *string {
	if name == "" {
		return nil
	}
	return new(toJSON([]analysis.Author{{Name: name, Role: "writer"}}))
}

func objectJSON(m map[string]string) *string {
	if len(m) == 0 {
		return nil
	}
	return new(toJSON(m))
}

// toJSON encodes a value that can always be encoded.
func toJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("%T cannot be written as JSON: %v", v, err))
	}
	return string(data)
}

package migrations_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/migrations"
	"github.com/longbox/longbox/shared/testkit"
)

// Names that older programs took from files are composed when the schema is brought up to date, and of the same genre
// or tag there is one.
func TestStoredNamesAreComposed(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	tenant, library, series, book := d.Tenant(t, "one"), uuid.New(), uuid.New(), uuid.New()
	d.Exec(t, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'Books', '/books', 'books', '', 'series_volume', 'metadata_first', 'smart')`, tenant, library)
	d.Exec(t, `insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title, publisher, authors)
		values ($1, $2, $3, 'S', 'S', 'S', 'S', 's', E'E\u0301d', E'[{"name": "Rene\u0301", "role": "writer"}]')`, tenant, series, library)
	d.Exec(t, `insert into alternate_title (tenant_id, id, series_id, label, title) values ($1, gen_random_uuid(), $2, 'Alternate', E'E\u0301te\u0301')`, tenant, series)
	d.Exec(t, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title)
		values ($1, $2, $3, $4, 'S/1.cbz', 1, now(), 'cbz', '1', '1', '1')`, tenant, book, library, series)
	d.Exec(t, `insert into book_metadata (tenant_id, book_id, metadata) values ($1, $2, E'{"genres": ["Come\u0301die", "Drama"], "year": 2000, "summary": "\\n\u0303",
		"authors": [{"name": "Rene\u0301", "role": "writer"}], "customMetadata": {"by": "Rene\u0301"}}')`, tenant, book)
	for _, kind := range []string{"genre", "tag"} {
		d.Exec(t, strings.ReplaceAll(`insert into {t} (tenant_id, id, name) values ($1, gen_random_uuid(), 'comédie'), ($1, gen_random_uuid(), E'Come\u0301die'),
			($1, gen_random_uuid(), E'E\u0301te\u0301'), ($1, gen_random_uuid(), E'\u00e9te\u0301'), ($1, gen_random_uuid(), 'Drama')`, "{t}", kind), tenant)
		d.Exec(t, strings.ReplaceAll(`insert into series_{t} (tenant_id, series_id, {t}_id) select tenant_id, $1, id from {t}`, "{t}", kind), series)
		d.Exec(t, strings.ReplaceAll(`insert into book_{t} (tenant_id, book_id, {t}_id) select tenant_id, $1, id from {t} where name is not nfc normalized`, "{t}", kind), book)
	}
	file, err := migrations.FS.ReadFile("00106_composed.sql")
	if err != nil {
		t.Fatal(err)
	}
	up, _, _ := strings.Cut(string(file), "-- +goose Down")
	for range 2 { // the second time, nothing is left to do
		d.Exec(t, up)
		for _, kind := range []string{"genre", "tag"} {
			for _, of := range []string{"series", "book"} {
				want := []string{"comédie", "drama", "été"}
				if of == "book" {
					want = []string{"comédie", "été"}
				}
				rows, err := d.Owner.Pool().Query(t.Context(), strings.NewReplacer("{t}", kind, "{o}", of).Replace(
					`select lower(g.name) from {t} g left join {o}_{t} x on x.{t}_id = g.id where x.{t}_id is not null or '{o}' = 'series' order by 1`))
				if err != nil {
					t.Fatal(err)
				}
				if got, err := pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || !slices.Equal(got, want) {
					t.Errorf("%s of %s: %q, %v", kind, of, got, err)
				}
			}
		}
		var got string
		if err := d.Owner.Pool().QueryRow(t.Context(), `select concat_ws('|', s.publisher, s.authors->0->>'name', a.title, a.search_title, m.metadata->'genres'->>0, m.metadata->'authors'->0->>'name',
			m.metadata->>'year', m.metadata->>'summary' = E'\n\u0303', m.metadata->'customMetadata'->>'by' = E'Rene\u0301')
			from series s, alternate_title a, book_metadata m`).Scan(&got); err != nil || got != "Éd|René|Été|ete|Comédie|René|2000|t|t" {
			t.Errorf("%q, %v", got, err)
		}
	}
}

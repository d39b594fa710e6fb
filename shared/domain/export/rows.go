package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// batch is the number of series or books per query.
const batch = 200

// cursor is the last row read; its zero value is before the first.
type cursor struct {
	Title  string    `json:"title" db:"title_sort"` // of the series
	Series uuid.UUID `json:"series" db:"series_id"`
	// For books, also the last book of that series.
	Number *float64  `json:"number" db:"number"`
	Book   string    `json:"book" db:"book_sort"` // sort title
	ID     uuid.UUID `json:"id" db:"id"`
}

// row is a series or book with the values of the chosen fields.
type row struct {
	cursor
	Values []byte `db:"values"` // a JSON array
}

// decode returns the values; a number is a json.Number, a list a []any.
func (r *row) decode() (out []any, err error) {
	d := json.NewDecoder(bytes.NewReader(r.Values))
	d.UseNumber()
	if err := d.Decode(&out); err != nil {
		return nil, fmt.Errorf("values of %s: %w", r.ID, err)
	}
	return out, nil
}

func valuesOf(fields []field) string {
	sql := make([]string, len(fields))
	for i, f := range fields {
		sql[i] = f.sql
	}
	return "convert_to(jsonb_build_array(" + strings.Join(sql, ", ") + ")::text, 'UTF8') as values"
}

// seriesSQL selects a batch of series in the libraries $1 (empty: all), by title, after title $2 and id $3.
func seriesSQL(fields []field) string {
	return "select s.title_sort, s.id as series_id, null::double precision as number, '' as book_sort, s.id, " + valuesOf(fields) + fmt.Sprintf(`
		from (select x.* from series x where x.tenant_id = app.tenant() and (x.title_sort, x.id) > ($2::text, $3::uuid)
		  and (cardinality($1::uuid[]) = 0 or x.library_id = any($1)) order by x.title_sort, x.id limit %d) s
		join lateral (select x.id, x.name, x.path from library x where x.tenant_id = app.tenant() and x.id = s.library_id limit 1) l on true
		order by s.title_sort, s.id`, batch)
}

// booksSQL selects a batch of books of those series, series by series in their order, after number $4, title $5 and id
// $6 in the series $3.
func booksSQL(fields []field) string {
	return "select s.title_sort, b.series_id, b.number, b.title_sort as book_sort, b.id, " + valuesOf(fields) + fmt.Sprintf(`
		from (select y.* from (select x.id, x.title_sort from series x where x.tenant_id = app.tenant() and (x.title_sort, x.id) >= ($2::text, $3::uuid)
		    and (cardinality($1::uuid[]) = 0 or x.library_id = any($1)) order by x.title_sort, x.id) o
		  cross join lateral (select x.* from book x where x.tenant_id = app.tenant() and x.series_id = o.id and x.deleted_at is null
		    and (o.id <> $3 or (coalesce(x.number, 'Infinity'), x.title_sort, x.id) > (coalesce($4::double precision, 'Infinity'), $5::text, $6::uuid))
		    order by coalesce(x.number, 'Infinity'), x.title_sort, x.id limit %[1]d) y
		  order by o.title_sort, o.id, coalesce(y.number, 'Infinity'), y.title_sort, y.id limit %[1]d) b
		join lateral (select x.id, x.title, x.title_sort from series x where x.tenant_id = app.tenant() and x.id = b.series_id limit 1) s on true
		join lateral (select x.id, x.name, x.path from library x where x.tenant_id = app.tenant() and x.id = b.library_id limit 1) l on true
		left join lateral (select x.metadata from book_metadata x where x.tenant_id = app.tenant() and x.book_id = b.id limit 1) m on true
		left join lateral (select x.current_page, x.percentage, x.completed, x.started_at, x.completed_at, x.updated_at from progress x
		  where x.tenant_id = app.tenant() and x.account_id = app.account() and x.book_id = b.id limit 1) p on true
		order by s.title_sort, s.id, coalesce(b.number, 'Infinity'), b.title_sort, b.id`, batch)
}

package komga

import (
	"context"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// maxValues is the maximum number of values in a list.
const maxValues = "5000"

// values registers the lists of existing values for filters.
func values(a *httpapi.API, d *db.DB) {
	for _, v := range []struct{ path, id, summary, sql string }{
		{"genres", "ListGenres", "List the genres of the series", usedSQL("series", "genre")},
		{"tags", "ListTags", "List the tags of the series", usedSQL("series", "tag")},
		{"tags/series", "ListSeriesTags", "List the tags of the series (alias of /tags)", usedSQL("series", "tag")},
		{"tags/book", "ListBookTags", "List the tags of the books, which are their genres", usedSQL("book", "genre")},
		{"sharing-labels", "ListSharingLabels", "List the sharing labels; always empty", "select '' where false"},
		{"series/release-dates", "ListReleaseDates", "List the years of the series, latest first", `select v::text from (select distinct year as v from series
			where tenant_id = app.tenant() and year is not null) s order by s.v desc`},
		{"publishers", "ListPublishers", "List the publishers of the series", ofSeriesSQL("publisher")},
		{"languages", "ListLanguages", "List the languages of the series", ofSeriesSQL("language")},
		{"age-ratings", "ListAgeRatings", "List the age ratings of the series", `select v::text from (select distinct age_rating as v from series
			where tenant_id = app.tenant() and age_rating is not null) s order by s.v`},
	} {
		httpapi.Register(a, operation("GET", "/v1/"+v.path, v.id, v.summary, auth.SeriesRead),
			func(ctx context.Context, _ *At) (*[]string, error) {
				out, err := db.ListValues[string](ctx, d, v.sql+" limit "+maxValues)
				return &out, err
			})
	}
	httpapi.Register(a, operation("GET", "/v1/authors", "ListAuthors", "List the authors of the series by name", auth.SeriesRead),
		func(ctx context.Context, in *struct {
			At
			AuthorFilter
		}) (*[]Author, error) {
			found, err := authors(ctx, d, in.AuthorFilter)
			return &found, err
		})
	httpapi.Register(a, operation("GET", "/v2/authors", "ListAuthorPages", "List the authors of the series by name, in pages", auth.SeriesRead),
		func(ctx context.Context, in *struct {
			At
			Paging
			AuthorFilter
		}) (*Page[Author], error) {
			found, err := authors(ctx, d, in.AuthorFilter)
			if err != nil {
				return nil, err
			}
			return paged(in.Paging, found), nil
		})
}

// usedSQL selects the names of genres or tags (table) that are used by series or books (owner).
func usedSQL(owner, table string) string {
	return "select t.name from " + table + " t where t.tenant_id = app.tenant() and " + book.HasTerm(owner, table) + " order by t.name collate natural_order"
}

// ofSeriesSQL selects the distinct values of a column of series.
func ofSeriesSQL(column string) string {
	return `select v from (select distinct ` + column + ` as v from series where tenant_id = app.tenant() and ` + column + ` <> '') s order by v collate natural_order`
}

// AuthorFilter filters a list of authors.
type AuthorFilter struct {
	Search    string   `query:"search" maxLength:"1000" doc:"Only those whose name contains this text"`
	Role      string   `query:"role" maxLength:"100"`
	LibraryID []string `query:"libraryId,explode"`
}

// authors returns the people of the series with their roles.
func authors(ctx context.Context, d *db.DB, f AuthorFilter) ([]Author, error) {
	role, libraries := f.Role, separated(f.LibraryID)
	if role == "cover" {
		role = "cover_artist"
	}
	if err := ids("libraryId", libraries); err != nil {
		return nil, err
	}
	found, err := db.List[Author](ctx, d, `select name, role from (
		  select distinct a ->> 'name' as name, coalesce(a ->> 'role', 'author') as role from series s
		  cross join lateral jsonb_array_elements(case jsonb_typeof(s.authors) when 'array' then s.authors else '[]' end) a
		  where s.tenant_id = app.tenant() and ($3::uuid[] is null or s.library_id = any($3))) a
		where name <> '' and ($1 = '' or strpos(lower(name), $1) > 0) and ($2 = '' or role = $2)
		order by name collate natural_order, role limit `+maxValues, strings.ToLower(norm.NFC.String(f.Search)), role, libraries)
	return roles(found), err
}

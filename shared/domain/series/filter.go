package series

import (
	"fmt"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/filter"
)

var fields = filter.Schema{
	"libraryId":  {Type: filter.UUID, Column: "s.library_id"},
	"name":       {Type: filter.Text, Column: "s.title"},
	"title":      {Type: filter.Text, Column: "s.title"},
	"titleSort":  {Type: filter.Text, Column: "s.title_sort"},
	"summary":    {Type: filter.Text, Column: "s.summary"},
	"status":     {Type: filter.Text, Column: "s.status"},
	"publisher":  {Type: filter.Text, Column: "s.publisher"},
	"language":   {Type: filter.Text, Column: "s.language"},
	"year":       {Type: filter.Number, Column: "s.year"},
	"ageRating":  {Type: filter.Number, Column: "s.age_rating"},
	"dateAdded":  {Type: filter.Date, Column: "s.created_at"},
	"genre":      book.TermField("series", "genre", "s.id"),
	"tag":        book.TermField("series", "tag", "s.id"),
	"sharingTag": sharingTag(),
	"author": {Type: filter.Text, Column: "a.value ->> 'name'",
		Among: "exists (select from jsonb_array_elements(case jsonb_typeof(s.authors) when 'array' then s.authors else '[]' end) a where %s)"},
	"path":         path(),
	"completion":   {Type: filter.Bool, Column: "(s.book_count >= s.total_volume_count)"},
	"collectionId": book.MemberField("series_id", "s.id"),
	"userRating": {Type: filter.Number, Column: "r.rating", Among: `s.id in (select r.series_id from series_rating r
		where r.tenant_id = app.tenant() and r.account_id = app.account() and %s)`},
	"hasUserRating": {Type: filter.Bool, Column: `(s.id in (select r.series_id from series_rating r
		where r.tenant_id = app.tenant() and r.account_id = app.account()))`},
	"communityRating": {Type: filter.Number, Column: "avg(r.rating)", Among: `s.id in (select r.series_id from series_rating r
		where r.tenant_id = app.tenant() group by r.series_id having %s)`},
	"wantToRead":          book.WantedField("series_id", "s.id"),
	"inCollection":        book.InAnyField("collection_member", "series_id", "s.id"),
	"hasExternalSourceId": book.InAnyField("external_id", "series_id", "s.id"),
	"isTracked":           {Type: filter.Bool, Column: "(s.id in (select t.series_id from series_tracking t where t.tenant_id = app.tenant() and t.tracked))"},
	"readStatus":          {Type: filter.Enum, Values: book.ReadStatus, Custom: readStatus},
}

// path filters by Folder: a series whose files are all over its library has the path of the library.
func path() filter.Field {
	f := book.PathField("s.library_id", "s.path")
	all := "(select jsonb_object_agg(l.id, l.path) from library l where l.tenant_id = app.tenant()) ->> s.library_id::text"
	f.Column = "case when s.path like '/%' then " + all + " else " + f.Column + " end"
	return f
}

// sharingTag filters by sharing tag. For callers who are no administrators it matches every series.
func sharingTag() filter.Field {
	f := book.TermField("series", "sharing_tag", "s.id")
	f.Only = "app.administers()"
	return f
}

// readStatus starts from the few series that the caller has progress in, not from all series. Their books are counted
// once, not per series.
func readStatus(_ *filter.Builder, op string, value any) (string, error) {
	const (
		begun = "s.id in (select r.series_id from (" + read + ") r where r.begun)"
		whole = "(s.id, s.book_count) in (select r.series_id, r.done from (" + read + ") r where r.begun)"
	)
	sql := map[string]string{
		"read":        whole,
		"in_progress": begun + " and not " + whole,
		"unread":      "not " + begun,
	}[value.(string)]
	if op == "isNot" {
		sql = "not (" + sql + ")"
	}
	return sql, nil
}

// TermsInput narrows a list to the series that have all the named genres and tags.
type TermsInput struct {
	Genres string `query:"genres" maxLength:"2000" doc:"Only series that have all of these genres: at most 50 names separated by commas, case-insensitive"`
	Tags   string `query:"tags" maxLength:"2000" doc:"Only series that have all of these tags: at most 50 names separated by commas, case-insensitive"`
}

const maxTerms = 50

// narrow adds the genres and tags to a scope that has no condition yet. It starts from the series that have any of them
// and counts genres and tags together: given one condition each, Postgres takes both for rare and compares every series
// of one with every series of the other. Names are unique among genres and among tags, so a series has all terms if the
// count matches. Only the database lowers names: its lower() differs slightly from Go's.
func (in TermsInput) narrow(s scope) (scope, error) {
	var having, number []string
	for _, t := range []struct{ field, table, list string }{{"genres", "genre", in.Genres}, {"tags", "tag", in.Tags}} {
		var names []string
		for name := range strings.SplitSeq(norm.NFC.String(t.list), ",") {
			if name = strings.TrimSpace(name); name != "" {
				names = append(names, name)
			}
		}
		if len(names) > maxTerms {
			return s, fault.Invalid(t.field, "has %d names, at most %d are allowed", len(names), maxTerms)
		}
		if names == nil {
			continue
		}
		s.args = append(s.args, names)
		from := fmt.Sprintf("from unnest($%d::text[]) n", len(s.args))
		having = append(having, fmt.Sprintf(`select x.series_id from %[1]s t join series_%[1]s x on x.tenant_id = app.tenant() and x.%[1]s_id = t.id
		    where t.tenant_id = app.tenant() and lower(t.name) in (select lower(n) %[2]s)`, t.table, from))
		number = append(number, "(select count(distinct lower(n)) "+from+")")
	}
	if having != nil {
		s.where = "s.id in (select x.series_id from (" + strings.Join(having, " union all ") + `) x
		  group by x.series_id having count(*) = ` + strings.Join(number, " + ") + ")"
	}
	return s, nil
}

package export

import (
	"slices"

	"github.com/longbox/longbox/shared/domain/progress"
)

// field is a Field with the SQL of its value.
type field struct {
	Field
	sql string
}

func one(key, label, sql string) field { return field{Field: Field{Key: key, Label: label}, sql: sql} }

func several(key, label, sql string) field {
	f := one(key, label, sql)
	f.MultiValue = true
	return f
}

func anchor(f field) field { f.IsAnchor = true; return f }

func own(f field) field { f.UserSpecific = true; return f }

func find(all []field, key string) *field {
	if i := slices.IndexFunc(all, func(f field) bool { return f.Key == key }); i >= 0 {
		return &all[i]
	}
	return nil
}

// chosen returns the anchors, then the fields with these keys; keys that no longer exist are ignored.
func chosen(all []field, keys []string) []field {
	var out []field
	for _, f := range all {
		if f.IsAnchor {
			out = append(out, f)
		}
	}
	for _, k := range keys {
		if f := find(all, k); f != nil && !f.IsAnchor {
			out = append(out, *f)
		}
	}
	return out
}

// moment is SQL for a time in the API's format, to the second.
func moment(sql string) string {
	return "to_char((" + sql + ") at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"
}

// array is SQL for an array of texts from a select of one column v.
func array(sql string) string {
	return "coalesce((select jsonb_agg(v) from (" + sql + ") x where v is not null), '[]')"
}

// people is SQL for the authors in an array document.
func people(sql string) string {
	return array("select a.n ->> 'name' || coalesce(' (' || (a.n ->> 'role') || ')', '') as v from jsonb_array_elements(case jsonb_typeof(" + sql +
		") when 'array' then " + sql + " else '[]' end) with ordinality a(n, nth) order by a.nth")
}

const (
	// read and begun count books of the series s by the caller's progress.
	read   = "(select count(*) from book b join progress p on p.tenant_id = b.tenant_id and p.account_id = app.account() and p.book_id = b.id where b.tenant_id = app.tenant() and b.series_id = s.id and b.deleted_at is null and p.completed)"
	begun  = "(select count(*) from book b join progress p on p.tenant_id = b.tenant_id and p.account_id = app.account() and p.book_id = b.id where b.tenant_id = app.tenant() and b.series_id = s.id and b.deleted_at is null and not p.completed and p.current_page > 0)"
	last   = "(select max(p.updated_at) from book b join progress p on p.tenant_id = b.tenant_id and p.account_id = app.account() and p.book_id = b.id where b.tenant_id = app.tenant() and b.series_id = s.id and b.deleted_at is null)"
	folder = "case when s.path = '' or left(s.path, 1) = '/' then l.path else regexp_replace(l.path, '/$', '') || '/' || s.path end"
	rating = " from series_rating r where r.tenant_id = app.tenant() and r.account_id = app.account() and r.series_id = s.id)"
)

// of is SQL for a list of what belongs to the series s, sorted ignoring case as in other lists.
func of(column, from string) string {
	return array("select " + column + " as v from " + from + " where x.tenant_id = app.tenant() and x.series_id = s.id order by " + column + " collate natural_order")
}

// seriesFields are the fields of series s in library l.
var seriesFields = []field{
	anchor(one("id", "ID", "s.id")),
	anchor(one("title", "Title", "s.title")),
	one("titleSort", "Sorted by", "s.title_sort"),
	several("alternateTitles", "Other titles", of("x.title", "alternate_title x")),
	one("libraryId", "Library ID", "l.id"),
	one("libraryName", "Library", "l.name"),
	one("path", "Path", folder),
	one("summary", "Summary", "s.summary"),
	one("publisher", "Publisher", "s.publisher"),
	one("imprint", "Imprint", "s.imprint"),
	one("status", "Status", "s.status"),
	one("year", "Year", "s.year"),
	one("language", "Language", "s.language"),
	one("ageRating", "Age rating", "s.age_rating"),
	one("readingDirection", "Reading direction", "s.reading_direction"),
	one("totalVolumeCount", "Volumes published", "s.total_volume_count"),
	one("totalChapterCount", "Chapters published", "s.total_chapter_count"),
	several("authors", "Authors", people("s.authors")),
	several("genres", "Genres", of("g.name", "series_genre x join genre g on g.tenant_id = x.tenant_id and g.id = x.genre_id")),
	several("tags", "Tags", of("g.name", "series_tag x join tag g on g.tenant_id = x.tenant_id and g.id = x.tag_id")),
	several("externalIds", "External IDs", of("x.source || ':' || x.external_id", "external_id x")),
	several("externalLinks", "Links", of("x.url", "external_link x")),
	one("externalRating", "External rating", "(select round(avg(x.rating)::numeric, 1) from external_rating x where x.tenant_id = app.tenant() and x.series_id = s.id)"),
	one("communityRating", "Average rating", "(select round(avg(x.rating), 1) from series_rating x where x.tenant_id = app.tenant() and x.series_id = s.id)"),
	one("bookCount", "Books", "s.book_count"),
	one("pageCount", "Pages", "s.page_count"),
	one("fileSize", "Bytes", "s.file_size"),
	one("createdAt", "Added", moment("s.created_at")),
	one("updatedAt", "Changed", moment("s.updated_at")),
	own(one("userRating", "My rating", "(select r.rating"+rating)),
	own(one("userNotes", "My notes", "(select r.notes"+rating)),
	own(one("wantToRead", "Want to read", "exists (select from wanted w where w.tenant_id = app.tenant() and w.account_id = app.account() and w.series_id = s.id)")),
	own(one("readStatus", "Read", "case when s.book_count > 0 and "+read+" >= s.book_count then 'read' when "+read+" + "+begun+" > 0 then 'in_progress' else 'unread' end")),
	own(one("booksRead", "Books read", read)),
	own(one("booksInProgress", "Books begun", begun)),
	own(one("booksUnread", "Books unread", "greatest(s.book_count - "+read+", 0)")),
	own(one("lastReadAt", "Last read", moment(last))),
}

// bookFields are the fields of book b in series s and library l, with metadata m and the caller's progress p.
var bookFields = []field{
	anchor(one("id", "ID", "b.id")),
	anchor(one("title", "Title", "b.title")),
	one("titleSort", "Sorted by", "b.title_sort"),
	one("seriesId", "Series ID", "s.id"),
	anchor(one("seriesTitle", "Series", "s.title")),
	one("libraryId", "Library ID", "l.id"),
	one("libraryName", "Library", "l.name"),
	one("path", "Path", "regexp_replace(l.path, '/$', '') || '/' || b.key"),
	one("number", "Number", "b.number"),
	one("volume", "Volume", "b.volume"),
	one("chapter", "Chapter", "b.chapter"),
	one("subtitle", "Subtitle", "m.metadata ->> 'subtitle'"),
	one("summary", "Summary", "m.metadata ->> 'summary'"),
	one("publisher", "Publisher", "m.metadata ->> 'publisher'"),
	one("imprint", "Imprint", "m.metadata ->> 'imprint'"),
	one("language", "Language", "m.metadata ->> 'languageIso'"),
	one("bookType", "Type", "m.metadata ->> 'bookType'"),
	one("isbns", "ISBN", "m.metadata ->> 'isbns'"),
	one("year", "Year", "m.metadata -> 'year'"),
	one("month", "Month", "m.metadata -> 'month'"),
	one("day", "Day", "m.metadata -> 'day'"),
	several("authors", "Authors", people("m.metadata -> 'authors'")),
	several("subjects", "Subjects", array("select a.v from jsonb_array_elements_text(case jsonb_typeof(m.metadata -> 'subjects') when 'array' then m.metadata -> 'subjects' else '[]' end) with ordinality a(v, nth) order by a.nth")),
	one("fileFormat", "Format", "b.format"),
	one("fileSize", "Bytes", "b.size"),
	one("pageCount", "Pages", "b.page_count"),
	one("createdAt", "Added", moment("b.created_at")),
	one("updatedAt", "Changed", moment("b.updated_at")),
	own(one("wantToRead", "Want to read", "exists (select from wanted w where w.tenant_id = app.tenant() and w.account_id = app.account() and w.book_id = b.id)")),
	own(one("readStatus", "Read", "case when p.completed then 'read' when p.current_page > 0 then 'in_progress' else 'unread' end")),
	own(one("currentPage", "At page", "p.current_page")),
	own(one("progressPercentage", "Progress", "case when p.current_page is not null then "+progress.PercentageSQL+" end")),
	own(one("startedAt", "Begun", moment("p.started_at"))),
	own(one("completedAt", "Completed", moment("p.completed_at"))),
	own(one("lastReadAt", "Last read", moment("p.updated_at"))),
	own(one("readCount", "Times read", "(select count(*) from completion c where c.tenant_id = app.tenant() and c.account_id = app.account() and c.book_id = b.id and not c.forgotten)")),
}

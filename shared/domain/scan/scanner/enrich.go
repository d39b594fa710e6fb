package scanner

import (
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/analysis"
	"github.com/longbox/longbox/shared/domain/taxonomy"
	"github.com/longbox/longbox/shared/format/comicinfo"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/db"
)

// offer is a book's metadata for its series.
type offer struct {
	BookID    uuid.UUID         `json:"book_id"`
	Summary   string            `json:"summary,omitempty"`
	Publisher string            `json:"publisher,omitempty"`
	Placed    string            `json:"placed,omitempty"` // publisher from a folder
	Imprint   string            `json:"imprint,omitempty"`
	Language  string            `json:"language,omitempty"`
	Direction string            `json:"direction,omitempty"`
	Year      *int              `json:"year,omitempty"`
	Age       *int              `json:"age,omitempty"`
	Volumes   *int              `json:"volumes,omitempty"`
	Chapters  *int              `json:"chapters,omitempty"`
	Authors   []analysis.Author `json:"authors,omitempty"`
	Writer    *string           `json:"writer,omitempty"` // authors from a folder, as authorJSON writes them
}

// enriched is a series that was changed by its books' metadata.
type enriched struct {
	ID        uuid.UUID `db:"id"`
	LibraryID uuid.UUID `db:"library_id"`
}

// takenSet and takenWhere set the unlocked fields of series s to the values of u, only if that changes something.
var takenSet, takenWhere = func() (set, where string) {
	var sets, wheres []string
	for _, f := range [][3]string{ // column, lock and new value
		{"summary", "summary", "case when u.fill then u.summary else s.summary end"},
		{"publisher", "publisher", "case when u.fill then u.publisher else s.publisher end"},
		{"year", "year", "case when u.fill then u.year else s.year end"},
		{"imprint", "imprint", "coalesce(s.imprint, u.imprint)"},
		{"language", "language", "coalesce(s.language, u.language)"},
		{"reading_direction", "readingDirection", "coalesce(s.reading_direction, u.direction)"},
		{"authors", "authorsJsonLock", "coalesce(u.authors, s.authors)"},
		{"age_rating", "ageRating", "greatest(s.age_rating, u.age)"},
		{"total_volume_count", "totalVolumeCount", "greatest(s.total_volume_count, u.volumes)"},
		{"total_chapter_count", "totalChapterCount", "greatest(s.total_chapter_count, u.chapters)"},
	} {
		sets = append(sets, fmt.Sprintf("%[1]s = case when '%[2]s' = any(s.locks) then s.%[1]s else %[3]s end", f[0], f[1], f[2]))
		wheres = append(wheres, fmt.Sprintf("not '%[2]s' = any(s.locks) and s.%[1]s is distinct from %[3]s", f[0], f[1], f[2]))
	}
	return strings.Join(sets, ", "), strings.Join(wheres, " or ")
}()

// queueSeriesMetadata fills fields of a series from its books. Summary, publisher and year come from its first book,
// all three or none, and only while they are empty and unlocked; a publisher from a folder counts as empty. Imprint,
// language, reading direction and authors also come from the first book, each on its own while it is empty; authors
// also replace those from a folder, as the book is more exact. Age rating and the counts of volumes and chapters are
// the maximum over the books. It returns the changed series.
func queueSeriesMetadata(b *pgx.Batch, found []analyzed, changed *[]enriched) {
	var offers []offer
	for _, a := range found {
		if a.Result == nil {
			continue
		}
		m := a.Metadata
		o := offer{BookID: a.ID, Summary: m.Summary, Publisher: m.Publisher, Placed: a.file.Publisher, Imprint: m.Imprint, Language: m.LanguageISO,
			Direction: a.Direction, Year: m.Year, Age: a.AgeRating, Authors: m.Authors, Writer: authorJSON(a.file.Author)}
		if a.file.Volume != nil && a.file.Chapter == nil {
			o.Volumes = m.Count
		} else {
			o.Chapters = m.Count
		}
		if o.Summary != "" || o.Publisher != "" || o.Imprint != "" || o.Language != "" || o.Direction != "" || o.Year != nil || o.Age != nil ||
			m.Count != nil || len(o.Authors) > 0 {
			offers = append(offers, o)
		}
	}
	if len(offers) == 0 {
		return
	}
	db.All(b, changed, `with told as materialized (
		  select o.*, k.series_id from jsonb_to_recordset($1) as o(book_id uuid, summary text, publisher text, placed text, imprint text, language text,
		    direction text, year integer, age integer, volumes integer, chapters integer, authors jsonb, writer text)
		  join book k on k.tenant_id = app.tenant() and k.id = o.book_id),
		head as materialized ( -- once for each series: one may have very many books
		  select t.series_id, (select f.id from book f where f.tenant_id = app.tenant() and f.series_id = t.series_id and f.deleted_at is null
		    order by app.file_order(f.key) collate natural_order, f.key limit 1) as book_id
		  from (select distinct series_id from told) t),
		offer as (select t.*, t.book_id = h.book_id as first from told t join head h on h.series_id = t.series_id),
		best as (
		  select series_id, max(age) as age, max(volumes) as volumes, max(chapters) as chapters from offer group by 1),
		u as (
		  select s.id, s.summary is null and coalesce(s.publisher, f.placed, '') = coalesce(f.placed, '') and s.year is null as fill, f.summary,
		    coalesce(s.publisher, f.publisher) as publisher, f.year, f.imprint, f.language, f.direction,
		    case when s.authors is null or s.authors = f.writer::jsonb then f.authors end as authors, best.age, best.volumes, best.chapters
		  from best join series s on s.tenant_id = app.tenant() and s.id = best.series_id
		  left join offer f on f.series_id = best.series_id and f.first)
		update series s set `+takenSet+`, updated_at = now()
		from u where s.tenant_id = app.tenant() and s.id = u.id and (`+takenWhere+`)
		returning s.id, s.library_id`, toJSON(offers))
}

// storedAge and storedCount are SQL: the age rating, by the ages $3, and the count in the stored metadata m of a book.
const (
	storedAge = `(select coalesce(($3::jsonb ->> v)::integer, substring(v from '^(\d{1,2})\+?$')::integer)
		    from lower(regexp_replace(m.metadata #>> '{customMetadata,comicinfo,ageRating}', '\s+', '', 'g')) v)`
	storedCount = "(m.metadata ->> 'count')::integer"
)

// queueRefuted lowers the age rating and the counts of series to the maximum over their other books, where only a book
// that says less now, or is in another series, had given them their value; queueSeriesMetadata raises them again. It
// must follow the moves and precede storing the files' metadata. It returns the changed series.
func queueRefuted(b *pgx.Batch, found []analyzed, changed *[]enriched) {
	type row struct {
		ID    uuid.UUID `json:"id"`
		Was   uuid.UUID `json:"was"` // series
		Age   *int      `json:"age"`
		Count *int      `json:"count"`
	}
	var rows []row
	var read, was []uuid.UUID
	for _, a := range found {
		if a.Result != nil && a.bookRow.Fingerprint != "" { // read before
			read, was = append(read, a.ID), append(was, a.SeriesID)
			rows = append(rows, row{a.ID, a.SeriesID, a.AgeRating, a.Metadata.Count})
		}
	}
	if len(rows) == 0 {
		return
	}
	b.Queue("select from series where tenant_id = app.tenant() and id = any($1) order by id for no key update", was) // what people write now must be seen
	db.All(b, changed, `with told as materialized (
		  select u.was as id, max(`+storedAge+`) filter (where not 'customMetadataLock' = any(m.locks)) as age, max(u.age) filter (where u.was = k.series_id) as new_age,
		    max(`+storedCount+`) filter (where not 'countLock' = any(m.locks)) as count, max(u.count) filter (where u.was = k.series_id) as new_count
		  from jsonb_to_recordset($1) as u(id uuid, was uuid, age integer, count integer)
		  join book k on k.tenant_id = app.tenant() and k.id = u.id
		  join book_metadata m on m.tenant_id = app.tenant() and m.book_id = u.id group by 1),
		refuted as materialized (
		  select s.id, s.age_rating = t.age and t.age > coalesce(t.new_age, -1) and not 'ageRating' = any(s.locks || s.described) as age,
		    s.total_volume_count = t.count and t.count > coalesce(t.new_count, -1) and not 'totalVolumeCount' = any(s.locks || s.described) as volumes,
		    s.total_chapter_count = t.count and t.count > coalesce(t.new_count, -1) and not 'totalChapterCount' = any(s.locks || s.described) as chapters
		  from told t join series s on s.tenant_id = app.tenant() and s.id = t.id)
		update series s set age_rating = case when r.age then o.age else s.age_rating end,
		  total_volume_count = case when r.volumes then o.volumes else s.total_volume_count end,
		  total_chapter_count = case when r.chapters then o.chapters else s.total_chapter_count end, updated_at = now()
		from refuted r cross join lateral (
		  select max(`+storedAge+`) as age, max(`+storedCount+`) filter (where k.volume is not null and k.chapter is null) as volumes,
		    max(`+storedCount+`) filter (where k.volume is null or k.chapter is not null) as chapters
		  from book k join book_metadata m on m.tenant_id = app.tenant() and m.book_id = k.id
		  where k.tenant_id = app.tenant() and k.series_id = r.id and k.deleted_at is null and k.id <> all($2)) o
		where s.tenant_id = app.tenant() and s.id = r.id and (r.age or r.volumes or r.chapters)
		returning s.id, s.library_id`, toJSON(rows), read, toJSON(comicinfo.Ages))
}

// mostNames is the maximum number of genres, and of tags, from one file.
const mostNames = 1000

// namesOf returns the valid names of genres or tags, up to the limit.
func namesOf(list []string) (out []string) {
	for _, name := range list {
		if name = naming.Line(name); len(out) < mostNames && taxonomy.ValidName(&name) {
			out = append(out, name)
		}
	}
	return out
}

// queueTaxonomy adds the genres or tags in books' files to the books and their series, unless the set is locked there.
// Books that have changed meanwhile are skipped. It returns the changed series.
func queueTaxonomy(b *pgx.Batch, table, lock string, found []analyzed, of func(*analysis.Result) []string, changed *[]enriched) {
	var books []uuid.UUID
	var revisions []int
	var names []string
	for _, a := range found {
		if a.Result == nil {
			continue
		}
		for _, name := range of(a.Result) {
			books, revisions, names = append(books, a.ID), append(revisions, a.Revision), append(names, name)
		}
	}
	if len(names) == 0 {
		return
	}
	taxonomy.QueueNames(b, table, names, "true")
	db.All(b, changed, `with added as (
		  insert into series_`+table+` (tenant_id, series_id, `+table+`_id)
		  select distinct app.tenant(), s.id, g.id from unnest($1::uuid[], $2::text[]) u(book_id, name)
		  join book k on k.tenant_id = app.tenant() and k.id = u.book_id
		  join `+table+` g on g.tenant_id = app.tenant() and lower(g.name) = lower(u.name)
		  join series s on s.tenant_id = app.tenant() and s.id = k.series_id and not $3 = any(s.locks)
		  on conflict do nothing returning series_id)
		`+ofAdded, books, names, lock)
	b.Queue(`insert into book_`+table+` (tenant_id, book_id, `+table+`_id)
		select distinct app.tenant(), k.id, g.id from unnest($1::uuid[], $2::integer[], $3::text[]) u(book_id, revision, name)
		join book k on k.tenant_id = app.tenant() and k.id = u.book_id and k.revision = u.revision
		join `+table+` g on g.tenant_id = app.tenant() and lower(g.name) = lower(u.name)
		where not exists (select from book_metadata m where m.tenant_id = app.tenant() and m.book_id = k.id and $4 = any(m.locks))
		on conflict do nothing`, books, revisions, names, lock+"Lock")
}

// queueForgotten removes from books the names from the previous version of their files, unless the set is locked;
// queueTaxonomy then adds the current ones. It must precede storing the files' metadata. Books that have changed
// meanwhile are skipped.
func queueForgotten(b *pgx.Batch, table, member string, found []analyzed, of func(*analysis.Result) []string) {
	var books []uuid.UUID
	var revisions []int
	var names []string
	for _, a := range found {
		if a.Result != nil {
			books, revisions, names = append(books, a.ID), append(revisions, a.Revision), append(names, of(a.Result)...)
		}
	}
	if len(books) == 0 {
		return
	}
	b.Queue(`select app.hold_terms($1, array(select lower(n) from unnest($2::text[]) n union select n from book_metadata m
		cross join lateral app.names_in(m.metadata, $3) n where m.tenant_id = app.tenant() and m.book_id = any($4)))`, table, names, member, books)
	b.Queue(`delete from book_`+table+` x using unnest($1::uuid[], $2::integer[]) u(id, revision), book k, book_metadata m, `+table+` g
		where x.tenant_id = app.tenant() and x.book_id = u.id and k.tenant_id = x.tenant_id and k.id = u.id and k.revision = u.revision
		  and m.tenant_id = x.tenant_id and m.book_id = u.id and not $4 = any(m.locks)
		  and g.tenant_id = x.tenant_id and g.id = x.`+table+`_id and lower(g.name) in (select app.names_in(m.metadata, $3))`, books, revisions, member, member+"Lock")
}

// ofAdded selects the series to which rows were added.
const ofAdded = "select distinct s.id, s.library_id from added a join series s on s.tenant_id = app.tenant() and s.id = a.series_id"

// queueAlternateTitles adds alternate titles in books' files to their series, one per kind, unless they are locked. It
// returns the changed series.
func queueAlternateTitles(b *pgx.Batch, found []analyzed, changed *[]enriched) {
	var books, ids []uuid.UUID
	var labels, titles []string
	for _, a := range found {
		if a.Result == nil {
			continue
		}
		for _, t := range a.Titles {
			books, ids = append(books, a.ID), append(ids, uuid.Must(uuid.NewV7()))
			labels, titles = append(labels, t.Label), append(titles, t.Title)
		}
	}
	if len(books) == 0 {
		return
	}
	db.All(b, changed, `with added as (
		  insert into alternate_title (tenant_id, id, series_id, label, title)
		  select distinct on (s.id, u.label) app.tenant(), u.id, s.id, u.label, u.title
		  from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[]) as u(book_id, id, label, title)
		  join book k on k.tenant_id = app.tenant() and k.id = u.book_id
		  join series s on s.tenant_id = app.tenant() and s.id = k.series_id and not 'alternateTitles' = any(s.locks)
		  where not exists (select from alternate_title x where x.tenant_id = app.tenant() and x.series_id = s.id and x.label = u.label)
		  order by s.id, u.label, u.id returning series_id)
		`+ofAdded, books, ids, labels, titles)
}

package komga

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Series is a series in Komga's format.
type Series struct {
	ID                   string         `json:"id"`
	LibraryID            string         `json:"libraryId"`
	Name                 string         `json:"name"`
	URL                  string         `json:"url" doc:"Path of the folder"`
	Created              string         `json:"created"`
	LastModified         string         `json:"lastModified"`
	FileLastModified     string         `json:"fileLastModified"`
	BooksCount           int64          `json:"booksCount"`
	BooksReadCount       int64          `json:"booksReadCount"`
	BooksUnreadCount     int64          `json:"booksUnreadCount"`
	BooksInProgressCount int64          `json:"booksInProgressCount"`
	Metadata             SeriesMetadata `json:"metadata"`
	BooksMetadata        BooksMetadata  `json:"booksMetadata"`
	Deleted              bool           `json:"deleted"`
	Oneshot              bool           `json:"oneshot"`
}

// SeriesMetadata is the metadata of a series; unknown texts are empty.
type SeriesMetadata struct {
	Status               string           `json:"status" enum:"ENDED,ONGOING,HIATUS,ABANDONED"`
	StatusLock           bool             `json:"statusLock"`
	Title                string           `json:"title"`
	TitleLock            bool             `json:"titleLock"`
	TitleSort            string           `json:"titleSort"`
	TitleSortLock        bool             `json:"titleSortLock"`
	Summary              string           `json:"summary"`
	SummaryLock          bool             `json:"summaryLock"`
	ReadingDirection     string           `json:"readingDirection" doc:"LEFT_TO_RIGHT, RIGHT_TO_LEFT, VERTICAL, WEBTOON or empty"`
	ReadingDirectionLock bool             `json:"readingDirectionLock"`
	Publisher            string           `json:"publisher"`
	PublisherLock        bool             `json:"publisherLock"`
	AgeRating            *int32           `json:"ageRating"`
	AgeRatingLock        bool             `json:"ageRatingLock"`
	Language             string           `json:"language"`
	LanguageLock         bool             `json:"languageLock"`
	Genres               []string         `json:"genres" nullable:"false"`
	GenresLock           bool             `json:"genresLock"`
	Tags                 []string         `json:"tags" nullable:"false"`
	TagsLock             bool             `json:"tagsLock"`
	TotalBookCount       *int32           `json:"totalBookCount"`
	TotalBookCountLock   bool             `json:"totalBookCountLock"`
	SharingLabels        []string         `json:"sharingLabels" nullable:"false"`
	SharingLabelsLock    bool             `json:"sharingLabelsLock"`
	Links                []Link           `json:"links" nullable:"false"`
	LinksLock            bool             `json:"linksLock"`
	AlternateTitles      []AlternateTitle `json:"alternateTitles" nullable:"false"`
	AlternateTitlesLock  bool             `json:"alternateTitlesLock"`
	Created              string           `json:"created"`
	LastModified         string           `json:"lastModified"`
}

// BooksMetadata combines the metadata of the books of a series.
type BooksMetadata struct {
	Authors       []Author `json:"authors" nullable:"false"`
	Tags          []string `json:"tags" nullable:"false"`
	ReleaseDate   *string  `json:"releaseDate" format:"date"`
	Summary       string   `json:"summary"`
	SummaryNumber string   `json:"summaryNumber"`
	Created       string   `json:"created"`
	LastModified  string   `json:"lastModified"`
}

// Author is a person and their role.
type Author struct {
	Name string `json:"name"`
	Role string `json:"role"`
}

// Link is an external link.
type Link struct {
	Label string `json:"label"`
	URL   string `json:"url"`
}

// AlternateTitle is an alternate title: another language or another kind.
type AlternateTitle struct {
	Label string `json:"label"`
	Title string `json:"title"`
}

// SeriesFilter filters a list of series.
type SeriesFilter struct {
	Search       string   `query:"search" maxLength:"1000" doc:"Words of the title"`
	LibraryID    []string `query:"libraryId,explode"`
	CollectionID []string `query:"collectionId,explode" doc:"Ids, or want-to-read"`
	ReadStatus   []string `query:"readStatus,explode" doc:"UNREAD, IN_PROGRESS or READ"`
	Status       []string `query:"status,explode" doc:"ENDED, ONGOING, HIATUS or ABANDONED"`
	Publisher    []string `query:"publisher,explode"`
	Language     []string `query:"language,explode"`
	Genre        []string `query:"genre,explode"`
	Tag          []string `query:"tag,explode"`
	Author       []string `query:"author,explode" doc:"A name, or name,role; the role is ignored"`
	Deleted      bool     `query:"deleted" doc:"Series whose files are gone are not kept: true matches no series"`
	Oneshot      bool     `query:"oneshot" doc:"There are no one-shots: true matches no series"`
}

// SeriesSearch is the body of a filtered list; a null field does not filter.
type SeriesSearch struct {
	Condition      json.RawMessage `json:"condition,omitempty" doc:"Tree of allOf, anyOf and leaves {field: {operator, value}}"`
	FullTextSearch *string         `json:"fullTextSearch,omitempty" nullable:"true" maxLength:"1000" doc:"Words of the title"`
	SearchTerm     *string         `json:"searchTerm,omitempty" nullable:"true" maxLength:"1000" doc:"Words of the title, like fullTextSearch"`
	LibraryID      []string        `json:"libraryId,omitempty"`
	CollectionID   []string        `json:"collectionId,omitempty"`
	ReadStatus     []string        `json:"readStatus,omitempty"`
	Status         []string        `json:"status,omitempty"`
	Publisher      []string        `json:"publisher,omitempty"`
	Language       []string        `json:"language,omitempty"`
	Genre          []string        `json:"genre,omitempty"`
	Tag            []string        `json:"tag,omitempty"`
	Deleted        *bool           `json:"deleted,omitempty" nullable:"true"`
	Oneshot        *bool           `json:"oneshot,omitempty" nullable:"true"`
}

// split splits the comma-separated values of a query. Those of a body are whole: names may contain commas.
func (f SeriesFilter) split() SeriesFilter {
	for _, values := range []*[]string{&f.LibraryID, &f.CollectionID, &f.ReadStatus, &f.Status, &f.Publisher, &f.Language, &f.Genre, &f.Tag} {
		*values = separated(*values)
	}
	return f
}

// filter converts the body to query parameters.
func (s SeriesSearch) filter() SeriesFilter {
	return SeriesFilter{LibraryID: s.LibraryID, CollectionID: s.CollectionID, ReadStatus: s.ReadStatus, Status: s.Status, Publisher: s.Publisher,
		Language: s.Language, Genre: s.Genre, Tag: s.Tag, Deleted: s.Deleted != nil && *s.Deleted, Oneshot: s.Oneshot != nil && *s.Oneshot}
}

var seriesFields = map[string]translator{"libraryId": member("libraryId"), "ageRating": ages, "title": same("title"), "titleSort": same("titleSort"), "genre": same("genre"), "tag": same("tag"),
	"publisher": same("publisher"), "language": same("language"), "seriesStatus": seriesStatus, "readStatus": word("readStatus"), "author": author,
	"releaseDate": released("year", time.Time.Year), "deleted": flag, "oneShot": flag, "collectionId": member("collectionId")}

var seriesSorts = map[string]string{"metadata.titleSort": "name", "titleSort": "name", "name": "name", "metadata.title": "name",
	"createdDate": "date_added", "created": "date_added", "dateAdded": "date_added",
	"lastModifiedDate": "date_updated", "lastModified": "date_updated", "fileLastModified": "date_updated",
	"booksMetadata.releaseDate": "release_date", "metadata.releaseDate": "release_date", "releaseDate": "release_date", "year": "release_date",
	"booksCount": "book_count", "readProgress.readDate": "date_read", "readDate": "date_read"}

// automatic returns the conditions of the automatic ones among the filter's collections, by id.
func (f SeriesFilter) automatic(ctx context.Context, d *db.DB) (map[string]json.RawMessage, error) {
	if len(f.CollectionID) == 0 {
		return nil, nil
	}
	rows, err := db.List[struct {
		ID        string          `db:"id"`
		Condition json.RawMessage `db:"condition"`
	}](ctx, d, "select id::text, condition from collection where tenant_id = app.tenant() and condition is not null and id::text = any($1)", f.CollectionID)
	if err != nil {
		return nil, err
	}
	out := map[string]json.RawMessage{}
	for _, r := range rows {
		out[r.ID] = r.Condition
	}
	return out, nil
}

// wanted returns the list for the filter and a condition (nil for none); automatic holds the conditions of its
// automatic collections.
func (f SeriesFilter) wanted(tree json.RawMessage, automatic map[string]json.RawMessage, find *string, sort httpapi.Sorting) (w series.ListQuery, err error) {
	w = series.ListQuery{Find: find, Sort: sort}
	libraries := f.LibraryID
	if err = ids("libraryId", libraries); err != nil {
		return w, err
	}
	if len(libraries) == 1 {
		w.Library, libraries = httpapi.OptionalID(libraries[0]), nil
	}
	parts := slices.Concat(oneOf("libraryId", libraries), oneOf("readStatus", lower(f.ReadStatus)), oneStatus(f.Status),
		oneOf("publisher", f.Publisher), oneOf("language", f.Language), oneOf("genre", f.Genre),
		oneOf("tag", f.Tag), oneOf("author", names(f.Author)))
	if len(f.CollectionID) == 1 && automatic[f.CollectionID[0]] != nil {
		w.Also = automatic[f.CollectionID[0]]
	} else {
		parts = append(parts, members("collectionId", f.CollectionID, automatic)...)
	}
	if f.Deleted || f.Oneshot {
		parts = append(parts, never)
	}
	if tree != nil {
		part, err := condition(tree, seriesFields, 1)
		if err != nil {
			return w, err
		}
		parts = append(parts, part)
	}
	if parts != nil {
		w.Condition, err = all(parts)
	}
	return w, err
}

// seriesRow is a series as selected by seriesSQL.
type seriesRow struct {
	ID               uuid.UUID        `db:"id"`
	LibraryID        uuid.UUID        `db:"library_id"`
	LibraryPath      string           `db:"library_path"`
	Path             string           `db:"path"`
	Title            string           `db:"title"`
	TitleSort        string           `db:"title_sort"`
	Summary          string           `db:"summary"`
	Publisher        string           `db:"publisher"`
	Language         string           `db:"language"`
	Status           string           `db:"status"`
	ReadingDirection string           `db:"reading_direction"`
	AgeRating        *int32           `db:"age_rating"`
	Year             *int32           `db:"year"`
	Volumes          *int32           `db:"total_volume_count"`
	Authors          []Author         `db:"authors"`
	Locks            []string         `db:"locks"`
	Genres           []string         `db:"genres"`
	Tags             []string         `db:"tags"`
	Links            []Link           `db:"links"`
	Titles           []AlternateTitle `db:"titles"`
	Books            int64            `db:"book_count"`
	Read             int64            `db:"read"`
	Open             int64            `db:"open"`
	CreatedAt        time.Time        `db:"created_at"`
	UpdatedAt        time.Time        `db:"updated_at"`
}

// people is SQL for the authors in a list, with names and roles.
func people(list string) string {
	return `coalesce((select jsonb_agg(jsonb_build_object('name', a ->> 'name', 'role', coalesce(a ->> 'role', 'author'))) from
		jsonb_array_elements(case jsonb_typeof(` + list + `) when 'array' then ` + list + ` else '[]' end) a), '[]')`
}

// terms is SQL for the genres or tags (table) of a series or book (owner).
func terms(owner, table, id string) string {
	return `array(select t.name from ` + owner + `_` + table + ` x join ` + table + ` t on t.tenant_id = x.tenant_id and t.id = x.` + table + `_id
		where x.tenant_id = app.tenant() and x.` + owner + `_id = ` + id + ` order by t.name collate natural_order)`
}

// seriesSQL selects the series with the given ids, one index lookup each; summary is the length of summaries.
func seriesSQL(ids, summary string) string {
	return `with page as materialized (select id, row_number() over () as pos from (` + ids + `) x),
	  ` + progress.MineOfPageSQL + `
	select s.id, s.library_id, l.path as library_path, s.path, s.title, s.title_sort, coalesce(left(s.summary, ` + summary + `), '') as summary,
	  coalesce(s.publisher, '') as publisher, coalesce(s.language, '') as language, coalesce(s.status, '') as status,
	  coalesce(s.reading_direction, l.default_reading_direction) as reading_direction, s.age_rating, s.year, s.total_volume_count,
	  ` + people("s.authors") + ` as authors, s.locks, ` + terms("series", "genre", "s.id") + ` as genres, ` + terms("series", "tag", "s.id") + ` as tags,
	  coalesce((select jsonb_agg(jsonb_build_object('label', x.source_name, 'url', x.url) order by x.source_name) from external_link x
	    where x.tenant_id = app.tenant() and x.series_id = s.id), '[]') as links,
	  coalesce((select jsonb_agg(jsonb_build_object('label', x.label, 'title', x.title) order by x.label, x.id) from alternate_title x
	    where x.tenant_id = app.tenant() and x.series_id = s.id), '[]') as titles,
	  s.book_count, c.read, c.open, s.created_at, s.updated_at
	from page
	cross join lateral (select * from series x where x.tenant_id = app.tenant() and x.id = page.id limit 1) s
	cross join lateral (select x.path, x.default_reading_direction from library x where x.tenant_id = app.tenant() and x.id = s.library_id limit 1) l
	cross join lateral (select count(*) filter (where p.completed) as read, count(*) filter (where not p.completed) as open
	  from (select ` + progress.CompletedSQL + ` as completed
	    from book b where b.tenant_id = app.tenant() and b.series_id = page.id and b.deleted_at is null offset 0) p) c
	order by page.pos`
}

var directions = map[string]string{"ltr": "LEFT_TO_RIGHT", "rtl": "RIGHT_TO_LEFT", "ttb": "VERTICAL", "webtoon": "WEBTOON"}

func (r seriesRow) series() Series {
	created, modified := stamp(r.CreatedAt), stamp(r.UpdatedAt)
	locked := func(name string) bool { return slices.Contains(r.Locks, name) }
	status := strings.ToUpper(r.Status)
	if status == "UNKNOWN" {
		status = ""
	}
	return Series{ID: r.ID.String(), LibraryID: r.LibraryID.String(), Name: r.Title, URL: series.Folder(r.LibraryPath, r.Path), Created: created, LastModified: modified, FileLastModified: modified,
		BooksCount: r.Books, BooksReadCount: r.Read, BooksInProgressCount: r.Open, BooksUnreadCount: max(0, r.Books-r.Read-r.Open),
		Metadata: SeriesMetadata{Status: cmp.Or(status, "ONGOING"), StatusLock: locked("status"), Title: r.Title, TitleLock: locked("title"),
			TitleSort: r.TitleSort, TitleSortLock: locked("titleSort"), Summary: r.Summary, SummaryLock: locked("summary"),
			ReadingDirection: directions[r.ReadingDirection], ReadingDirectionLock: locked("readingDirection"), Publisher: r.Publisher,
			PublisherLock: locked("publisher"), AgeRating: r.AgeRating, AgeRatingLock: locked("ageRating"), Language: r.Language,
			LanguageLock: locked("language"), Genres: r.Genres, GenresLock: locked("genres"), Tags: r.Tags, TagsLock: locked("tags"),
			TotalBookCount: r.Volumes, TotalBookCountLock: locked("totalVolumeCount"), SharingLabels: []string{}, Links: r.Links,
			AlternateTitles: r.Titles, AlternateTitlesLock: locked("alternateTitles"), Created: created, LastModified: modified},
		BooksMetadata: BooksMetadata{Authors: roles(r.Authors), Tags: []string{}, ReleaseDate: book.Released(r.Year, nil, nil), Created: created, LastModified: modified}}
}

// roles renames roles to Komga's names.
func roles(people []Author) []Author {
	for i := range people {
		if people[i].Role == "cover_artist" {
			people[i].Role = "cover"
		}
	}
	return people
}

// filteredSeries returns a page of the list for a filter and a condition (nil for none).
func filteredSeries(ctx context.Context, d *db.DB, f SeriesFilter, tree json.RawMessage, find *string, sort httpapi.Sorting, p Paging) (*Page[Series], error) {
	automatic, err := f.automatic(ctx, d)
	if err != nil {
		return nil, err
	}
	w, err := f.wanted(tree, automatic, find, sort)
	if err != nil {
		return nil, err
	}
	list, err := series.List(w)
	if err != nil {
		return nil, err
	}
	return listSeries(ctx, d, list, p)
}

// listSeries returns a page of a list.
func listSeries(ctx context.Context, d *db.DB, list *series.Listed, p Paging) (*Page[Series], error) {
	var b pgx.Batch
	load := queueSeries(&b, list, p)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	return load(), nil
}

// queueSeries adds a page of a list to the batch; load returns it after the batch has run.
func queueSeries(b *pgx.Batch, list *series.Listed, p Paging) (load func() *Page[Series]) {
	return queuePage(b, list, p, seriesSQL, seriesRow.series)
}

// oneSeries returns a series; NotFound if there is none.
func oneSeries(ctx context.Context, d *db.DB, id uuid.UUID) (*Series, error) {
	row, err := db.Get[seriesRow](ctx, d, seriesSQL("select s.id from series s where s.tenant_id = app.tenant() and s.id = $1", alone), id)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, fault.Missing("Series")
	}
	return new(row.series()), nil
}

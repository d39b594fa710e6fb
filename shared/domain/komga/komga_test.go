package komga_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/komga"
	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

func routes(a *httpapi.API, d *db.DB) { komga.Routes(a, d, nil) }

const root = "/komga/api"

// shelf is a library with series of books, numbered from 1.
type shelf struct {
	library uuid.UUID
	series  map[string]uuid.UUID
	books   map[string][]uuid.UUID // by series
}

// serve returns a server whose tenant one has the interface, and its shelf: "Able" with four books (one page image is
// unreadable, the last is an e-book; a fifth book's file is gone) and "Baker" with one.
func serve(t testing.TB) (*testkit.Server, shelf) {
	t.Helper()
	s := testkit.Serve(t, routes)
	s.DB.Set(t, s.One, setting.KomgaPrefix, "komga")
	sh := shelf{uuid.New(), map[string]uuid.UUID{}, map[string][]uuid.UUID{}}
	s.DB.Exec(t, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy, default_reading_direction, excluded_patterns)
		values ($1, $2, 'Comics', '/books', 'b', '', 'series_volume', 'filename', 'file_order', 'rtl', E'@eaDir\n\n_tmp')`, s.One, sh.library)
	for i, name := range []string{"Able", "Baker"} {
		id, books := uuid.New(), []uuid.UUID{uuid.New()}
		for range 4 - 4*i {
			books = append(books, uuid.New())
		}
		sh.series[name], sh.books[name] = id, books
		s.DB.Exec(t, `insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title, created_at, year)
			values ($1, $2, $3, $4, $4, $4, $4, lower($4), '2024-01-02 03:04:05.6+00'::timestamptz + $5 * interval '1 day', 2000 + $5)`,
			s.One, id, sh.library, name, i)
		s.DB.Exec(t, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, fingerprint, title, title_sort, search_title, number,
			  page_count, analyzed, created_at, updated_at, deleted_at, error_type, error_message)
			select $1, u.id, $2, $3, $4 || '/' || $4 || ' ' || u.n || '.cbz', 1500000 * u.n, '2024-05-06 07:08:09+00', case when u.n = 4 then 'epub' else 'cbz' end, 'f' || u.n,
			  $4 || ' ' || u.n, $4 || ' ' || u.n, lower($4 || ' ' || u.n), case when u.n = 3 then 2.5 else u.n end, 3, true,
			  now() + u.n * interval '1 minute', now() + u.n * interval '1 hour', case when u.n = 5 then now() end,
			  case when u.n = 3 then 'parser' end, case when u.n = 3 then 'is cut off' end
			from unnest($5::uuid[]) with ordinality as u(id, n)`, s.One, sh.library, id, name, books)
	}
	s.DB.Exec(t, "update series set updated_at = now() - interval '1 day' where title = 'Baker'")
	able, first := sh.series["Able"], sh.books["Able"][0]
	s.DB.Exec(t, `update series set summary = 'Of a <rabbit>', publisher = 'Fox', language = 'de', status = 'ended', age_rating = 12, total_volume_count = 7,
		locks = '{title,genres}', authors = '[{"name": "Ann", "role": "writer"}, {"name": "Bob", "role": "cover_artist"}]' where id = $1`, able)
	for _, table := range []string{"genre", "tag"} {
		id := uuid.New()
		s.DB.Exec(t, "insert into "+table+" (tenant_id, id, name) values ($1, $2, $3), ($1, gen_random_uuid(), 'unused')", s.One, id, "Some "+table)
		s.DB.Exec(t, "insert into "+table+" (tenant_id, id, name) values ($1, $2, $3)", s.One, first, "Own "+table)
		s.DB.Exec(t, fmt.Sprintf("insert into book_%[1]s (tenant_id, book_id, %[1]s_id) values ($1, $2, $2)", table), s.One, first)
		s.DB.Exec(t, fmt.Sprintf("insert into series_%[1]s (tenant_id, series_id, %[1]s_id) values ($1, $2, $3)", table), s.One, able, id)
	}
	s.DB.Exec(t, "insert into external_link (tenant_id, id, series_id, source_name, url) values ($1, gen_random_uuid(), $2, 'wiki', 'https://example.org')", s.One, able)
	s.DB.Exec(t, "insert into alternate_title (tenant_id, id, series_id, label, title) values ($1, gen_random_uuid(), $2, 'ja', 'エーブル')", s.One, able)
	s.DB.Exec(t, `insert into book_metadata (tenant_id, book_id, metadata, locks) values ($1, $2, '{"summary": "One", "year": 2001, "month": 2, "day": 30, "isbns": "[\"9780316769488\",\"9780306406157\"]",
		"authors": [{"name": "Ann", "role": "writer"}]}', '{titleLock,authorsJsonLock,genresLock}')`, s.One, first)
	s.DB.Exec(t, `insert into page_index (tenant_id, book_id, revision, names, types, offsets, lengths, packed, sizes, methods, crcs, widths, heights,
		  file_size, file_etag, file_modified)
		select $1, $2, 1, '{1.jpg,2.png,3.webp}', '{image/jpeg,image/png,image/webp}', n, n, n, '{1,2048,3}', '{0,0,0}', n, '{10,0,30}', '{11,0,31}', 1, '', now()
		from (select '{1,2,3}'::bigint[] as n) x`, s.One, first)
	return s, sh
}

// page is the part of a list that the tests read.
type page struct {
	Content []struct {
		ID, Name string
		Metadata struct{ Title, Number string }
	}
	Pageable struct {
		PageNumber, PageSize, Offset int
		Paged, Unpaged               bool
	}
	TotalElements, TotalPages, Number, Size, NumberOfElements int
	First, Last, Empty                                        bool
	Sort                                                      struct{ Sorted bool }
}

func (p page) titles() string {
	var out []string
	for _, c := range p.Content {
		out = append(out, c.Metadata.Title)
	}
	return strings.Join(out, ", ")
}

func list(t testing.TB, c *testkit.Client, method, path string, body any) (p page) {
	t.Helper()
	c.Do(method, root+path, body).Want(200).JSON(&p)
	if p.NumberOfElements != len(p.Content) || p.Empty != (len(p.Content) == 0) {
		t.Errorf("%s: %d items are said to be %d", path, len(p.Content), p.NumberOfElements)
	}
	return p
}

// The interface is at the tenant's prefix only, from the next request that reloads the tenant.
func TestPrefix(t *testing.T) {
	t.Parallel()
	s, _ := serve(t)
	me, anonymous, foreign := s.User(t, "one", "reader"), s.Anonymous(t, "one"), s.User(t, "two", "reader")
	me.Do("GET", root+"/v1/libraries", nil).Want(200)
	anonymous.Do("GET", root+"/v1/libraries", nil).Want(401)
	for _, c := range []*testkit.Client{me, anonymous, foreign} {
		c.Do("GET", "/other/api/v1/libraries", nil).Want(404)
		c.Do("GET", "/other/api/v1/series/x", nil).Want(404)
		c.Do("PATCH", "/other/api/v1/books/"+uuid.NewString()+"/read-progress", `{"page":`).Want(404)
	}
	foreign.Do("GET", root+"/v1/libraries", nil).Want(404) // no prefix is set
	foreign.Do("GET", "//api/v1/libraries", nil).Want(404)
	s.DB.Set(t, s.One, setting.KomgaPrefix, "panels")
	other := s.Beside(t, routes)
	me.At(other).Do("GET", "/panels/api/v1/libraries", nil).Want(200)
	me.At(other).Do("GET", root+"/v1/libraries", nil).Want(404)
}

func TestSeries(t *testing.T) {
	t.Parallel()
	s, sh := serve(t)
	me := s.User(t, "one", "reader")
	read(t, s, me, sh.books["Able"][0], true)
	read(t, s, me, sh.books["Able"][1], false)
	got := me.Do("GET", root+"/v1/series/"+sh.series["Able"].String(), nil).Want(200).Map()
	want(t, got, map[string]any{"id": sh.series["Able"].String(), "libraryId": sh.library.String(), "name": "Able", "url": "/books/Able",
		"created": "2024-01-02T03:04:05Z", "booksCount": 4.0, "booksReadCount": 1.0, "booksInProgressCount": 1.0, "booksUnreadCount": 2.0, "deleted": false, "oneshot": false})
	want(t, got["metadata"], map[string]any{"status": "ENDED", "title": "Able", "titleLock": true, "titleSort": "Able", "titleSortLock": false, "summary": "Of a <rabbit>",
		"readingDirection": "RIGHT_TO_LEFT", "publisher": "Fox", "language": "de", "ageRating": 12.0, "totalBookCount": 7.0, "genres": "[Some genre]",
		"genresLock": true, "tags": "[Some tag]", "tagsLock": false, "links": "[map[label:wiki url:https://example.org]]", "sharingLabels": "[]",
		"alternateTitles": "[map[label:ja title:エーブル]]"})
	want(t, got["booksMetadata"], map[string]any{"authors": "[map[name:Ann role:writer] map[name:Bob role:cover]]", "releaseDate": "2000-01-01", "summary": "", "tags": "[]"})

	s.DB.Exec(t, "update series set summary = repeat('é', 3000) where id = $1", sh.series["Able"])
	if whole := me.Do("GET", root+"/v1/series/"+sh.series["Able"].String(), nil).Want(200).Map()["metadata"].(map[string]any)["summary"].(string); len(whole) != 6000 {
		t.Errorf("%d bytes of a summary of 6000", len(whole))
	}
	if all := me.Do("GET", root+"/v1/series", nil).Want(200); bytes.Count(all.Body, []byte("é")) != 500 {
		t.Errorf("a list tells %d characters of a summary", bytes.Count(all.Body, []byte("é")))
	}

	bare := me.Do("GET", root+"/v1/series/"+sh.series["Baker"].String(), nil).Want(200).Map()
	want(t, bare["metadata"], map[string]any{"status": "ONGOING", "summary": "", "publisher": "", "language": "", "ageRating": nil, "genres": "[]", "tags": "[]", "links": "[]"})
	want(t, bare["booksMetadata"], map[string]any{"authors": "[]"})
	me.Do("GET", root+"/v1/series/"+uuid.NewString(), nil).Want(404)
}

func TestBooks(t *testing.T) {
	t.Parallel()
	s, sh := serve(t)
	me := s.User(t, "one", "reader")
	able := sh.books["Able"]
	read(t, s, me, able[0], false)
	at := func(i int) map[string]any {
		t.Helper()
		return me.Do("GET", root+"/v1/books/"+able[i].String(), nil).Want(200).Map()
	}
	got := at(0)
	want(t, got, map[string]any{"id": able[0].String(), "seriesId": sh.series["Able"].String(), "seriesTitle": "Able", "libraryId": sh.library.String(), "name": "Able 1.cbz",
		"url": "/books/Able/Able 1.cbz", "number": 1.0, "fileLastModified": "2024-05-06T07:08:09Z", "sizeBytes": 1500000.0, "size": "1.4 MiB", "fileHash": "f1", "deleted": false})
	want(t, got["media"], map[string]any{"status": "READY", "mediaType": "application/zip", "pagesCount": 3.0, "mediaProfile": "DIVINA", "comment": ""})
	want(t, got["metadata"], map[string]any{"title": "Able 1", "titleLock": true, "summary": "One", "summaryLock": false, "number": "1", "numberSort": 1.0,
		"releaseDate": "2001-02-01", "authors": "[map[name:Ann role:writer]]", "authorsLock": true, "tags": "[Own genre]", "tagsLock": true, "isbn": "9780316769488", "links": "[]"})
	want(t, got["readProgress"], map[string]any{"page": 2.0, "completed": false, "deviceId": "", "deviceName": ""})

	want(t, at(2)["media"], map[string]any{"status": "ERROR", "comment": "is cut off"})
	want(t, at(2)["metadata"], map[string]any{"number": "2.5", "numberSort": 2.5, "releaseDate": nil, "authors": "[]", "summary": "", "tags": "[]", "tagsLock": false})
	want(t, at(2), map[string]any{"readProgress": nil, "number": 2.0})
	want(t, at(3)["media"], map[string]any{"mediaProfile": "EPUB", "mediaType": "application/epub+zip", "epubDivinaCompatible": false})
	me.Do("GET", root+"/v1/books/"+able[4].String(), nil).Want(404) // its file is gone

	if next := me.Do("GET", root+"/v1/books/"+able[0].String()+"/next", nil).Want(200).Map(); next["id"] != able[1].String() {
		t.Errorf("after the first comes %v", next["name"])
	}
	if previous := me.Do("GET", root+"/v1/books/"+able[3].String()+"/previous", nil).Want(200).Map(); previous["id"] != able[2].String() {
		t.Errorf("before the last comes %v", previous["name"])
	}
	for _, path := range []string{able[0].String() + "/previous", able[3].String() + "/next", uuid.NewString() + "/next", uuid.NewString() + "/pages"} {
		me.Do("GET", root+"/v1/books/"+path, nil).Want(404)
	}

	var pages []map[string]any
	me.Do("GET", root+"/v1/books/"+able[0].String()+"/pages", nil).Want(200).JSON(&pages)
	if len(pages) != 3 {
		t.Fatalf("%d pages", len(pages))
	}
	want(t, pages[0], map[string]any{"number": 1.0, "fileName": "1.jpg", "mediaType": "image/jpeg", "width": 10.0, "height": 11.0, "sizeBytes": 1.0, "size": "1 B"})
	want(t, pages[1], map[string]any{"number": 2.0, "width": nil, "height": nil, "size": "2.0 KiB"})
}

func TestLists(t *testing.T) {
	t.Parallel()
	s, sh := serve(t)
	me := s.User(t, "one", "reader")
	able := sh.books["Able"]
	read(t, s, me, able[0], true)
	read(t, s, me, able[1], false)
	s.DB.Exec(t, "update progress set updated_at = now() - interval '1 hour' where book_id = $1", able[1])
	s.DB.Exec(t, `insert into book_metadata (tenant_id, book_id, metadata) values ($1, $2, '{"year": 2005}'), ($1, $3, '{"year": 2001, "month": 2, "day": 1}')`,
		s.One, able[1], sh.books["Baker"][0])
	library := sh.library.String()
	for path, titles := range map[string]string{
		"/v1/series": "Able, Baker",
		"/v1/series?sort=metadata.titleSort,desc":                                         "Baker, Able",
		"/v1/series?sort=random,desc&sort=createdDate,desc":                               "Baker, Able",
		"/v1/series?sort=booksMetadata.releaseDate,asc":                                   "Able, Baker",
		"/v1/series?sort=nothing":                                                         "Able, Baker",
		"/v1/series/new":                                                                  "Baker, Able",
		"/v1/series/latest":                                                               "Able, Baker",
		"/v1/series/updated?sort=name,desc":                                               "Baker, Able",
		"/v1/series?search=bak":                                                           "Baker",
		"/v1/series?library_id=" + library:                                                "Able, Baker",
		"/v1/series?library_id=" + library + "&library_id=" + uuid.NewString():            "Able, Baker",
		"/v1/series?library_id=" + library + "," + uuid.NewString() + "&search=a":         "Able, Baker",
		"/v1/series?library_id=" + uuid.NewString():                                       "",
		"/v1/series?read_status=IN_PROGRESS":                                              "Able",
		"/v1/series?read_status=UNREAD,READ":                                              "Baker",
		"/v1/series?status=ENDED&publisher=fox&language=de&genre=some+genre&tag=Some+tag": "Able",
		"/v1/series?status=ONGOING":                                                       "Baker",
		"/v1/series?status=ended,ongoing":                                                 "Able, Baker",
		"/v1/series?author=Ann,writer":                                                    "Able",
		"/v1/series?author=Ann&author=Bob":                                                "Able",
		"/v1/series?author=Nobody":                                                        "",
		"/v1/series?deleted=false&oneshot=false&complete=true":                            "Able, Baker",
		"/v1/series?deleted=true":                                                         "",
		"/v1/series?oneshot=true":                                                         "",
		"/v1/series?collection_id=1":                                                      "",
		"/v1/series?size=1&page=1":                                                        "Baker",
		"/v1/series?size=1&page=2":                                                        "",
		"/v1/series?unpaged=true&page=5":                                                  "Able, Baker",
		"/v1/books":                                                                       "Able 1, Able 2, Able 3, Able 4, Baker 1",
		"/v1/books?sort=metadata.numberSort,desc&series_id=" + sh.series["Able"].String(): "Able 4, Able 3, Able 2, Able 1",
		"/v1/books?library_id=" + library + "&media_status=ERROR":                         "Able 3",
		"/v1/books?media_status=READY&read_status=UNREAD":                                 "Able 4, Baker 1",
		"/v1/books?media_status=OUTDATED":                                                 "",
		"/v1/books?author=ann,writer&author=Nobody,writer":                                "Able 1",
		"/v1/books?tag=own+genre&search=able":                                             "Able 1",
		"/v1/books?tag=some+genre":                                                        "",
		"/v1/books?read_status=IN_PROGRESS&sort=readProgress.readDate,desc":               "Able 2",
		"/v1/books?read_status=IN_PROGRESS,READ&sort=readProgress.readDate,desc":          "Able 1, Able 2",
		"/v1/books?read_status=IN_PROGRESS,READ&sort=readProgress.readDate,asc":           "Able 2, Able 1",
		"/v1/books?read_status=UNREAD,READ&sort=readProgress.readDate,desc":               "Able 1, Able 3, Able 4, Baker 1",
		"/v1/books?sort=readProgress.readDate,asc":                                        "Able 2, Able 1, Able 3, Able 4, Baker 1",
		"/v1/books?sort=metadata.releaseDate,desc":                                        "Able 2, Able 1, Baker 1, Able 3, Able 4",
		"/v1/books?sort=metadata.releaseDate,asc":                                         "Baker 1, Able 1, Able 2, Able 3, Able 4",
		"/v1/books?sort=series,metadata.numberSort,desc":                                  "Baker 1, Able 4, Able 3, Able 2, Able 1",
		"/v1/books?sort=series,metadata.numberSort":                                       "Able 1, Able 2, Able 3, Able 4, Baker 1",
		"/v1/books?sort=readProgress.readDate,desc":                                       "Able 1, Able 2, Able 3, Able 4, Baker 1",
		"/v1/books?readlist_id=1&deleted=false":                                           "",
		"/v1/books/latest?size=2":                                                         "Able 4, Able 3",
		"/v1/books/ondeck":                                                                "",
		"/v1/series/" + sh.series["Able"].String() + "/books?unpaged=true&media_status=READY&deleted=false": "Able 1, Able 2, Able 4",
		"/v1/series/" + sh.series["Able"].String() + "/books?size=2&page=1&sort=metadata.numberSort":        "Able 3, Able 4",
		"/v1/collections?unpaged=true": "",
		"/v1/readlists":                "",
	} {
		if got := list(t, me, "GET", path, nil).titles(); got != titles {
			t.Errorf("%s: %s, want %s", path, got, titles)
		}
	}
	read(t, s, me, able[1], true)
	if got := list(t, me, "GET", "/v1/books/ondeck?library_id="+library, nil).titles(); got != "Able 3" {
		t.Errorf("on deck is %q", got)
	}
	p := list(t, me, "GET", "/v1/books?size=2&page=1&sort=name", nil)
	if p.TotalElements != 5 || p.TotalPages != 3 || p.Number != 1 || p.Size != 2 || p.First || p.Last || !p.Sort.Sorted || !p.Pageable.Paged ||
		p.Pageable.PageNumber != 1 || p.Pageable.PageSize != 2 || p.Pageable.Offset != 2 {
		t.Errorf("the second of three pages: %+v", p)
	}
	if p = list(t, me, "GET", "/v1/books?size=2&page=2", nil); p.First || !p.Last || p.NumberOfElements != 1 || p.Sort.Sorted {
		t.Errorf("the last page: %+v", p)
	}
	if p = list(t, me, "GET", "/v1/books?unpaged=true", nil); !p.First || !p.Last || p.TotalPages != 1 || !p.Pageable.Unpaged || p.Pageable.Paged {
		t.Errorf("all books: %+v", p)
	}
	if p = list(t, me, "GET", "/v1/series?author=Nobody", nil); !p.First || !p.Last || p.TotalPages != 0 {
		t.Errorf("nothing: %+v", p)
	}
	if p = list(t, me, "GET", "/v1/books?size=0", nil); p.Size != 20 || p.NumberOfElements != 5 {
		t.Errorf("a page of no size: %+v", p)
	}
	if p = list(t, me, "GET", "/v1/books?size=100000", nil); p.Size != httpapi.MaxPageSize {
		t.Errorf("a page of %d", p.Size)
	}
}

// Several libraries limit the books on deck, too.
func TestOnDeckInLibraries(t *testing.T) {
	t.Parallel()
	s, sh := serve(t)
	me := s.User(t, "one", "reader")
	libraries := map[string]uuid.UUID{}
	for _, name := range []string{"Cat", "Dog", "Emu"} {
		id, books := uuid.New(), []uuid.UUID{uuid.New(), uuid.New()}
		libraries[name] = id
		s.DB.Exec(t, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
			values ($1, $2, $3, '/' || $3, 'b', $3, 'series_volume', 'filename', 'file_order')`, s.One, id, name)
		s.DB.Exec(t, `insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) values ($1, $2, $2, $3, $3, $3, $3, lower($3))`, s.One, id, name)
		s.DB.Exec(t, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, fingerprint, title, title_sort, search_title, number, page_count, analyzed)
			select $1, u.id, $2, $2, $3 || u.n, 1, now(), 'cbz', $3 || u.n, $3 || ' ' || u.n, $3 || ' ' || u.n, lower($3 || ' ' || u.n), u.n, 3, true
			from unnest($4::uuid[]) with ordinality as u(id, n)`, s.One, id, name, books)
		read(t, s, me, books[0], true)
	}
	cat, dog := libraries["Cat"].String(), libraries["Dog"].String()
	for query, titles := range map[string]string{"": "Emu 2, Dog 2, Cat 2", "?library_id=" + cat: "Cat 2", "?library_id=" + cat + "&library_id=" + dog: "Dog 2, Cat 2",
		"?library_id=" + dog + "," + sh.library.String(): "Dog 2"} {
		if got := list(t, me, "GET", "/v1/books/ondeck"+query, nil); got.titles() != titles || got.TotalElements != len(got.Content) {
			t.Errorf("%s: %s of %d, want %s", query, got.titles(), got.TotalElements, titles)
		}
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	s, sh := serve(t)
	me := s.User(t, "one", "reader")
	read(t, s, me, sh.books["Able"][0], false)
	s.DB.Exec(t, "update series set publisher = 'Kodansha, Ltd.' where title = 'Baker'")
	s.DB.Exec(t, "with g as (insert into genre (tenant_id, id, name) values ($1, gen_random_uuid(), 'Own genre, too') returning id) "+
		"insert into book_genre (tenant_id, book_id, genre_id) select $1, $2, id from g", s.One, sh.books["Baker"][0])
	s.DB.Exec(t, "update series set age_rating = case title when 'Able' then 12 end")
	s.DB.Exec(t, "update series set year = extract(year from now()) where title = 'Baker'")
	s.DB.Exec(t, `insert into book_metadata (tenant_id, book_id, metadata) select $1, $2, jsonb_build_object('year', extract(year from d), 'month', extract(month from d), 'day', extract(day from d))
		from (select now() - interval '5 days' as d) x`, s.One, sh.books["Baker"][0])
	leaf := func(field, rest string) string { return fmt.Sprintf(`{"condition":{%q:{%s}}}`, field, rest) }
	is := func(field, value string) string { return leaf(field, `"operator":"is","value":"`+value+`"`) }
	for _, c := range []struct{ path, body, titles string }{
		{"series", `{}`, "Able, Baker"},
		{"series", `{"condition":null,"fullTextSearch":null,"libraryId":null}`, "Able, Baker"},
		{"series", `{"condition":{}}`, "Able, Baker"},
		{"series", `{"fullTextSearch":"able"}`, "Able"},
		{"series", `{"searchTerm":"baker"}`, "Baker"},
		{"series", `{"libraryId":["` + uuid.NewString() + `"]}`, ""},
		{"series", `{"readStatus":["IN_PROGRESS"],"deleted":false,"oneshot":false}`, "Able"},
		{"series", is("readStatus", "UNREAD"), "Baker"},
		{"series", is("seriesStatus", "ENDED"), "Able"},
		{"series", is("seriesStatus", "ONGOING"), "Baker"},
		{"series", leaf("seriesStatus", `"operator":"isNot","value":"ONGOING"`), "Able"},
		{"series", leaf("seriesStatus", `"operator":"isNot","value":"ENDED"`), "Baker"},
		{"series", `{"status":["ONGOING"]}`, "Baker"},
		{"series", `{"publisher":["Kodansha, Ltd."]}`, "Baker"},
		{"series", `{"publisher":["Kodansha"]}`, ""},
		{"series", `{"publisher":["Ltd.","Fox"]}`, "Able"},
		{"books", `{"tag":["Own genre, too"]}`, "Baker 1"},
		{"series", is("libraryId", sh.library.String()), "Able, Baker"},
		{"series", leaf("title", `"operator":"contains","value":"ak"`), "Baker"},
		{"series", leaf("language", `"operator":"isNull"`), "Baker"},
		{"series", leaf("author", `"operator":"is","value":{"name":"ann","role":"writer"}`), "Able"},
		{"series", leaf("releaseDate", `"operator":"after","dateTime":"2000-06-01T00:00:00Z"`), "Baker"},
		{"series", leaf("releaseDate", `"operator":"before","dateTime":"2001-06-01T00:00:00Z"`), "Able"},
		{"series", leaf("deleted", `"operator":"isFalse"`), "Able, Baker"},
		{"series", leaf("oneShot", `"operator":"isTrue"`), ""},
		{"series", is("collectionId", "x"), ""},
		{"series", leaf("collectionId", `"operator":"isNot","value":"x"`), "Able, Baker"},
		{"series", is("libraryId", "x"), ""},
		{"series", leaf("libraryId", `"operator":"isNot","value":""`), "Able, Baker"},                                                    // "All" of Aidoku
		{"series", `{"condition":{"type":"AllOfSeries","allOf":[{"type":"Title","title":{"operator":"is","value":"Baker"}}]}}`, "Baker"}, // of komga-client
		{"series", leaf("ageRating", `"operator":"is","value":12`), "Able"},
		{"series", leaf("ageRating", `"operator":"isNot","value":12`), "Baker"},
		{"series", leaf("ageRating", `"operator":"greaterThan","value":11`), "Able"},
		{"series", leaf("ageRating", `"operator":"greaterThan","value":12`), ""},
		{"series", leaf("ageRating", `"operator":"lessThan","value":13`), "Able"},
		{"series", leaf("ageRating", `"operator":"isNull"`), "Baker"},
		{"series", leaf("ageRating", `"operator":"isNotNull"`), "Able"},
		{"books", `{"condition":{"type":"AllOfBook","allOf":[]}}`, "Able 1, Able 2, Able 3, Able 4, Baker 1"},
		{"books", leaf("seriesId", `"operator":"is","value":""`), ""},
		{"series", `{"condition":{"anyOf":[{"title":{"operator":"is","value":"Baker"}},{"allOf":[{"genre":{"operator":"is","value":"some genre"}}]}]}}`, "Able, Baker"},
		{"books", is("seriesId", sh.series["Baker"].String()), "Baker 1"},
		{"books", is("mediaStatus", "ERROR"), "Able 3"},
		{"books", is("tag", "Own genre"), "Able 1"},
		{"books", leaf("author", `"operator":"is","value":{"name":"ann","role":"writer"}`), "Able 1"},
		{"books", `{"author":["Ann"]}`, "Able 1"},
		{"books", `{"author":["Bob"]}`, ""},
		{"books", leaf("releaseDate", `"operator":"before","dateTime":"2002-01-01T00:00:00Z"`), "Able 1"},
		{"books", leaf("releaseDate", `"operator":"isInTheLast","duration":"PT720H"`), "Baker 1"}, // the home screen of Komelia
		{"books", leaf("releaseDate", `"operator":"isInTheLast","duration":"P30D"`), "Baker 1"},
		{"books", leaf("releaseDate", `"operator":"isInTheLast","duration":"P1DT12H30M0.5S"`), ""},
		{"books", leaf("releaseDate", `"operator":"isNotInTheLast","duration":"PT720H"`), "Able 1"},
		{"series", leaf("releaseDate", `"operator":"isInTheLast","duration":"P7300D"`), "Baker"},
		{"series", leaf("releaseDate", `"operator":"isNotInTheLast","duration":"P30D"`), "Able"},
		{"books", is("mediaProfile", "DIVINA"), "Able 1, Able 2, Able 3, Baker 1"},
		{"books", is("mediaProfile", "EPUB"), "Able 4"},
		{"books", leaf("mediaProfile", `"operator":"isNot","value":"DIVINA"`), "Able 4"},
		{"books", leaf("mediaProfile", `"operator":"isNot","value":"PDF"`), "Able 1, Able 2, Able 3, Able 4, Baker 1"},
		{"books?sort=readProgress.readDate,desc", `{"condition":{"allOf":[{"readStatus":{"operator":"is","value":"IN_PROGRESS"}},{"deleted":{"operator":"isFalse"}}]}}`, "Able 1"},
		{"books?sort=readProgress.readDate,desc", is("readStatus", "UNREAD"), "Able 2, Able 3, Able 4, Baker 1"},
		{"books?sort=readProgress.readDate,desc", leaf("readStatus", `"operator":"isNot","value":"READ"`), "Able 1, Able 2, Able 3, Able 4, Baker 1"},
		{"books?sort=readProgress.readDate,desc",
			`{"condition":{"anyOf":[{"readStatus":{"operator":"is","value":"IN_PROGRESS"}},{"title":{"operator":"is","value":"Baker 1"}}]}}`, "Able 1, Baker 1"},
		{"books", `{"readStatus":["UNREAD"],"seriesId":["` + sh.series["Baker"].String() + `"],"mediaStatus":["READY"],"tag":null}`, "Baker 1"},
	} {
		kind, query, _ := strings.Cut(c.path, "?")
		if got := list(t, me, "POST", "/v1/"+kind+"/list?"+query, c.body).titles(); got != c.titles {
			t.Errorf("%s: %s, want %s", c.body, got, c.titles)
		}
	}
	deep := strings.Repeat(`{"allOf":[`, 9) + strings.Repeat("]}", 9)
	for body, field := range map[string]string{
		`{"condition":{"nothing":{"operator":"is","value":"x"}}}`: "condition",
		`{"condition":[]}`:                                                                  "condition",
		`{"condition":{"allOf":[],"anyOf":[]}}`:                                             "condition",
		`{"condition":{"allOf":{}}}`:                                                        "condition.allOf",
		`{"condition":` + deep + `}`:                                                        "condition",
		`{"condition":{"title":"x"}}`:                                                       "condition.title",
		`{"condition":{"title":{"operator":"like","value":"x"}}}`:                           "condition.allOf[0].title.operator",
		`{"condition":{"seriesStatus":{"operator":"is","value":1}}}`:                        "condition.status",
		`{"condition":{"author":{"operator":"is","value":"Ann"}}}`:                          "condition.author",
		`{"condition":{"releaseDate":{"operator":"after","dateTime":"yesterday"}}}`:         "condition.releaseDate",
		`{"condition":{"releaseDate":{"operator":"is","dateTime":"2000-06-01T00:00:00Z"}}}`: "condition.releaseDate",
		`{"condition":{"releaseDate":{"operator":"isInTheLast","duration":"P"}}}`:           "condition.releaseDate",
		`{"condition":{"releaseDate":{"operator":"isInTheLast","duration":"P1M"}}}`:         "condition.releaseDate",
		`{"condition":{"releaseDate":{"operator":"isInTheLast","duration":"PT"}}}`:          "condition.releaseDate",
		`{"condition":{"releaseDate":{"operator":"isInTheLast","duration":30}}}`:            "condition.releaseDate",
		`{"condition":{"deleted":{"operator":"is"}}}`:                                       "condition",
		`{"condition":{"collectionId":{"operator":"contains"}}}`:                            "condition.collectionId",
		`{"condition":{"libraryId":{"operator":"is","value":1}}}`:                           "condition.libraryId",
		`{"condition":{"type":"Title"}}`:                                                    "condition",
		`{"condition":{"ageRating":{"operator":"between","value":1}}}`:                      "condition.ageRating",
		`{"condition":{"ageRating":{"operator":"is","value":"old"}}}`:                       "condition.allOf[0].ageRating.value",
		`{"readStatus":["SOON"]}`:                                                           "condition.allOf[0].anyOf[0].readStatus.value",
		`{"libraryId":["x"]}`:                                                               "libraryId",
	} {
		refused(t, me.Do("POST", root+"/v1/series/list", body), body, field)
	}
	for body, field := range map[string]string{leaf("mediaStatus", `"operator":"isNot","value":"READY"`): "condition.mediaStatus",
		leaf("publisher", `"operator":"is","value":"Fox"`): "condition", is("mediaProfile", "CBZ"): "condition.mediaProfile",
		leaf("mediaProfile", `"operator":"contains","value":"PDF"`): "condition.mediaProfile"} {
		refused(t, me.Do("POST", root+"/v1/books/list", body), body, field)
	}
	for path, field := range map[string]string{"/v1/series?page=-1": "page", "/v1/series?library_id=x": "libraryId", "/v1/series?year=2000": "year",
		"/v1/books?series_id=x": "seriesId", "/v1/series?unpaged=maybe": "unpaged", "/v1/series?search=%00": "search"} {
		refused(t, me.Do("GET", root+path, nil), path, field)
	}
}

func refused(t testing.TB, r *testkit.Response, what, field string) {
	t.Helper()
	if r.Status != 400 {
		t.Errorf("%s: status %d: %.200s", what, r.Status, r.Body)
		return
	}
	m := r.Map()
	if details, _ := m["details"].([]any); len(details) == 0 || details[0].(map[string]any)["field"] != field {
		t.Errorf("%s: %v, want a fault of %s", what, m, field)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	s, sh := serve(t)
	me, other := s.User(t, "one", "reader"), s.User(t, "one", "reader")
	able := sh.books["Able"]
	at := root + "/v1/books/" + able[0].String()
	place := func() any {
		t.Helper()
		p := me.Do("GET", at, nil).Want(200).Map()["readProgress"]
		if p == nil {
			return nil
		}
		return fmt.Sprint(p.(map[string]any)["page"], p.(map[string]any)["completed"])
	}
	for _, c := range []struct {
		method, body string
		want         any
	}{
		{"PATCH", `{"page":2}`, "2 false"}, {"PATCH", `{"page":3,"completed":false}`, "3 true"}, {"DELETE", "", nil}, {"PATCH", `{"completed":true}`, "3 true"},
		{"PATCH", `{"page":1}`, "1 false"}, {"PATCH", `{"page":1,"completed":true}`, "3 true"},
	} {
		var body any
		if c.body != "" {
			body = c.body
		}
		me.Do(c.method, at+"/read-progress", body).Want(204)
		if got := place(); got != c.want {
			t.Errorf("%s %s: %v, want %v", c.method, c.body, got, c.want)
		}
	}
	for _, body := range []string{`{}`, `{"page":0}`, `{"completed":false}`, `{"page":null}`} {
		refused(t, me.Do("PATCH", at+"/read-progress", body), body, "page")
	}
	me.Do("PATCH", root+"/v1/books/"+able[4].String()+"/read-progress", `{"page":1}`).Want(404)
	if other.Do("GET", at, nil).Want(200).Map()["readProgress"] != nil {
		t.Error("somebody else has read it, too")
	}

	read(t, s, other, able[2], true) // changes nothing for me
	series := root + "/v2/series/" + sh.series["Able"].String() + "/read-progress/tachiyomi"
	want(t, me.Do("GET", series, nil).Want(200).Map(), map[string]any{"booksCount": 4.0, "booksReadCount": 1.0, "booksUnreadCount": 3.0, "booksInProgressCount": 0.0,
		"lastReadContinuousNumberSort": 1.0, "maxNumberSort": 4.0})
	me.Do("PUT", series, `{"lastBookNumberSortRead":2.5}`).Want(204)
	me.Do("PUT", series, `{"lastBookNumberSortRead":1}`).Want(204) // marks nothing as unread
	want(t, me.Do("GET", series, nil).Want(200).Map(), map[string]any{"booksReadCount": 3.0, "lastReadContinuousNumberSort": 2.5})
	me.Do("DELETE", root+"/v1/books/"+able[1].String()+"/read-progress", nil).Want(204)
	want(t, me.Do("GET", series, nil).Want(200).Map(), map[string]any{"booksReadCount": 2.0, "lastReadContinuousNumberSort": 1.0})
	me.Do("POST", root+"/v1/series/"+sh.series["Able"].String()+"/read-progress", nil).Want(204)
	want(t, me.Do("GET", series, nil).Want(200).Map(), map[string]any{"booksReadCount": 4.0, "lastReadContinuousNumberSort": 4.0})
	me.Do("DELETE", root+"/v1/series/"+sh.series["Able"].String()+"/read-progress", nil).Want(204)
	want(t, me.Do("GET", series, nil).Want(200).Map(), map[string]any{"booksReadCount": 0.0, "booksUnreadCount": 4.0, "lastReadContinuousNumberSort": 0.0})
	me.Do("GET", strings.Replace(series, sh.series["Able"].String(), uuid.NewString(), 1), nil).Want(404)
	me.Do("PUT", strings.Replace(series, sh.series["Able"].String(), uuid.NewString(), 1), `{"lastBookNumberSortRead":1}`).Want(404)

	s.DB.Exec(t, "update book set number = null where id = $1", able[1]) // comes after the others
	me.Do("PUT", series, `{"lastBookNumberSortRead":1}`).Want(204)
	want(t, me.Do("GET", series, nil).Want(200).Map(), map[string]any{"booksReadCount": 1.0, "lastReadContinuousNumberSort": 1.0})

	me.Do("GET", at+"/progression", nil).Want(204)
	me.Do("PUT", at+"/progression", `{"locator":{"href":"a","locations":{"totalProgression":0.5}}}`).Want(204)
	if got := me.Do("GET", at+"/progression", nil).Want(200).Map()["locator"].(map[string]any)["href"]; got != "a" {
		t.Errorf("the place is %v", got)
	}
}

func TestAround(t *testing.T) {
	t.Parallel()
	s, sh := serve(t)
	admin := s.User(t, "one", "admin")
	var libraries []map[string]any
	admin.Do("GET", root+"/v1/libraries", nil).Want(200).JSON(&libraries)
	if len(libraries) != 1 {
		t.Fatalf("%d libraries", len(libraries))
	}
	want(t, libraries[0], map[string]any{"id": sh.library.String(), "name": "Comics", "root": "/books", "scanDirectoryExclusions": "[@eaDir _tmp]", "unavailable": false})
	want(t, admin.Do("GET", root+"/v1/libraries/"+sh.library.String(), nil).Want(200).Map(), libraries[0])
	admin.Do("GET", root+"/v1/libraries/"+uuid.NewString(), nil).Want(404)

	for role, roles := range map[string]string{"admin": "[ADMIN]", "maintainer": "[USER FILE_DOWNLOAD]", "reader": "[USER]"} {
		c := s.User(t, "one", role)
		for _, version := range []string{"v1", "v2"} {
			want(t, c.Do("GET", root+"/"+version+"/users/me", nil).Want(200).Map(), map[string]any{"id": c.ID.String(), "email": c.Name + "@example.org", "roles": roles,
				"sharedAllLibraries": true, "sharedLibrariesIds": "[]", "ageRestriction": nil})
		}
	}
	s.DB.Exec(t, "update series set age_rating = 6 where title = 'Baker'")
	for path, values := range map[string]string{"genres": "[Some genre]", "tags": "[Some tag]", "publishers": "[Fox]", "languages": "[de]", "age-ratings": "[6 12]",
		"tags/series": "[Some tag]", "tags/book": "[Own genre]", "sharing-labels": "[]", "series/release-dates": "[2001 2000]",
		"authors": "[map[name:Ann role:writer] map[name:Bob role:cover]]", "authors?search=an": "[map[name:Ann role:writer]]",
		"series/" + sh.series["Able"].String() + "/collections": "[]", "books/" + sh.books["Able"][0].String() + "/readlists": "[]"} {
		var got []any
		if admin.Do("GET", root+"/v1/"+path, nil).Want(200).JSON(&got); fmt.Sprint(got) != values {
			t.Errorf("%s: %v, want %s", path, got, values)
		}
	}
	for query, names := range map[string]string{"": "[Ann Bob]", "?role=cover": "[Bob]", "?search=AN": "[Ann]", "?size=1&page=1": "[Bob]", "?page=5": "[]", "?role=inker": "[]"} {
		p := list(t, admin, "GET", "/v2/authors"+query, nil)
		var got []string
		for _, c := range p.Content {
			got = append(got, c.Name)
		}
		if fmt.Sprint(got) != names {
			t.Errorf("authors%s: %v, want %s", query, got, names)
		}
	}
	key := s.Key(t, admin, auth.BooksRead)
	key.Do("GET", root+"/v1/books", nil).Want(200)
	for _, path := range []string{"/v1/series", "/v1/libraries", "/v1/genres", "/v2/authors", "/v1/books/" + sh.books["Able"][0].String() + "/pages"} {
		key.Do("GET", root+path, nil).Want(403)
	}
	foreign := s.User(t, "two", "admin")
	s.DB.Set(t, s.Two, setting.KomgaPrefix, "komga")
	for _, path := range []string{"/v1/genres", "/v1/publishers", "/v1/authors", "/v1/libraries"} {
		if got := foreign.Do("GET", root+path, nil).Want(http.StatusOK); string(got.Body) != "[]\n" {
			t.Errorf("another tenant's %s: %s", path, got.Body)
		}
	}
}

// The want-to-read list is a collection of series and a read list of books, each in the caller's order.
func TestWanted(t *testing.T) {
	t.Parallel()
	s, sh := serve(t)
	me, other := s.User(t, "one", "reader"), s.User(t, "one", "reader")
	able, baker, books := sh.series["Able"], sh.series["Baker"], sh.books["Able"]
	s.DB.Exec(t, `insert into wanted (tenant_id, account_id, id, series_id, book_id, place, added_at)
		select $1, $2, gen_random_uuid(), u.series, u.book, u.place, '2024-01-01 00:00:00+00'::timestamptz + u.n * interval '1 day'
		from unnest($3::uuid[], $4::uuid[], $5::integer[]) with ordinality u(series, book, place, n)`, s.One, me.ID,
		// The last book's file is gone.
		[]*uuid.UUID{&able, &baker, nil, nil, nil}, []*uuid.UUID{nil, nil, &books[1], &books[0], &books[4]}, []int{5, 4, 3, 2, 1})
	for path, ids := range map[string]string{"/v1/collections": "seriesIds", "/v1/readlists?unpaged=true": "bookIds"} {
		var p struct {
			Content       []map[string]any
			TotalElements int
		}
		if me.Do("GET", root+path, nil).Want(200).JSON(&p); p.TotalElements != 1 || len(p.Content) != 1 {
			t.Fatalf("%s: %+v", path, p)
		}
		lists := map[string]string{"seriesIds": fmt.Sprint([]uuid.UUID{baker, able}), "bookIds": fmt.Sprint([]uuid.UUID{books[0], books[1]})}
		want(t, p.Content[0], map[string]any{"id": "want-to-read", "name": "Want to Read", "ordered": true, "filtered": false, ids: lists[ids]})
		at, _, _ := strings.Cut(path, "?")
		want(t, me.Do("GET", root+at+"/want-to-read", nil).Want(200).Map(), p.Content[0])
		if p := list(t, other, "GET", path, nil); len(p.Content) != 0 {
			t.Errorf("somebody else wants something: %+v", p)
		}
		other.Do("GET", root+at+"/want-to-read", nil).Want(404)
		me.Do("GET", root+at+"/"+uuid.NewString(), nil).Want(404)
	}
	want(t, me.Do("GET", root+"/v1/collections/want-to-read", nil).Want(200).Map(), map[string]any{"createdDate": "2024-01-02T00:00:00Z", "lastModifiedDate": "2024-01-03T00:00:00Z"})
	for path, titles := range map[string]string{"/v1/collections/want-to-read/series": "Baker, Able", "/v1/collections/want-to-read/series?size=1&page=1": "Able",
		"/v1/readlists/want-to-read/books": "Able 1, Able 2"} {
		if got := list(t, me, "GET", path, nil).titles(); got != titles {
			t.Errorf("%s: %s, want %s", path, got, titles)
		}
	}
}

// Manual collections and read lists follow, by name.
func TestCollections(t *testing.T) {
	t.Parallel()
	s, sh := serve(t)
	me, other := s.User(t, "one", "reader"), s.User(t, "one", "reader")
	able, baker, books := sh.series["Able"], sh.series["Baker"], sh.books["Able"]
	ids := map[string]uuid.UUID{}
	for _, c := range []struct {
		name, kind string
		condition  any
		members    []uuid.UUID
	}{{"Zoo", "series", nil, []uuid.UUID{baker, able}}, {"Old", "series", `{"year": {"operator": "lt", "value": 2001}}`, nil},
		{"Best", "books", nil, []uuid.UUID{books[1], books[4], books[0]}}} {
		id, column := uuid.New(), map[string]string{"series": "series_id", "books": "book_id"}[c.kind]
		ids[c.name] = id
		s.DB.Exec(t, "insert into collection (tenant_id, id, kind, name, ordered, condition, summary, created_at) values ($1, $2, $3, $4, true, $5, 'S', '2024-01-01 00:00:00+00')", s.One, id, c.kind, c.name, c.condition)
		s.DB.Exec(t, "insert into collection_member (tenant_id, id, collection_id, "+column+`, place) select $1, gen_random_uuid(), $2, u.id, u.n
			from unnest($3::uuid[]) with ordinality u(id, n)`, s.One, id, c.members)
	}
	s.DB.Exec(t, "insert into wanted (tenant_id, account_id, id, series_id, place) values ($1, $2, gen_random_uuid(), $3, 1)", s.One, me.ID, able)
	if p := list(t, me, "GET", "/v1/collections", nil); len(p.Content) != 3 || p.Content[0].ID != "want-to-read" || p.Content[1].Name != "Old" || p.Content[2].Name != "Zoo" {
		t.Errorf("collections: %+v", p.Content)
	}
	if p := list(t, me, "GET", "/v1/readlists?size=1", nil); p.TotalElements != 1 || p.Content[0].Name != "Best" {
		t.Errorf("read lists: %+v", p.Content)
	}
	want(t, me.Do("GET", root+"/v1/collections/"+ids["Zoo"].String(), nil).Want(200).Map(), map[string]any{"id": ids["Zoo"].String(), "name": "Zoo", "ordered": true,
		"seriesIds": fmt.Sprint([]uuid.UUID{baker, able}), "createdDate": "2024-01-01T00:00:00Z", "filtered": false})
	want(t, me.Do("GET", root+"/v1/collections/"+ids["Old"].String(), nil).Want(200).Map(), map[string]any{"seriesIds": "[]"})
	want(t, me.Do("GET", root+"/v1/readlists/"+ids["Best"].String(), nil).Want(200).Map(), map[string]any{"summary": "S", "bookIds": fmt.Sprint([]uuid.UUID{books[1], books[0]})})
	for path, titles := range map[string]string{"/v1/collections/" + ids["Zoo"].String() + "/series": "Baker, Able", "/v1/collections/" + ids["Old"].String() + "/series": "Able",
		"/v1/collections/" + ids["Zoo"].String() + "/series?size=1&page=1": "Able", "/v1/readlists/" + ids["Best"].String() + "/books?unpaged=true": "Able 2, Able 1"} {
		if got := list(t, me, "GET", path, nil).titles(); got != titles {
			t.Errorf("%s: %s, want %s", path, got, titles)
		}
	}
	// With filters the order of the list stays.
	zoo, old, wanted := ids["Zoo"].String(), ids["Old"].String(), "want-to-read"
	s.DB.Exec(t, "insert into wanted (tenant_id, account_id, id, book_id, place) values ($1, $2, gen_random_uuid(), $3, 3), ($1, $2, gen_random_uuid(), $4, 2)", s.One, me.ID, books[0], books[2])
	// The order of other lists with the same books does not matter.
	s.DB.Exec(t, `insert into wanted (tenant_id, account_id, id, book_id, place)
		values ($1, $2, gen_random_uuid(), $3, 2), ($1, $2, gen_random_uuid(), $4, 3)`, s.One, other.ID, books[0], books[2])
	also := uuid.New()
	s.DB.Exec(t, "insert into collection (tenant_id, id, kind, name, ordered) values ($1, $2, 'books', 'Also', true)", s.One, also)
	s.DB.Exec(t, `insert into collection_member (tenant_id, id, collection_id, book_id, place)
		values ($1, gen_random_uuid(), $2, $3, 1), ($1, gen_random_uuid(), $2, $4, 2)`, s.One, also, books[0], books[1])
	for path, titles := range map[string]string{
		"/v1/collections/" + zoo + "/series?search=&page=0&deleted=false&library_id=" + sh.library.String(): "Baker, Able",
		"/v1/collections/" + zoo + "/series?sort=metadata.titleSort,asc":                                    "Able, Baker",
		"/v1/collections/" + zoo + "/series?status=ENDED":                                                   "Able",
		"/v1/collections/" + old + "/series?search=able":                                                    "Able",
		"/v1/collections/" + old + "/series?search=baker":                                                   "",
		"/v1/collections/" + wanted + "/series?library_id=" + sh.library.String():                           "Able",
		"/v1/readlists/" + ids["Best"].String() + "/books?media_status=READY&unpaged=true&deleted=false":    "Able 2, Able 1",
		"/v1/readlists/" + ids["Best"].String() + "/books?sort=metadata.numberSort,asc":                     "Able 1, Able 2",
		"/v1/readlists/" + wanted + "/books?media_status=READY,ERROR":                                       "Able 3, Able 1",
		"/v1/readlists/" + wanted + "/books?media_status=READY":                                             "Able 1",
		"/v1/series?collection_id=" + zoo:                                                                   "Able, Baker",
		"/v1/series?collection_id=" + old:                                                                   "Able",
		"/v1/series?collection_id=" + old + "," + wanted + "&sort=name,desc":                                "Able",
		"/v1/books?readlist_id=" + ids["Best"].String():                                                     "Able 1, Able 2",
		"/v1/collections?search=zo":                                                                         "",
		"/v1/readlists?library_id=" + sh.library.String():                                                   "",
		"/v2/authors?library_id=" + sh.library.String():                                                     "",
		"/v2/authors?library_id=" + uuid.NewString():                                                        "",
	} {
		p := list(t, me, "GET", path, nil)
		if got := p.titles(); strings.Trim(got, ", ") != titles {
			t.Errorf("%s: %s, want %s", path, got, titles)
		}
	}
	s.DB.Exec(t, "delete from collection where id = $1", also)
	// There are no other lists, also if a filter or sort is given.
	foreign := uuid.New()
	s.DB.Exec(t, "insert into collection (tenant_id, id, kind, name) values ($1, $2, 'books', 'Foreign')", s.Two, foreign)
	for _, id := range []uuid.UUID{uuid.New(), foreign} {
		for _, query := range []string{"", "?search=able", "?sort=name,asc"} {
			me.Do("GET", root+"/v1/readlists/"+id.String()+"/books"+query, nil).Want(404)
			me.Do("GET", root+"/v1/collections/"+id.String()+"/series"+query, nil).Want(404)
		}
	}
	// Progress in a read list goes by its order.
	best := root + "/v1/readlists/" + ids["Best"].String() + "/read-progress/tachiyomi"
	progress := func(path string, books, read, unread, open, last float64) {
		t.Helper()
		want(t, me.Do("GET", path, nil).Want(200).Map(), map[string]any{"booksCount": books, "booksReadCount": read, "booksUnreadCount": unread,
			"booksInProgressCount": open, "lastReadContinuousIndex": last})
	}
	read(t, s, other, books[1], true) // changes nothing for me
	progress(best, 2, 0, 2, 0, 0)
	read(t, s, me, books[0], true)
	progress(best, 2, 1, 1, 0, 0)
	read(t, s, me, books[1], false)
	progress(best, 2, 1, 0, 1, 0)
	me.Do("PUT", best, `{"lastBookRead":1}`).Want(204)
	progress(best, 2, 2, 0, 0, 2)
	s.DB.Exec(t, "delete from progress where book_id = $1", books[0])
	me.Do("PUT", best, `{"lastBookRead":0}`).Want(204) // marks nothing as unread
	progress(best, 2, 1, 1, 0, 1)
	me.Do("PUT", best, `{"lastBookRead":5}`).Want(204)
	progress(best, 2, 2, 0, 0, 2)
	wants := root + "/v1/readlists/" + wanted + "/read-progress/tachiyomi"
	progress(wants, 2, 1, 1, 0, 0)
	me.Do("PUT", wants, `{"lastBookRead":1}`).Want(204)
	progress(wants, 2, 2, 0, 0, 2)
	listsOnly := s.Key(t, me, auth.ReadListsRead)
	listsOnly.Do("GET", best, nil).Want(200)
	listsOnly.Do("PUT", best, `{"lastBookRead":1}`).Want(403)
	nothing := strings.Replace(best, ids["Best"].String(), uuid.NewString(), 1)
	me.Do("GET", nothing, nil).Want(404)
	me.Do("PUT", nothing, `{"lastBookRead":1}`).Want(404)
	refused(t, me.Do("GET", strings.Replace(best, ids["Best"].String(), "x", 1), nil), "x", "id")
	refused(t, me.Do("PUT", best, `{"lastBookRead":-1}`), "-1", "lastBookRead")
	// Unordered ones: series by title, books by release.
	s.DB.Exec(t, "update collection set ordered = false")
	for at, titles := range map[string]string{"/v1/collections/" + zoo + "/series": "Able, Baker", "/v1/readlists/" + ids["Best"].String() + "/books": "Able 1, Able 2",
		"/v1/readlists/" + wanted + "/books": "Able 3, Able 1"} {
		for _, query := range []string{"", "?unpaged=true&deleted=false&library_id=" + sh.library.String()} {
			if got := list(t, me, "GET", at+query, nil).titles(); got != titles {
				t.Errorf("%s%s: %s, want %s", at, query, got, titles)
			}
		}
	}
	for path, n := range map[string]int{"/v1/collections?search=zo": 1, "/v1/collections?search=want": 1, "/v1/collections?size=2&page=1": 3, "/v2/authors?library_id=" + sh.library.String(): 2,
		"/v2/authors?library_id=" + uuid.NewString(): 0} {
		if p := list(t, me, "GET", path, nil); p.TotalElements != n {
			t.Errorf("%s: %d, want %d", path, p.TotalElements, n)
		}
	}
	for body, titles := range map[string]string{`{"collectionId":{"operator":"is","value":"` + zoo + `"}}`: "Able, Baker", `{"collectionId":{"operator":"isNot","value":"` + zoo + `"}}`: "",
		`{"collectionId":{"operator":"isNot","value":"want-to-read"}}`: "Baker"} {
		if got := list(t, me, "POST", "/v1/series/list", `{"condition":`+body+`}`).titles(); got != titles {
			t.Errorf("%s: %s, want %s", body, got, titles)
		}
	}
	// A condition may have eight levels, whatever else is asked for. Accents may be apart from their letters.
	s.DB.Exec(t, "update collection set condition = $2 where id = $1", old,
		strings.Repeat(`{"allOf":[`, 7)+`{"year":{"operator":"lt","value":2001}}`+strings.Repeat(`]}`, 7))
	s.DB.Exec(t, "update collection set name = 'Zoé' where id = $1", zoo)
	s.DB.Exec(t, `update series set authors = '[{"name":"Zoé","role":"writer"}]' where id = $1`, able)
	for path, titles := range map[string]string{"/v1/collections/" + old + "/series?sort=metadata.titleSort,asc": "Able", "/v1/collections/" + old + "/series?search=baker": "",
		"/v1/series?collection_id=" + old + "&status=ENDED": "Able", "/v1/series?collection_id=x": ""} {
		if got := list(t, me, "GET", path, nil).titles(); got != titles {
			t.Errorf("%s: %s, want %s", path, got, titles)
		}
	}
	for _, path := range []string{"/v1/collections?search=ZOE%CC%81", "/v2/authors?search=zoe%CC%81"} {
		if p := list(t, me, "GET", path, nil); p.TotalElements != 1 {
			t.Errorf("%s: %d", path, p.TotalElements)
		}
	}
	s.DB.Exec(t, "update collection set name = 'Zoo' where id = $1", zoo)
	for path, names := range map[string]string{"/v1/series/" + able.String() + "/collections": "[{Zoo}]", "/v1/books/" + books[0].String() + "/readlists": "[{Best}]",
		"/v1/books/" + books[2].String() + "/readlists": "[]"} {
		var got []struct{ Name string }
		if me.Do("GET", root+path, nil).Want(200).JSON(&got); fmt.Sprint(got) != names {
			t.Errorf("%s: %v, want %s", path, got, names)
		}
	}
	for _, path := range []string{"/v1/collections/" + ids["Best"].String(), "/v1/readlists/" + ids["Zoo"].String() + "/books", "/v1/collections/" + uuid.NewString() + "/series",
		"/v1/series/" + uuid.NewString() + "/collections", "/v1/books/" + books[4].String() + "/readlists"} {
		me.Do("GET", root+path, nil).Want(404)
	}
}

// No list may scan a whole content table.
func TestPlans(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me := s.User(t, "one", "reader")
	library, series := s.Crowd(t, s.One, me.ID)
	statements, err := komga.Statements(library, series)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range statements {
		scanned, plan := s.Scans(t, me, q.SQL, q.Args...)
		for _, table := range []string{"book", "series", "progress", "book_metadata"} { // the others are empty
			if slices.Contains(scanned, table) {
				t.Errorf("%s reads all of %s: %s", q.Name, table, plan)
			}
		}
	}
}

// read sets a user's progress in a book.
func read(t testing.TB, s *testkit.Server, c *testkit.Client, book uuid.UUID, completed bool) {
	t.Helper()
	s.DB.Exec(t, `insert into progress (tenant_id, account_id, book_id, id, current_page, completed, completed_at) values ($1, $2, $3, gen_random_uuid(), 2, $4, case when $4 then now() end)
		on conflict (tenant_id, account_id, book_id) do update set completed = excluded.completed, completed_at = excluded.completed_at, updated_at = now()`, c.Tenant, c.ID, book, completed)
}

// want compares fields; arrays by their printed form.
func want(t testing.TB, got any, members map[string]any) {
	t.Helper()
	m, _ := got.(map[string]any)
	for name, value := range members {
		have, there := m[name]
		if list, ok := have.([]any); ok {
			have = fmt.Sprint(list)
		}
		if list, ok := value.([]any); ok {
			value = fmt.Sprint(list)
		}
		if !there || have != value {
			t.Errorf("%s is %v, want %v", name, have, value)
		}
	}
}

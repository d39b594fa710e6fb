package series_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

func routes(a *httpapi.API, d *db.DB) { series.Routes(a, d, nil, nil) }

func exec(t testing.TB, s *testkit.Server, sql string, args ...any) {
	t.Helper()
	s.DB.Exec(t, sql, args...)
}

func newLibrary(t testing.TB, s *testkit.Server, tenant uuid.UUID, name string) uuid.UUID {
	t.Helper()
	id := uuid.New()
	exec(t, s, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, $3, 's3://b/' || $3, 'b', $3, 'series_volume', 'filename', 'file_order')`, tenant, id, name)
	return id
}

// newSeries creates a series with n books of ten pages; nth makes its dates and year unique.
func newSeries(t testing.TB, s *testkit.Server, tenant, library uuid.UUID, name string, nth, n int) (id uuid.UUID, books []uuid.UUID) {
	t.Helper()
	id = uuid.New()
	for range n {
		books = append(books, uuid.New())
	}
	exec(t, s, `insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title, year, created_at)
		values ($1, $2, $3, 'x/' || $4, $4, $4, $4, lower($4), 2000 + $5::integer, now() + $5::integer * interval '1 minute')`, tenant, id, library, name, nth)
	exec(t, s, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, number, volume, page_count, analyzed)
		select $1, u.id, $2, $3, $4 || '/' || u.n, 100, now(), 'cbz', $4 || ' ' || u.n, $4 || ' ' || u.n, lower($4), u.n, u.n, 10, true
		from unnest($5::uuid[]) with ordinality as u(id, n)`, tenant, library, id, name, books)
	exec(t, s, "update series set updated_at = now() - $2::integer * interval '1 minute' where id = $1", id, nth)
	return id, books
}

func read(t testing.TB, s *testkit.Server, c *testkit.Client, book uuid.UUID, completed bool, minutes int) {
	t.Helper()
	exec(t, s, `insert into progress (tenant_id, account_id, book_id, id, current_page, completed, updated_at)
		values ($1, $2, $3, gen_random_uuid(), 3, $4, now() - $5 * interval '1 minute')`, c.Tenant, c.ID, book, completed, minutes)
}

func titles(t testing.TB, r *testkit.Response) (string, int) {
	t.Helper()
	var page struct {
		Data []struct {
			Title string `json:"title"`
		} `json:"data"`
		Total int `json:"total"`
	}
	r.Want(200).JSON(&page)
	var out []string
	for _, b := range page.Data {
		out = append(out, b.Title)
	}
	return strings.Join(out, ","), page.Total
}

func TestLists(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me, other := s.User(t, "one", "reader"), s.User(t, "one", "reader")
	comics, manga := newLibrary(t, s, s.One, "comics"), newLibrary(t, s, s.One, "manga")
	foreign := newLibrary(t, s, s.Two, "comics")
	newSeries(t, s, s.Two, foreign, "Foreign", 9, 1)
	_, as := newSeries(t, s, s.One, comics, "A 2", 1, 2)
	_, bs := newSeries(t, s, s.One, comics, "A 10", 2, 1)
	_, cs := newSeries(t, s, s.One, manga, "C", 3, 3)
	newSeries(t, s, s.One, manga, "D", 4, 0)
	exec(t, s, "update series set year = null where title = 'C'")
	read(t, s, me, as[0], true, 10)
	read(t, s, me, as[1], true, 9)
	read(t, s, me, bs[0], false, 5)
	read(t, s, me, cs[0], true, 20)
	read(t, s, other, cs[1], false, 1)

	for _, c := range []struct {
		path, want string
		total      int
	}{
		{"", "A 2,A 10,C,D", 4},
		{"?sort=name,desc", "D,C,A 10,A 2", 4},
		{"?sort=relevance", "A 2,A 10,C,D", 4}, // nothing is searched for
		{"?sort=score,desc", "A 2,A 10,C,D", 4},
		{"/recently-added?pageSize=2&sort=score", "D,C", 4},
		{"/recently-added?pageSize=2&sort=relevance,desc", "D,C", 4},
		{"?sort=name&order=desc&page_size=1&page=2", "C", 4},
		{"?libraryId=" + manga.String(), "C,D", 2},
		{"?library_id=" + foreign.String(), "", 0},
		{"?sort=date_added,desc", "D,C,A 10,A 2", 4},
		{"?sort=created_at,desc", "D,C,A 10,A 2", 4},
		{"?sort=year,desc", "D,A 10,A 2,C", 4},
		{"?sort=updated_at,desc", "A 2,A 10,C,D", 4},
		{"?sort=date_updated,desc", "A 2,A 10,C,D", 4},
		{"?sort=release_date&pageSize=1", "A 2", 4},
		{"?sort=release_date,desc", "D,A 10,A 2,C", 4},
		{"?sort=release_date", "A 2,A 10,D,C", 4},
		{"?sort=release_date,desc&libraryId=" + manga.String(), "D,C", 2},
		{"?sort=book_count,desc", "C,A 2,A 10,D", 4},
		{"?sort=file_size,desc&pageSize=1", "C", 4},
		{"?sort=page_count&pageSize=1", "D", 4},
		{"?sort=filename", "A 10,A 2,C,D", 4},
		{"?sort=date_read,desc", "A 10,A 2,C,D", 4},
		{"?sort=date_read", "C,A 2,A 10,D", 4},
		{"?sort=date_read,desc&pageSize=2", "A 10,A 2", 4},
		{"?sort=date_read,desc&pageSize=2&page=2", "C,D", 4},
		{"?sort=date_read,desc&pageSize=1&page=4", "D", 4},
		{"?sort=date_read,desc&pageSize=3&page=2", "D", 4},
		{"?sort=date_read,desc&libraryId=" + manga.String(), "C,D", 2},
		{"/in-progress", "A 10", 1},
		{"/in-progress?libraryId=" + manga.String(), "", 0},
		{"/recently-added?pageSize=2", "D,C", 4},
		{"/recently-added?pageSize=2&order=asc", "A 2,A 10", 4},
		{"/recently-added?pageSize=2&sort=name&order=desc", "D,C", 4},
		{"/recently-updated?pageSize=2", "A 2,A 10", 4},
		{"/recently-updated?pageSize=2&order=asc", "D,C", 4},
		{"/recently-added?libraryId=" + comics.String(), "A 10,A 2", 2},
	} {
		if got, total := titles(t, me.Do("GET", "/api/v1/series"+c.path, nil)); got != c.want || total != c.total {
			t.Errorf("%s: %s, total %d; want %s, %d", c.path, got, total, c.want, c.total)
		}
	}
	for _, c := range []struct {
		body, want string
		total      int
	}{
		{`{}`, "A 2,A 10,C,D", 4},
		{`{"condition":{"name":{"operator":"beginsWith","value":"a "}}}`, "A 2,A 10", 2},
		{`{"condition":{"readStatus":{"operator":"is","value":"read"}}}`, "A 2", 1},
		{`{"condition":{"readStatus":{"operator":"is","value":"in_progress"}}}`, "A 10,C", 2},
		{`{"condition":{"readStatus":{"operator":"is","value":"unread"}}}`, "D", 1},
		{`{"condition":{"readStatus":{"operator":"isNot","value":"read"}}}`, "A 10,C,D", 3},
		{`{"condition":{"anyOf":[{"title":{"operator":"is","value":"d"}},{"allOf":[{"libraryId":{"operator":"isNot","value":"` + manga.String() + `"}},{"read_status":{"operator":"isNot","value":"in_progress"}}]}]}}`, "A 2,D", 2},
	} {
		if got, total := titles(t, me.Do("POST", "/api/v1/series/list?sort=name,asc", c.body)); got != c.want || total != c.total {
			t.Errorf("%s: %s, total %d; want %s, %d", c.body, got, total, c.want, c.total)
		}
	}
	if got, _ := titles(t, me.Do("POST", "/api/v1/series/list?sort=date_read,desc", `{"condition":{"readStatus":{"operator":"isNot","value":"read"}}}`)); got != "A 10,C,D" {
		t.Errorf("a condition by date read: %s", got)
	}
	if got, _ := titles(t, other.Do("GET", "/api/v1/series?sort=date_read,desc", nil)); got != "C,A 2,A 10,D" {
		t.Errorf("the order of another user: %s", got)
	}
}

// Every list has the same members in any order; with sort, its order is that of the list of all series.
func TestEveryListIsSorted(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me := s.User(t, "one", "reader")
	comics := newLibrary(t, s, s.One, "comics")
	// They have equal numbers of books and equal years, so the ids decide.
	for i, name := range []string{"A", "B", "C", "D", "E"} {
		_, books := newSeries(t, s, s.One, comics, name, i/2, 2)
		if name != "C" {
			read(t, s, me, books[0], false, []int{30, 20, 0, 25, 20}[i])
			read(t, s, me, books[1], true, []int{10, 50, 0, 40, 60}[i]) // A was read last, but has no open book
		}
	}
	exec(t, s, "update series set year = null where name = 'D'")
	of := "/api/v1/libraries/" + comics.String() + "/series"
	for _, path := range []string{"/api/v1/series/in-progress", of + "/in-progress", "/api/v1/series/recently-added", of + "/recently-added",
		"/api/v1/series/recently-updated", of + "/recently-updated"} {
		own, total := titles(t, me.Do("GET", path, nil))
		ascending := strings.Split(own, ",") // a direction without a field applies to the list of new series
		if strings.Contains(path, "/recently-") {
			slices.Reverse(ascending)
		}
		if got, _ := titles(t, me.Do("GET", path+"?order=asc", nil)); got != strings.Join(ascending, ",") || total < 4 {
			t.Errorf("%s: %s, total %d; with a direction that has no field %s", path, own, total, got)
		}
		for _, field := range []string{"name", "date_added", "date_updated", "release_date", "date_read", "book_count", "file_size", "filename", "page_count"} {
			for _, sort := range []string{"?sort=" + field, "?sort=" + field + ",desc", "?sort=" + field + "&order=desc"} {
				all, _ := titles(t, me.Do("GET", "/api/v1/series"+sort, nil))
				want := slices.DeleteFunc(strings.Split(all, ","), func(title string) bool { return !strings.Contains(own, title) })
				if got, n := titles(t, me.Do("GET", path+sort, nil)); got != strings.Join(want, ",") || n != total {
					t.Errorf("%s%s: %s, total %d; want %v, %d", path, sort, got, n, want, total)
				}
				if got, n := titles(t, me.Do("GET", path+sort+"&pageSize=2&page=2", nil)); got != strings.Join(want[2:4], ",") || n != total {
					t.Errorf("%s%s, page 2: %s, total %d; want %v, %d", path, sort, got, n, want[2:4], total)
				}
			}
		}
		for _, bad := range []string{"nonsense", "name,up", "chapter_number"} {
			if m := me.Do("GET", path+"?sort="+bad, nil).Want(400).Map(); m["details"].([]any)[0].(map[string]any)["field"] != "sort" {
				t.Errorf("%s: %v", path, m)
			}
		}
	}
}

func TestRecord(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me := s.User(t, "one", "reader")
	comics := newLibrary(t, s, s.One, "comics")
	id, books := newSeries(t, s, s.One, comics, "A", 1, 3)
	one := "/api/v1/series/" + id.String()
	exec(t, s, "update book set chapter = 7.5 where id = $1", books[2])

	got := me.Do("GET", one, nil).Want(200).Map()
	for k, v := range map[string]any{"id": id.String(), "libraryId": comics.String(), "libraryName": "comics", "title": "A", "titleSort": "A",
		"path": "s3://b/comics/x/A", "bookCount": 3.0, "unreadCount": 3.0, "localMaxVolume": 3.0, "localMaxChapter": 7.5, "volumesOwned": 2.0,
		"hasCustomCover": false, "selectedCoverSource": "first_book", "wantToRead": false, "tracked": false, "year": 2001.0, "readCount": 0.0,
		"summary": nil, "publisher": nil, "upstreamChapterGap": nil, "upstreamVolumeGap": nil, "upstreamGapProvider": nil, "lastCompletedAt": nil} {
		if have, ok := got[k]; !ok || have != v {
			t.Errorf("%s = %v (present %v), want %v", k, have, ok, v)
		}
	}
	for _, k := range []string{"genres", "tags", "alternateTitles", "externalIds", "externalLinks", "externalRatings"} {
		if list, ok := got[k].([]any); !ok || len(list) != 0 {
			t.Errorf("%s = %v, want []", k, got[k])
		}
	}
	m := got["metadata"].(map[string]any)
	if locks := m["locks"].(map[string]any); len(locks) != 18 || locks["title"] != false || m["title"] != "A" || m["authors"] != nil {
		t.Errorf("metadata: %v", m)
	}

	genre := uuid.New()
	exec(t, s, `update series set authors = '[{"name":"N","role":"writer"}]', custom_metadata = '{"a_b":1}', locks = '{title}', status = 'ended',
		total_chapter_count = 10.5 where id = $1`, id)
	exec(t, s, "insert into genre (tenant_id, id, name) values ($1, $2, 'Drama')", s.One, genre)
	exec(t, s, "insert into series_genre (tenant_id, series_id, genre_id) values ($1, $2, $3)", s.One, id, genre)
	exec(t, s, "insert into alternate_title (tenant_id, id, series_id, label, title) values ($1, gen_random_uuid(), $2, 'en', 'The A')", s.One, id)
	exec(t, s, "insert into external_id (tenant_id, id, series_id, source, external_id) values ($1, gen_random_uuid(), $2, 'comicinfo', '7')", s.One, id)
	exec(t, s, "insert into external_link (tenant_id, id, series_id, source_name, url) values ($1, gen_random_uuid(), $2, 'web', 'https://x')", s.One, id)
	exec(t, s, "insert into external_rating (tenant_id, id, series_id, source_name, rating) values ($1, gen_random_uuid(), $2, 'web', 81.5)", s.One, id)
	read(t, s, me, books[0], true, 1)
	read(t, s, me, books[1], false, 1)
	for i, b := range books { // the first book three times, the others twice
		for n := range 2 {
			exec(t, s, `insert into completion (tenant_id, id, account_id, book_id, started_at, completed_at)
				values ($1, gen_random_uuid(), $2, $3, '2024-01-01', '2024-01-01T00:00:00Z'::timestamptz + $4::integer * interval '1 day')`, s.One, me.ID, b, 10*n+i)
		}
	}
	exec(t, s, `insert into completion (tenant_id, id, account_id, book_id, started_at, completed_at) values ($1, gen_random_uuid(), $2, $3, '2024-06-01', '2024-06-01')`, s.One, me.ID, books[0])
	got = me.Do("GET", one, nil).Want(200).Map()
	if got["unreadCount"] != 2.0 || got["readCount"] != 2.0 || got["lastCompletedAt"] != "2024-01-13T00:00:00Z" {
		t.Errorf("reading: %v, %v, %v", got["unreadCount"], got["readCount"], got["lastCompletedAt"])
	}
	m = got["metadata"].(map[string]any)
	author := m["authors"].([]any)[0].(map[string]any)
	if sortName, ok := author["sortName"]; author["name"] != "N" || !ok || sortName != nil || m["customMetadata"].(map[string]any)["a_b"] != 1.0 ||
		m["locks"].(map[string]any)["title"] != true || m["status"] != "ended" || m["totalChapterCount"] != 10.5 {
		t.Errorf("metadata: %v", m)
	}
	first := func(k string) map[string]any { return got[k].([]any)[0].(map[string]any) }
	if first("genres")["seriesCount"] != 1.0 || first("alternateTitles")["label"] != "en" || first("externalIds")["source"] != "comicinfo" ||
		first("externalLinks")["url"] != "https://x" || first("externalRatings")["rating"] != 81.5 || first("externalIds")["seriesId"] != id.String() {
		t.Errorf("lists: %v", got)
	}
	exec(t, s, "update book set deleted_at = now() where id = any($1)", books[1:])
	got = me.Do("GET", one, nil).Want(200).Map()
	if got["bookCount"] != 1.0 || got["unreadCount"] != 0.0 || got["readCount"] != 3.0 || got["localMaxVolume"] != 1.0 || got["localMaxChapter"] != nil {
		t.Errorf("with two files gone: %v", got)
	}
}

func TestBooksAndActions(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me, maintainer := s.User(t, "one", "reader"), s.User(t, "one", "maintainer")
	comics := newLibrary(t, s, s.One, "comics")
	id, books := newSeries(t, s, s.One, comics, "A", 1, 12)
	empty, _ := newSeries(t, s, s.One, comics, "E", 1, 0)
	one := "/api/v1/series/" + id.String()
	exec(t, s, "update book set deleted_at = now(), number = null where id = $1", books[0])

	if got, total := titles(t, me.Do("GET", one+"/books?pageSize=3", nil)); got != "A 2,A 3,A 4" || total != 11 {
		t.Errorf("books: %s, %d", got, total)
	}
	if got, total := titles(t, me.Do("GET", one+"/books?includeDeleted=true&pageSize=11&page=2", nil)); got != "A 1" || total != 12 {
		t.Errorf("with deleted: %s, %d", got, total)
	}
	exec(t, s, "update book set page_count = 99 where id = $1", books[6])
	for _, c := range []struct{ query, want string }{
		{"?order=desc&pageSize=2", "A 12,A 11"},
		{"?sort=relevance&pageSize=2", "A 2,A 3"},
		{"?sort=number,desc&pageSize=2&page=2", "A 10,A 9"},
		{"?order=desc&includeDeleted=true&pageSize=11&page=2", "A 1"},
		{"?sort=page_count&order=desc&pageSize=1", "A 7"},
		{"?sort=title&includeDeleted=true&pageSize=2", "A 1,A 2"},
		{"?sort=number&includeDeleted=true&pageSize=11&page=2", "A 1"},
	} {
		if got, total := titles(t, me.Do("GET", one+"/books"+c.query, nil)); got != c.want || total < 11 {
			t.Errorf("books %s: %s, %d; want %s", c.query, got, total, c.want)
		}
	}
	for _, bad := range []string{"nonsense", "title,up", "name"} {
		if m := me.Do("GET", one+"/books?sort="+bad, nil).Want(400).Map(); m["details"].([]any)[0].(map[string]any)["field"] != "sort" {
			t.Errorf("books sorted by %s: %v", bad, m)
		}
	}
	if got := me.Do("POST", one+"/read", nil).Want(200).Map(); got["count"] != 11.0 || got["message"] == "" {
		t.Errorf("read: %v", got)
	}
	if got := me.Do("GET", one, nil).Want(200).Map(); got["unreadCount"] != 0.0 || got["readCount"] != 1.0 || got["lastCompletedAt"] == nil {
		t.Errorf("after reading: %v", got)
	}
	if got := me.Do("POST", one+"/unread", nil).Want(200).Map(); got["count"] != 11.0 {
		t.Errorf("unread: %v", got)
	}
	if got := me.Do("GET", one, nil).Want(200).Map(); got["unreadCount"] != 11.0 || got["readCount"] != 1.0 {
		t.Errorf("after clearing: %v", got)
	}
	if got := me.Do("POST", "/api/v1/series/"+empty.String()+"/read", nil).Want(200).Map(); got["count"] != 0.0 {
		t.Errorf("empty: %v", got)
	}
	first := maintainer.Do("POST", one+"/analyze", nil).Want(200).Map()
	if again := maintainer.Do("POST", one+"/analyze", nil).Want(200).Map(); again["taskId"] != first["taskId"] {
		t.Errorf("asked twice: %v, %v", first, again)
	}
	var kind string
	if err := s.DB.Owner.Pool().QueryRow(context.Background(), "select type from task where id = $1 and series_id = $2 and library_id = $3",
		first["taskId"], id, comics).Scan(&kind); err != nil || kind != "analyze_series" {
		t.Errorf("task: %s, %v", kind, err)
	}
	if other := maintainer.Do("POST", one+"/analyze-unanalyzed", nil).Want(200).Map(); other["taskId"] == first["taskId"] {
		t.Errorf("the analysis of new books is the same task as that of all: %v", other)
	}
	for _, c := range []struct {
		path   string
		body   any
		params string
	}{
		{one + "/title/reprocess", nil, `{"dryRun": false}`},
		{one + "/title/reprocess", map[string]any{"dryRun": true}, `{"dryRun": true}`},
		{"/api/v1/libraries/" + comics.String() + "/series/titles/reprocess", map[string]any{}, `{"dryRun": false}`},
	} {
		got := maintainer.Do("POST", c.path, c.body).Want(200).Map()
		var params string
		if err := s.DB.Owner.Pool().QueryRow(context.Background(), "select params::text from task where id = $1 and type = 'reprocess_series_titles' and library_id = $2",
			got["taskId"], comics).Scan(&params); err != nil || params != c.params {
			t.Errorf("%s: params %s, %v", c.path, params, err)
		}
		if ids, _ := got["taskIds"].([]any); got["success"] != true || got["tasksEnqueued"] != 1.0 || len(ids) != 1 || ids[0] != got["taskId"] || got["message"] == "" {
			t.Errorf("%s: %v", c.path, got)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me, admin, foreign := s.User(t, "one", "reader"), s.User(t, "one", "admin"), s.User(t, "two", "admin")
	id, _ := newSeries(t, s, s.One, newLibrary(t, s, s.One, "comics"), "A", 1, 1)
	one := "/api/v1/series/" + id.String()
	for _, c := range []struct{ method, path, body, field string }{
		{"GET", "?sort=nonsense", "", "sort"},
		{"GET", "?sort=name,sideways", "", "sort"},
		{"GET", "?libraryId=x", "", "libraryId"},
		{"GET", "?pageSize=-1", "", "pageSize"},
		{"GET", "/nonsense", "", "id"},
		{"POST", "/list", `{"condition":{"pageCount":{"operator":"gt","value":1}}}`, "condition.pageCount"},
		{"POST", "/list", `{"condition":{"name":{"operator":"is"}}}`, "condition.name.value"},
		{"POST", "/list?sort=nonsense", `{"fullTextSearch":"x"}`, "sort"},
		{"POST", "/list", `{"fullTextSearch":"` + strings.Repeat("x", 1001) + `"}`, "fullTextSearch"},
		{"POST", "/search", `{"query":"` + strings.Repeat("x", 1001) + `"}`, "query"},
		{"POST", "/search", `{}`, "query"},
		{"POST", "/search?sort=nonsense", `{"query":""}`, "sort"},
		{"POST", "/search", `{"query":"x","libraryId":"x"}`, "libraryId"},
	} {
		var body any
		if c.body != "" {
			body = c.body
		}
		m := me.Do(c.method, "/api/v1/series"+c.path, body).Want(400).Map()
		details, _ := m["details"].([]any)
		if len(details) == 0 || details[0].(map[string]any)["field"] != c.field {
			t.Errorf("%s %s: %v", c.path, c.body, m)
		}
	}
	noSeries, noBooks := s.Key(t, admin, auth.BooksRead), s.Key(t, admin, auth.SeriesRead)
	for _, c := range []struct {
		method, path, body string
		lacking            *testkit.Client
	}{
		{"GET", "/api/v1/series", "", noSeries},
		{"POST", "/api/v1/series/list", `{}`, noSeries},
		{"GET", "/api/v1/series/in-progress", "", noSeries},
		{"GET", "/api/v1/series/recently-added", "", noSeries},
		{"GET", "/api/v1/series/recently-updated", "", noSeries},
		{"GET", one, "", noSeries},
		{"GET", one + "/books", "", noBooks},
		{"POST", one + "/read", "", noBooks},
		{"POST", one + "/unread", "", noBooks},
		{"POST", one + "/analyze", "", me},
	} {
		var body any
		if c.body != "" {
			body = c.body
		}
		c.lacking.Do(c.method, c.path, body).Want(403)
		s.Anonymous(t, "one").Do(c.method, c.path, body).Want(401)
		res := foreign.Do(c.method, c.path, body)
		if strings.HasPrefix(c.path, one) {
			res.Want(404)
		} else if m := res.Want(200).Map(); m["total"] != 0.0 || !slices.Equal(m["data"].([]any), []any{}) {
			t.Errorf("%s shows another tenant %v", c.path, m)
		}
	}
}

package book_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/testkit"
)

func TestLists(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me := s.User(t, "one", "reader")
	comics, manga := library(t, s, s.One, "comics"), library(t, s, s.One, "manga")
	a, as := series(t, s, s.One, comics, "A", 10)
	b, bs := series(t, s, s.One, manga, "B", 2)
	foreign := library(t, s, s.Two, "comics")
	series(t, s, s.Two, foreign, "Foreign", 1)
	_, gone := series(t, s, s.One, comics, "Gone", 1)
	exec(t, s, "update book set deleted_at = now(), number = null where id = $1", gone[0])
	exec(t, s, "update book set page_count = 99 where id = $1", as[4])
	exec(t, s, "update book set number = null where id = $1", bs[1])

	for _, c := range []struct {
		query string
		want  string
		total int
	}{
		{"", "A 1,A 2,A 3,A 4,A 5,A 6,A 7,A 8,A 9,A 10,B 1,B 2", 12},
		{"?sort=title,desc&page_size=2", "B 2,B 1", 12},
		{"?sort=relevance&pageSize=2", "A 1,A 2", 12}, // nothing is searched for
		{"?sort=relevance,desc&pageSize=2", "A 1,A 2", 12},
		{"?sort=title&order=desc&pageSize=2&page=2", "A 10,A 9", 12},
		{"?page=3&pageSize=5", "B 1,B 2", 12},
		{"?page=9&pageSize=5", "", 12},
		{"?libraryId=" + manga.String(), "B 1,B 2", 2},
		{"?library_id=" + comics.String() + "&pageSize=1", "A 1", 10},
		{"?seriesId=" + b.String(), "B 1,B 2", 2},
		{"?series_id=" + a.String() + "&sort=number,desc&pageSize=2", "A 10,A 9", 10},
		{"?series_id=" + a.String() + "&order=desc&pageSize=2", "A 10,A 9", 10},
		{"?seriesId=" + a.String() + "&libraryId=" + manga.String(), "", 0},
		{"?libraryId=" + foreign.String(), "", 0},
		{"?seriesId=" + uuid.NewString(), "", 0},
		{"?sort=number,desc&pageSize=11&page=2", "B 2", 12},
		{"?sort=number,desc&pageSize=1", "A 10", 12},
		{"?series_id=" + b.String() + "&order=desc", "B 1,B 2", 2},
		{"?sort=file_size,desc&pageSize=1", "A 10", 12},
		{"?sort=page_count,desc&pageSize=1", "A 5", 12},
		{"?sort=created_at,desc&pageSize=1", "A 10", 12},
		{"?sort=modified_at&pageSize=1", "A 10", 12},
		{"?seriesId=" + b.String() + "&sort=number", "B 1,B 2", 2},
		{"?includeDeleted=true&sort=title,desc&pageSize=1", "Gone 1", 13},
		{"?includeDeleted=false&sort=title,desc&pageSize=1", "B 2", 12},
	} {
		got, total := titles(t, me.Do("GET", "/api/v1/books"+c.query, nil))
		if strings.Join(got, ",") != c.want || total != c.total {
			t.Errorf("%s: %v, total %d; want %s, %d", c.query, got, total, c.want, c.total)
		}
	}
	for query, want := range map[string]string{"": "A 10,A 9", "&order=asc": "A 1,A 2", "&order=desc": "A 10,A 9", "&sort=title&order=desc": "A 10,A 9", "&sort=title": "A 1,A 2", "&sort=relevance": "A 10,A 9"} {
		for _, path := range []string{"/books/recently-added?libraryId=" + comics.String(), "/libraries/" + comics.String() + "/books/recently-added?"} {
			if got, total := titles(t, me.Do("GET", "/api/v1"+path+"&pageSize=2"+query, nil)); strings.Join(got, ",") != want || total != 10 {
				t.Errorf("%s %s: %v, %d", path, query, got, total)
			}
		}
	}
	inLibrary := "/api/v1/libraries/" + comics.String() + "/books?pageSize=1&sort=title,desc&includeDeleted=true"
	if got, total := titles(t, me.Do("GET", inLibrary, nil)); strings.Join(got, ",") != "Gone 1" || total != 11 {
		t.Errorf("with the deleted one of a library: %v, %d", got, total)
	}
	me.Do("GET", "/api/v1/books/in-progress?includeDeleted=true", nil).Want(400)
	for _, c := range []struct {
		body  string
		want  string
		total int
	}{
		{`{}`, "A 1", 12},
		{`{"condition":null}`, "A 1", 12},
		{`{"includeDeleted":true,"condition":{"title":{"operator":"beginsWith","value":"gone"}}}`, "Gone 1", 1},
		{`{"condition":{"title":{"operator":"beginsWith","value":"gone"}}}`, "", 0},
		{`{"condition":{"allOf":[{"libraryId":{"operator":"is","value":"` + manga.String() + `"}},{"name":{"operator":"contains","value":"2"}}]}}`, "B 2", 1},
		{`{"condition":{"anyOf":[{"series_id":{"operator":"is","value":"` + b.String() + `"}},{"title":{"operator":"is","value":"a 7"}}]}}`, "A 7", 3},
		{`{"condition":{"readStatus":{"operator":"isNot","value":"unread"}}}`, "", 0},
	} {
		got, total := titles(t, me.Do("POST", "/api/v1/books/list?pageSize=1&sort=title,asc", c.body))
		if strings.Join(got, ",") != c.want || total != c.total {
			t.Errorf("%s: %v, total %d; want %s, %d", c.body, got, total, c.want, c.total)
		}
	}
}

func TestListsOfReading(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me, other := s.User(t, "one", "reader"), s.User(t, "one", "reader")
	comics, manga := library(t, s, s.One, "comics"), library(t, s, s.One, "manga")
	_, as := series(t, s, s.One, comics, "A", 3) // 1 read, 2 open
	_, bs := series(t, s, s.One, manga, "B", 3)  // 1 and 3 read: 2 is on deck
	_, cs := series(t, s, s.One, comics, "C", 2) // all read
	_, ds := series(t, s, s.One, comics, "D", 3) // 1 read, 2 gone: 3 is on deck
	_, es := series(t, s, s.One, comics, "E", 2) // only the gone book is open, the other one read: nothing is on deck
	series(t, s, s.One, comics, "F", 2)          // untouched
	read(t, s, me, as[0], true, 50)
	read(t, s, me, as[1], false, 40)
	read(t, s, me, bs[0], true, 90)
	read(t, s, me, bs[2], true, 5)
	read(t, s, me, cs[0], true, 3)
	read(t, s, me, cs[1], true, 2)
	read(t, s, me, ds[0], true, 60)
	read(t, s, me, es[0], true, 70)
	read(t, s, me, es[1], false, 1)
	exec(t, s, "update book set deleted_at = now() where id = any($1)", []uuid.UUID{ds[1], es[1]})
	read(t, s, other, as[2], false, 1)

	for _, c := range []struct {
		path, want string
		total      int
	}{
		{"/books/in-progress", "A 2", 1},
		{"/progress/currently-reading", "A 2", 1},
		{"/books/in-progress?libraryId=" + manga.String(), "", 0},
		{"/books/on-deck", "B 2,D 3", 2},
		{"/books/on-deck?library_id=" + manga.String(), "B 2", 1},
		{"/books/on-deck?pageSize=1&page=2", "D 3", 2},
		{"/books/recently-read", "C 2,C 1,B 3,A 2,A 1,D 1,E 1,B 1", 8},
		{"/books/recently-read?pageSize=2&page=2", "B 3,A 2", 8},
		{"/books/recently-read?libraryId=" + manga.String(), "B 3,B 1", 2},
	} {
		got, total := titles(t, me.Do("GET", "/api/v1"+c.path, nil))
		if strings.Join(got, ",") != c.want || total != c.total {
			t.Errorf("%s: %v, total %d; want %s, %d", c.path, got, total, c.want, c.total)
		}
	}
	for status, want := range map[string]string{"read": "A 1,B 1,B 3,C 1,C 2,D 1,E 1", "in_progress": "A 2", "unread": "A 3,B 2,D 3,F 1,F 2"} {
		body := `{"condition":{"readStatus":{"operator":"is","value":"` + status + `"}}}`
		if got, total := titles(t, me.Do("POST", "/api/v1/books/list", body)); strings.Join(got, ",") != want || total != len(got) {
			t.Errorf("%s: %v, %d; want %s", status, got, total, want)
		}
	}
	if got, _ := titles(t, other.Do("GET", "/api/v1/books/in-progress", nil)); !slices.Equal(got, []string{"A 3"}) {
		t.Errorf("another user reads %v", got)
	}
	var list struct {
		Data []struct {
			ReadProgress map[string]any `json:"readProgress"`
		} `json:"data"`
	}
	me.Do("GET", "/api/v1/books/in-progress", nil).JSON(&list)
	if p := list.Data[0].ReadProgress; p["currentPage"] != 3.0 || p["progressPercentage"] != 0.3 || p["completed"] != false || p["userId"] != me.ID.String() {
		t.Errorf("progress in the list: %v", p)
	}
}

// A begun book whose file is gone does not keep the next book of its series off the deck.
func TestDeckWithoutGoneBooks(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me := s.User(t, "one", "reader")
	_, books := series(t, s, s.One, library(t, s, s.One, "comics"), "A", 3)
	read(t, s, me, books[0], true, 2)
	read(t, s, me, books[1], false, 1)
	if got, total := titles(t, me.Do("GET", "/api/v1/books/on-deck", nil)); len(got) != 0 || total != 0 {
		t.Errorf("while a book is open: %v, %d", got, total)
	}
	exec(t, s, "update book set deleted_at = now() where id = $1", books[1])
	if got, total := titles(t, me.Do("GET", "/api/v1/books/on-deck", nil)); !slices.Equal(got, []string{"A 3"}) || total != 1 {
		t.Errorf("its file is gone: %v, %d", got, total)
	}
}

// Every list has the same members in any order; with sort, its order is that of the list of all books.
func TestEveryListIsSorted(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me := s.User(t, "one", "reader")
	comics := library(t, s, s.One, "comics")
	for i, name := range []string{"A", "B", "C", "D"} { // numbers, sizes and pages are equal: the ids decide
		_, books := series(t, s, s.One, comics, name, 4)
		read(t, s, me, books[0], true, 50-i)
		read(t, s, me, books[3], i%2 == 0, 20+i)
		exec(t, s, "update book set page_count = 40 - $2::integer where id = $1", books[1], i)
		exec(t, s, "update book set number = null where id = $1", books[3])
		exec(t, s, "update book set error_type = 'killed', error_at = now() - $2::integer * interval '1 hour' where id = any($1)", books[2:], i)
	}
	of := "/api/v1/libraries/" + comics.String()
	for _, path := range []string{"/api/v1/books/in-progress", of + "/books/in-progress", "/api/v1/progress/currently-reading", "/api/v1/books/on-deck",
		of + "/books/on-deck", "/api/v1/books/recently-read", of + "/books/recently-read", "/api/v1/books/recently-added",
		of + "/books/recently-added", "/api/v1/books/errors"} {
		own, total := ids(t, me.Do("GET", path, nil))
		if len(own) < 2 {
			t.Fatalf("%s: %v", path, own)
		}
		ascending := slices.Clone(own) // a direction without a field applies to the list of new books
		if strings.HasSuffix(path, "/recently-added") {
			slices.Reverse(ascending)
		}
		if got, _ := ids(t, me.Do("GET", path+"?order=asc", nil)); !slices.Equal(got, ascending) {
			t.Errorf("%s: with a direction and no field %v, want %v", path, got, ascending)
		}
		for _, field := range []string{"title", "number", "file_size", "page_count", "created_at", "modified_at", "series", "filename", "last_read", "release_date", "chapter_number", "date_added", "read_date"} {
			for _, sort := range []string{"?sort=" + field, "?sort=" + field + ",desc", "?sort=" + field + "&order=desc"} {
				all, _ := ids(t, me.Do("GET", "/api/v1/books"+sort, nil))
				want := slices.DeleteFunc(all, func(id uuid.UUID) bool { return !slices.Contains(own, id) })
				if got, n := ids(t, me.Do("GET", path+sort, nil)); !slices.Equal(got, want) || n != total {
					t.Errorf("%s%s: %v, total %d; want %v, %d", path, sort, got, n, want, total)
				}
				if got, n := ids(t, me.Do("GET", path+sort+"&pageSize=1&page=2", nil)); !slices.Equal(got, want[1:2]) || n != total {
					t.Errorf("%s%s, page 2: %v, total %d; want %v, %d", path, sort, got, n, want[1:2], total)
				}
			}
		}
		for _, bad := range []string{"nonsense", "title,up", "date_updated"} {
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
	comics := library(t, s, s.One, "comics")
	sid, bs := series(t, s, s.One, comics, "A", 2)
	one, genre, tag := "/api/v1/books/"+bs[0].String(), uuid.New(), uuid.New()

	bare := me.Do("GET", one, nil).Want(200).Map()
	for _, k := range []string{"metadata", "readProgress", "analysisError", "summary", "chapter", "koreaderHash", "lastCompletedAt"} {
		if v, ok := bare[k]; !ok || v != nil {
			t.Errorf("%s = %v (present %v), want null", k, v, ok)
		}
	}
	want := map[string]any{"id": bs[0].String(), "libraryId": comics.String(), "libraryName": "comics", "seriesId": sid.String(), "seriesName": "A",
		"title": "A 1", "titleSort": "A 1", "number": 1.0, "volume": 1.0, "path": "/books/comics/A/A 1.cbz", "fileFormat": "cbz", "fileHash": "f1",
		"fileSize": 100.0, "pageCount": 10.0, "readingDirection": "ttb", "analyzed": true, "deleted": false, "wantToRead": false, "readCount": 0.0}
	for k, v := range want {
		if bare[k] != v {
			t.Errorf("%s = %v, want %v", k, bare[k], v)
		}
	}
	if genres, ok := bare["genres"].([]any); !ok || len(genres) != 0 || !strings.HasSuffix(bare["createdAt"].(string), "Z") {
		t.Errorf("genres %v, createdAt %v", bare["genres"], bare["createdAt"])
	}

	exec(t, s, `insert into book_metadata (tenant_id, book_id, metadata, locks) values ($1, $2,
		'{"summary":"sum","year":2012,"number":"1","authors":[{"name":"W","role":"writer"},{"name":"X","role":"writer"},{"name":"P","role":"penciller"}]}', '{titleLock}')`, s.One, bs[0])
	exec(t, s, "insert into genre (tenant_id, id, name) values ($1, $2, 'Drama')", s.One, genre)
	exec(t, s, "insert into series_genre (tenant_id, series_id, genre_id) values ($1, $2, $3)", s.One, sid, genre)
	exec(t, s, "insert into tag (tenant_id, id, name) values ($1, $2, 'seen')", s.One, tag)
	if of := me.Do("GET", one, nil).Want(200).Map(); len(of["genres"].([]any)) != 0 { // it belongs to the series
		t.Errorf("genres %v", of["genres"])
	}
	exec(t, s, "insert into book_genre (tenant_id, book_id, genre_id) values ($1, $2, $3)", s.One, bs[0], genre)
	exec(t, s, "insert into book_tag (tenant_id, book_id, tag_id) values ($1, $2, $3)", s.One, bs[0], tag)
	exec(t, s, "insert into series_tag (tenant_id, series_id, tag_id) values ($1, $2, $3)", s.One, sid, tag)
	exec(t, s, "update series set reading_direction = 'rtl'")
	exec(t, s, "update book set error_type = 'parser', error_message = 'broken', error_at = '2024-01-02T03:04:05+02' where id = $1", bs[0])
	read(t, s, me, bs[0], true, 1)
	exec(t, s, `insert into completion (tenant_id, id, account_id, book_id, started_at, completed_at, forgotten)
		select $1, gen_random_uuid(), $2, $3, '2024-05-01', '2024-05-01'::date + n, n = 3 from generate_series(1, 3) n`, s.One, me.ID, bs[0])
	full := me.Do("GET", one, nil).Want(200).Map()
	if full["readCount"] != 2.0 || full["lastCompletedAt"] != "2024-05-03T00:00:00Z" {
		t.Errorf("read %v times, the last %v", full["readCount"], full["lastCompletedAt"])
	}
	if again := me.Do("GET", one+"/full", nil).Want(200).Map(); !reflect.DeepEqual(again, full) {
		t.Errorf("/full is %v, not %v", again, full)
	}
	m := full["metadata"].(map[string]any)
	if full["summary"] != "sum" || m["summary"] != "sum" || m["year"] != 2012.0 || m["writer"] != "W, X" || len(m["writers"].([]any)) != 2 ||
		len(m["editors"].([]any)) != 0 || m["editor"] != nil || full["readingDirection"] != "rtl" {
		t.Errorf("metadata: %v", full)
	}
	if locks := m["locks"].(map[string]any); len(locks) != 40 || locks["titleLock"] != true || locks["yearLock"] != false {
		t.Errorf("locks: %v", locks)
	}
	if v, ok := m["publisher"]; !ok || v != nil {
		t.Errorf("publisher is %v, present %v", v, ok)
	}
	if full["analysisError"] != "broken" {
		t.Errorf("error: %v", full["analysisError"])
	}
	if g := full["genres"].([]any)[0].(map[string]any); g["name"] != "Drama" || g["seriesCount"] != 1.0 || full["tags"].([]any)[0].(map[string]any)["name"] != "seen" {
		t.Errorf("genres and tags: %v", full)
	}
	last := uuid.MustParse("ffffffff-ffff-4fff-bfff-ffffffffffff")
	exec(t, s, "insert into genre (tenant_id, id, name) values ($1, $2, 'Action')", s.One, last)
	exec(t, s, "insert into book_genre (tenant_id, book_id, genre_id) values ($1, $2, $3)", s.One, bs[0], last)
	var terms []string // by name, with the number of series that have each
	for _, g := range me.Do("GET", one, nil).Want(200).Map()["genres"].([]any) {
		terms = append(terms, fmt.Sprint(g.(map[string]any)["name"], " ", g.(map[string]any)["seriesCount"]))
	}
	if !slices.Equal(terms, []string{"Action 0", "Drama 1"}) {
		t.Errorf("genres: %v", terms)
	}
	if p := full["readProgress"].(map[string]any); p["completed"] != true || p["bookId"] != bs[0].String() {
		t.Errorf("progress: %v", p)
	}
	if got := s.User(t, "one", "reader").Do("GET", one, nil).Want(200).Map(); got["readProgress"] != nil {
		t.Errorf("another user sees %v", got["readProgress"])
	}
	exec(t, s, "update book set deleted_at = now() where id = $1", bs[1])
	gone := "/api/v1/books/" + bs[1].String()
	me.Do("GET", gone, nil).Want(404)
	if got := me.Do("GET", gone+"?includeDeleted=true", nil).Want(200).Map(); got["deleted"] != true || got["number"] != nil {
		t.Errorf("deleted: %v", got)
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me := s.User(t, "one", "reader")
	_, bs := series(t, s, s.One, library(t, s, s.One, "comics"), "A", 2)
	path := "/api/v1/books/" + bs[0].String() + "/pages"
	exec(t, s, `insert into page_index (tenant_id, book_id, revision, names, types, offsets, lengths, packed, sizes, methods, crcs, widths, heights, file_size, file_etag, file_modified)
		values ($1, $2, 1, '{c/1.jpg,c/2.png,c/3.svg}', '{image/jpeg,image/png,image/svg+xml}', '{0,0,0}', '{1,1,1}', '{1,1,1}', '{10,20,30}',
		'{0,0,0}', '{0,0,0}', '{800,0,1}', '{1200,0,2}', 1, '', now())`, s.One, bs[0])
	all := me.Do("GET", path, nil).Want(200).Map()
	data := all["data"].([]any)
	if all["total"] != 3.0 || len(data) != 3 {
		t.Fatalf("pages: %v", all)
	}
	first, second, third := data[0].(map[string]any), data[1].(map[string]any), data[2].(map[string]any)
	if first["pageNumber"] != 1.0 || first["fileName"] != "c/1.jpg" || first["fileFormat"] != "jpeg" || first["mediaType"] != "image/jpeg" ||
		first["fileSize"] != 10.0 || first["width"] != 800.0 || first["height"] != 1200.0 || first["bookId"] != bs[0].String() {
		t.Errorf("page 1: %v", first)
	}
	if v, ok := second["width"]; !ok || v != nil || third["fileFormat"] != "svg" || first["id"] == second["id"] {
		t.Errorf("pages 2 and 3: %v, %v", second, third)
	}
	var slice struct{ Data []map[string]any }
	me.Do("GET", path+"?page=2&pageSize=2", nil).Want(200).JSON(&slice)
	if len(slice.Data) != 1 || slice.Data[0]["pageNumber"] != 3.0 || slice.Data[0]["id"] != third["id"] {
		t.Errorf("second page of the list: %v", slice.Data)
	}
	if got := me.Do("GET", "/api/v1/books/"+bs[1].String()+"/pages", nil).Want(200).Map(); got["total"] != 0.0 || len(got["data"].([]any)) != 0 {
		t.Errorf("a book that is not analysed: %v", got)
	}
	if got := me.Do("GET", path+"?page=9000000000000000&pageSize=500", nil).Want(200).Map(); got["total"] != 3.0 {
		t.Errorf("far beyond: %v", got)
	}
}

func TestAnalyze(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	maintainer := s.User(t, "one", "maintainer")
	_, bs := series(t, s, s.One, library(t, s, s.One, "comics"), "A", 1)
	path := "/api/v1/books/" + bs[0].String() + "/analyze"
	first := maintainer.Do("POST", path, nil).Want(200).Map()
	if again := maintainer.Do("POST", path, nil).Want(200).Map(); again["taskId"] != first["taskId"] || again["message"] == "" {
		t.Errorf("asked twice: %v and %v", first, again)
	}
	var kind string
	var params []byte
	if err := s.DB.Owner.Pool().QueryRow(context.Background(), "select type, params from task where id = $1 and book_id = $2",
		first["taskId"], bs[0]).Scan(&kind, &params); err != nil {
		t.Fatal(err)
	}
	var p struct {
		BookIDs []uuid.UUID `json:"bookIds"`
		Force   bool        `json:"force"`
	}
	if err := json.Unmarshal(params, &p); err != nil || kind != "analyze_book" || !p.Force || !slices.Equal(p.BookIDs, bs) {
		t.Errorf("task %s %s, %v", kind, params, err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me, foreign, admin := s.User(t, "one", "reader"), s.User(t, "two", "admin"), s.User(t, "one", "admin")
	_, bs := series(t, s, s.One, library(t, s, s.One, "comics"), "A", 1)
	one := "/api/v1/books/" + bs[0].String()
	for _, c := range []struct{ method, path, body, field string }{
		{"GET", "/api/v1/books?sort=nonsense", "", "sort"},
		{"GET", "/api/v1/books?sort=title%3Bdrop", "", "sort"},
		{"GET", "/api/v1/books?sort=title,up", "", "sort"},
		{"GET", "/api/v1/books?sort=title&order=up", "", "order"},
		{"GET", "/api/v1/books?libraryId=1", "", "libraryId"},
		{"GET", "/api/v1/books?page=0", "", "page"},
		{"GET", "/api/v1/books/nonsense", "", "id"},
		{"POST", "/api/v1/books/list", `{"condition":{"nonsense":{"operator":"is","value":"x"}}}`, "condition.nonsense"},
		{"POST", "/api/v1/books/list", `{"condition":{"title":{"operator":"like","value":"x"}}}`, "condition.title.operator"},
		{"POST", "/api/v1/books/list", `{"condition":{"readStatus":{"operator":"is","value":"done"}}}`, "condition.readStatus.value"},
		{"POST", "/api/v1/books/list", `{"condition":[]}`, "condition"},
		{"POST", "/api/v1/books/list", `{"fullTextSearch":"` + strings.Repeat("x", 1001) + `"}`, "fullTextSearch"},
		{"POST", "/api/v1/books/list?sort=score", `{}`, "sort"},
	} {
		var body any
		if c.body != "" {
			body = c.body
		}
		m := me.Do(c.method, c.path, body).Want(400).Map()
		details, _ := m["details"].([]any)
		if len(details) == 0 || details[0].(map[string]any)["field"] != c.field {
			t.Errorf("%s %s: %v", c.path, c.body, m)
		}
	}
	for _, c := range []struct {
		method, path, body string
		single             bool
		lacking            *testkit.Client
	}{
		{"GET", "/api/v1/books", "", false, s.Key(t, admin, auth.SeriesRead)},
		{"POST", "/api/v1/books/list", `{}`, false, s.Key(t, admin, auth.SeriesRead)},
		{"GET", "/api/v1/books/in-progress", "", false, s.Key(t, admin, auth.SeriesRead)},
		{"GET", "/api/v1/books/on-deck", "", false, s.Key(t, admin, auth.SeriesRead)},
		{"GET", "/api/v1/books/recently-added", "", false, s.Key(t, admin, auth.SeriesRead)},
		{"GET", "/api/v1/books/recently-read", "", false, s.Key(t, admin, auth.SeriesRead)},
		{"GET", "/api/v1/progress/currently-reading", "", false, s.Key(t, admin, auth.SeriesRead)},
		{"GET", one, "", true, s.Key(t, admin, auth.SeriesRead)},
		{"GET", one + "/pages", "", true, s.Key(t, admin, auth.BooksRead)},
		{"POST", one + "/analyze", "", true, me},
	} {
		var body any
		if c.body != "" {
			body = c.body
		}
		c.lacking.Do(c.method, c.path, body).Want(403)
		s.Anonymous(t, "one").Do(c.method, c.path, body).Want(401)
		res := foreign.Do(c.method, c.path, body)
		if c.single {
			res.Want(404)
		} else if m := res.Want(200).Map(); m["total"] != 0.0 {
			t.Errorf("%s shows another tenant %v", c.path, m)
		}
	}
}

// A locked reading direction of a series overrides that of its books' files.
func TestReadingDirection(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	_, ids := series(t, s, s.One, library(t, s, s.One, "comics"), "A", 1)
	me := s.User(t, "one", "reader")
	for _, c := range []struct{ file, series, locks, want string }{
		{"", "", "{}", "ttb"}, {"", "", "{readingDirection}", "ttb"}, {"", "rtl", "{}", "rtl"}, {"rtl", "", "{readingDirection}", "rtl"},
		{"rtl", "ltr", "{}", "rtl"}, {"rtl", "ltr", "{readingDirection}", "ltr"},
	} {
		exec(t, s, "update book set reading_direction = nullif($1, '')", c.file)
		exec(t, s, "update series set reading_direction = nullif($1, ''), locks = $2", c.series, c.locks)
		if got := me.Do("GET", "/api/v1/books/"+ids[0].String(), nil).Want(200).Map()["readingDirection"]; got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

package book_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

// line joins values with spaces.
func line(values ...any) string { return strings.TrimSpace(fmt.Sprintln(values...)) }

func TestPeopleAmendMetadata(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var told []string
	s := testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		book.Routes(a, d, func(_ context.Context, _ uuid.UUID, e ...events.Event) {
			mu.Lock()
			defer mu.Unlock()
			for _, one := range e {
				data, err := json.Marshal(one.Data)
				if err != nil {
					t.Error(err)
				}
				var fields struct{ Fields []string }
				if err := json.Unmarshal(data, &fields); err != nil {
					t.Error(err)
				}
				told = append(told, one.Kind+" "+strings.Join(fields.Fields, ","))
			}
		}, nil)
	})
	me, reader, stranger := s.User(t, "one", "maintainer"), s.User(t, "one", "reader"), s.User(t, "two", "admin")
	_, ids := series(t, s, s.One, library(t, s, s.One, "comics"), "A", 2)
	one := "/api/v1/books/" + ids[0].String()
	exec(t, s, `insert into book_metadata (tenant_id, book_id, metadata) values ($1, $2, '{"title": "T", "publisher": "P", "summary": "S",
		"authors": [{"name": "A", "role": "writer"}, {"name": "B", "role": "inker"}]}')
		on conflict (tenant_id, book_id) do update set metadata = excluded.metadata`, s.One, ids[0])
	locked := func(m map[string]any) (out []string) {
		for name, on := range m["locks"].(map[string]any) {
			if on == true {
				out = append(out, strings.TrimSuffix(name, "Lock"))
			}
		}
		slices.Sort(out)
		return out
	}

	m := me.Do("PATCH", one+"/metadata", `{"summary":" New\n","publisher":null,"imprint":" I ","volume":3,"language_iso":"PT_br","isbns":"978-0-7653-5038-1","writer":"C,  D ",
		"year":2012,"month":2,"day":29,"customMetadata":{"shelf_mark":{"a_b":1}},"subjects":[" x"],"manga":true}`).Want(200).Map()
	if got := line(m["bookId"] == ids[0].String(), m["title"], m["summary"], m["publisher"], m["volume"], m["languageIso"], m["isbns"], m["writer"], m["inker"],
		m["releaseDate"], m["customMetadata"], m["subjects"], m["manga"]); got !=
		`true T New <nil> 3 pt-BR ["9780765350381"] C, D B 2012-02-29T00:00:00Z map[shelf_mark:map[a_b:1]] [x] true` {
		t.Errorf("patched: %s", got)
	}
	if m["imprint"] != "I" {
		t.Errorf("imprint %q", m["imprint"])
	}
	if got := fmt.Sprint(locked(m)); got != "[customMetadata day imprint isbns languageIso manga month subjects summary volume writer year]" {
		t.Errorf("locks %s", got)
	}
	if full := me.Do("GET", one, nil).Want(200).Map(); full["volume"] != 3.0 || full["metadata"].(map[string]any)["summary"] != "New" {
		t.Errorf("%v", full)
	}
	m = me.Do("PATCH", one+"/metadata", `{"authors":[{"name":"E","role":"author","sort_name":"E, the"}],"editor":"F"}`).Want(200).Map()
	if got := line(m["authors"], m["editor"], m["writer"]); got != "[map[name:E role:author sortName:E, the] map[name:F role:editor sortName:<nil>]] F <nil>" {
		t.Errorf("authors: %s", got)
	}
	mu.Lock()
	if want := "book_updated summary"; len(told) != 2 || !strings.HasPrefix(told[0], "book_updated ") || told[1] != "book_updated editor,authors" {
		t.Errorf("events %q, want %s", told, want)
	}
	told = nil
	mu.Unlock()
	before := m["updatedAt"]
	if m = me.Do("PATCH", one+"/metadata", `{}`).Want(200).Map(); m["updatedAt"] != before || m["summary"] != "New" || len(told) != 0 {
		t.Errorf("an empty change did something: %v", m)
	}
	m = me.Do("PUT", one+"/metadata", `{"summary":"Only"}`).Want(200).Map()
	if got := line(m["title"], m["summary"], m["volume"], m["languageIso"], m["authors"], m["customMetadata"], m["year"]); got != "T Only <nil> <nil> <nil> <nil> <nil>" {
		t.Errorf("replaced: %s", got)
	}
	titled := func(title, sort, locks string) {
		t.Helper()
		full := me.Do("GET", one, nil).Want(200).Map()
		m := full["metadata"].(map[string]any)
		if got := line(full["title"], full["titleSort"], m["title"], m["titleSort"], strings.Contains(fmt.Sprint(locked(m)), "title")); got != line(title, sort, title, sort, true) &&
			got != line(title, sort, title, nil, true) {
			t.Errorf("titles %s, want %s and %s", got, title, sort)
		}
		if got := strings.Join(slices.DeleteFunc(locked(m), func(n string) bool { return !strings.HasPrefix(n, "title") }), " "); got != locks {
			t.Errorf("locks %q, want %q", got, locks)
		}
	}
	me.Do("PATCH", one+"/metadata", `{"title":" The  New "}`).Want(200)
	titled("The  New", "The New", "title")
	me.Do("PATCH", one+"/metadata", `{"titleSort":"New, The"}`).Want(200)
	titled("The  New", "New, The", "title titleSort")
	me.Do("PATCH", one+"/metadata", `{"title":"Newer"}`).Want(200)
	titled("Newer", "New, The", "title titleSort")
	me.Do("PUT", one+"/metadata", `{"summary":"Only"}`).Want(200)
	titled("Newer", "New, The", "title titleSort")
	me.Do("PATCH", one+"/metadata", `{"titleSort":null}`).Want(200)
	titled("Newer", "Newer", "title titleSort")
	for _, path := range []string{"/metadata", ""} { // null holds for the titles to come
		me.Do("PATCH", one+path, `{"title":"New`+path+`"}`).Want(200)
		titled("New"+path, "New"+path, "title titleSort")
	}
	other := "/api/v1/books/" + ids[1].String() + "/metadata"
	exec(t, s, "delete from book_metadata where book_id = $1", ids[1])
	if m := me.Do("PATCH", other, `{"summary":"First"}`).Want(200).Map(); m["summary"] != "First" {
		t.Errorf("without metadata: %v", m)
	}
	me.Do("PATCH", other, `{"customMetadata":{"a":"not NUL: \\u0000"}}`).Want(200)
	me.Do("PATCH", other, `{"customMetadata":{"wide":[`+strings.Repeat(`[],`, 200)+`[]]}}`).Want(200)
	deep := `{"customMetadata":{"a":` + strings.Repeat(`[`, 100) + strings.Repeat(`]`, 100) + `}}`
	for body, at := range map[string]string{`{"customMetadata":{"a":["\u0000"]}}`: "customMetadata", deep: "customMetadata", `{"languageIso":"klingonish"}`: "languageIso", `{"isbns":"123"}`: "isbns", `{"month":2,"day":30}`: "day", `{"month":13}`: "month",
		`{"bookType":"brick"}`: "bookType", `{"customMetadata":[1]}`: "customMetadata", `{"authors":[{"name":""}]}`: "authors", `{"authors":[{"name":"x","role":"cook"}]}`: "authors",
		`{"publisher":"  "}`: "publisher", `{"imprint":""}`: "imprint", `{"edition":"a\nb"}`: "edition", `{"subtitle":" "}`: "subtitle", `{"originalTitle":""}`: "originalTitle",
		`{"genre":""}`: "genre", `{"formatDetail":""}`: "formatDetail", `{"isbns":""}`: "isbns", `{"isbns":"null"}`: "isbns", `{"isbns":" null "}`: "isbns", `{"languageIso":""}`: "languageIso",
		`{"subjects":["a",""]}`: "subjects[1]", `{"subjects":["x\ty"]}`: "subjects[0]",
		`{"title":null}`: "title", `{"title":" "}`: "title", `{"title":"a\u202eb"}`: "title", `{"titleSort":"a\nb"}`: "titleSort", `{"volume":-1}`: "volume", `{"summary":7}`: "summary", `{"subjects":"x"}`: "subjects",
		`{"summary":"a\u0000b"}`: "summary", `{"authors":[{"name":"a"},{"name":" "}]}`: "authors[1].name", `{"authors":[{"name":"a\u202eb"}]}`: "authors[0].name", `{"authors":[{"name":"\u200e"}]}`: "authors[0].name", `{"title":"\u200b\u2060"}`: "title", `{"writer":"a,\u200f"}`: "writer",
		`{"authors":[{"name":"a","sortName":"\u0007"}]}`: "authors[0].sortName", `{"writer":"a,\u2066b"}`: "writer", `{"coverArtist":"\u0000"}`: "coverArtist", `{"inker":" , "}`: "inker",
		`{"awards":[{"name":"\t"}]}`: "awards[0].name", `{"awards":[{"name":"a","category":"b\nc"}]}`: "awards[0].category"} {
		if text := string(me.Do("PATCH", one+"/metadata", body).Want(400).Body); !strings.Contains(text, at) {
			t.Errorf("%s: %s does not name %s", body, text, at)
		}
	}
	for body, nullable := range map[string]bool{`{"title":" "}`: false, `{"subjects":[""]}`: false, `{"titleSort":" "}`: true} {
		if text := string(me.Do("PATCH", one+"/metadata", body).Want(400).Body); strings.Contains(text, "or be null") != nullable {
			t.Errorf("%s: %s", body, text)
		}
	}
	for _, method := range []string{"PATCH", "PUT"} {
		reader.Do(method, one+"/metadata", `{"summary":"x"}`).Want(403)
		s.Anonymous(t, "one").Do(method, one+"/metadata", `{"summary":"x"}`).Want(401)
		stranger.Do(method, one+"/metadata", `{"summary":"x"}`).Want(404)
	}
}

// editing returns a server with a series of n books, a user who may change them, and their paths.
func editing(t *testing.T, n int) (*testkit.Server, *testkit.Client, []string) {
	t.Helper()
	s := testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		book.Routes(a, d, func(context.Context, uuid.UUID, ...events.Event) {}, nil)
	})
	_, ids := series(t, s, s.One, library(t, s, s.One, "comics"), "A", n)
	paths := make([]string, n)
	for i, id := range ids {
		paths[i] = "/api/v1/books/" + id.String()
	}
	return s, s.User(t, "one", "maintainer"), paths
}

// Year, month and day may be changed separately: together they need not form a date.
func TestNoReleaseDateWithoutSuchADay(t *testing.T) {
	t.Parallel()
	_, me, paths := editing(t, 1)
	for _, c := range []struct {
		body string
		want any
	}{{`{"year":2023}`, nil}, {`{"month":2}`, nil}, {`{"day":31}`, nil}, {`{"day":29}`, nil}, {`{"year":2024}`, "2024-02-29T00:00:00Z"}, {`{"day":30}`, nil},
		{`{"month":4}`, "2024-04-30T00:00:00Z"}, {`{"day":31}`, nil}} {
		if m := me.Do("PATCH", paths[0]+"/metadata", c.body).Want(200).Map(); m["releaseDate"] != c.want {
			t.Errorf("%s: %v, want %v", c.body, m["releaseDate"], c.want)
		}
		if m := me.Do("GET", paths[0], nil).Want(200).Map()["metadata"].(map[string]any); m["releaseDate"] != c.want {
			t.Errorf("%s: shown %v, want %v", c.body, m["releaseDate"], c.want)
		}
	}
}

func TestNamesAreTrimmed(t *testing.T) {
	t.Parallel()
	_, me, paths := editing(t, 1)
	m := me.Do("PATCH", paths[0]+"/metadata", `{"authors":[{"name":" A ","sortName":" "},{"name":"B","sortName":" B, the "}],"writer":" C ,, D\nE",
		"awards":[{"name":" F ","category":""}]}`).Want(200).Map()
	if got := line(m["authors"], m["writer"], m["awards"]); got != "[map[name:A role:author sortName:<nil>] map[name:B role:author sortName:B, the] "+
		"map[name:C role:writer sortName:<nil>] map[name:D E role:writer sortName:<nil>]] C, D E [map[category:<nil> name:F won:false year:<nil>]]" {
		t.Errorf("%s", got)
	}
}

// A titleSort in the file belongs to the file's title.
func TestNewTitleIsSortedByItself(t *testing.T) {
	t.Parallel()
	s, me, paths := editing(t, 1)
	for _, c := range []struct{ path, body, locks, want string }{
		{"", `{"title":"New"}`, "{}", "New New <nil>"},
		{"/metadata", `{"title":"New"}`, "{}", "New New <nil>"},
		{"/metadata", `{"title":"New","titleSort":"Newer"}`, "{}", "New Newer Newer"},
		{"", `{"title":"New"}`, "{titleSortLock}", "New Old, The Old, The"},
		{"/metadata", `{"title":"New"}`, "{titleSortLock}", "New Old, The Old, The"},
		{"/metadata", `{"summary":"S"}`, "{}", "The Old Old, The Old, The"},
		{"", `{"number":2}`, "{}", "The Old Old, The Old, The"},
	} {
		exec(t, s, "update book set title = 'The Old', title_sort = 'Old, The'")
		exec(t, s, `insert into book_metadata (tenant_id, book_id, metadata, locks) select tenant_id, id, '{"title": "The Old", "titleSort": "Old, The"}', $1 from book
			on conflict (tenant_id, book_id) do update set metadata = excluded.metadata, locks = excluded.locks`, c.locks)
		me.Do("PATCH", paths[0]+c.path, c.body).Want(200)
		m := me.Do("GET", paths[0], nil).Want(200).Map()
		if got := line(m["title"], m["titleSort"], m["metadata"].(map[string]any)["titleSort"]); got != c.want {
			t.Errorf("%s %s %s: %s, want %s", c.path, c.body, c.locks, got, c.want)
		}
	}
}

func TestBooksAreSortedBySingleSpaces(t *testing.T) {
	t.Parallel()
	s, me, paths := editing(t, 2)
	exec(t, s, "update book set title = 'A B', title_sort = 'A B'")
	me.Do("PATCH", paths[0]+"/metadata", `{"title":"A  Z","titleSort":"0"}`).Want(200)
	me.Do("PATCH", paths[0]+"/metadata", `{"titleSort":null}`).Want(200)
	if got, _ := titles(t, me.Do("GET", "/api/v1/books?sort=title", nil)); fmt.Sprintf("%q", got) != `["A B" "A  Z"]` {
		t.Errorf("%q", got)
	}
}

// Search text is normalized to NFC, as scans store titles.
func TestTypedTitlesAreComposed(t *testing.T) {
	t.Parallel()
	_, me, paths := editing(t, 1)
	for _, path := range []string{"", "/metadata"} {
		me.Do("PATCH", paths[0]+path, `{"title":"A\u0308rger"}`).Want(200)
		if got, _ := titles(t, me.Do("POST", "/api/v1/books/list", `{"condition":{"title":{"operator":"is","value":"Ärger"}}}`)); !slices.Equal(got, []string{"Ärger"}) {
			t.Errorf("%s: found %q", path, got)
		}
		me.Do("PATCH", paths[0], `{"title":"x"}`).Want(200)
	}
	if m := me.Do("PATCH", paths[0]+"/metadata", `{"authors":[{"name":"A\u0308"}],"writer":"O\u0308"}`).Want(200).Map(); line(m["authors"], m["writer"]) !=
		"[map[name:Ä role:author sortName:<nil>] map[name:Ö role:writer sortName:<nil>]] Ö" {
		t.Errorf("%v", m["authors"])
	}
}

// A client may send back the whole record that it received, also with the numbers of an issue -1 as its file has them.
func TestRecordSentBackIsTheSame(t *testing.T) {
	t.Parallel()
	s, me, paths := editing(t, 2)
	exec(t, s, `insert into book_metadata (tenant_id, book_id, metadata) select tenant_id, id, case when title = 'A 2' then '{"publisher": "P"}' else '{"publisher": "P", "number": "-1", "chapter": -1, "seriesPosition": -1000000000, "isbns": "[\"9780765350381\"]",
		"authors": [{"name": "King, Jr.", "role": "writer", "sortName": "King"}, {"name": "B", "role": "cover_artist"}, {"name": "C", "role": "author"}]}' end::jsonb from book`)
	for _, path := range paths {
		if m := me.Do("PATCH", path, `{"number":-1}`).Want(200).Map(); m["number"] != -1.0 {
			t.Errorf("number %v", m["number"])
		}
		before := me.Do("GET", path, nil).Want(200).Map()["metadata"].(map[string]any)
		for _, method := range []string{"PUT", "PATCH"} {
			if method == "PATCH" {
				delete(before, "title") // null
			}
			after := me.Do(method, path+"/metadata", before).Want(200).Map()
			for name, was := range before {
				if now := after[name]; name != "locks" && name != "updatedAt" && line(now) != line(was) {
					t.Errorf("%s: %s is %v, was %v", method, name, now, was)
				}
			}
		}
	}
	if m := me.Do("PATCH", paths[0]+"/metadata", `{"authors":[{"name":"A, B","role":"writer"}],"writer":"C"}`).Want(200).Map(); m["writer"] != "C" {
		t.Errorf("%v", m["writer"])
	}
	if m := me.Do("GET", paths[0], nil).Want(200).Map(); m["title"] != "A 1" {
		t.Errorf("title %v", m["title"])
	}
}

// The volume and the chapter that a book has by the name of its file outlast its metadata being sent back as it was
// read; what the metadata had is cleared.
func TestMetadataSentBack(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		book.Routes(a, d, func(context.Context, uuid.UUID, ...events.Event) {}, nil)
	})
	me := s.User(t, "one", "maintainer")
	_, ids := series(t, s, s.One, library(t, s, s.One, "comics"), "A", 1)
	one := "/api/v1/books/" + ids[0].String()
	exec(t, s, "update book set volume = 4, chapter = 1.5 where id = $1", ids[0])
	is := func(volume, chapter any) {
		t.Helper()
		if m := me.Do("GET", one, nil).Want(200).Map(); m["volume"] != volume || m["chapter"] != chapter {
			t.Errorf("volume %v and chapter %v, want %v and %v", m["volume"], m["chapter"], volume, chapter)
		}
	}
	const nothing = `{"summary":"S","volume":null,"chapter":null}`
	for range 2 { // with a record of its metadata, too
		me.Do("PUT", one+"/metadata", nothing).Want(200)
		is(4.0, 1.5)
	}
	me.Do("PUT", one+"/metadata", `{"volume":5,"chapter":2}`).Want(200)
	is(5.0, 2.0)
	me.Do("PUT", one+"/metadata", nothing).Want(200)
	is(nil, nil)
	exec(t, s, "update book set volume = 4, chapter = 1.5 where id = $1", ids[0])
	me.Do("PATCH", one+"/metadata", `{"volume":null}`).Want(200)
	is(nil, 1.5)
	me.Do("PATCH", one+"/metadata", `{"chapter":null}`).Want(200)
	is(nil, nil)
}

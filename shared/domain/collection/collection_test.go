package collection_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/collection"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/testkit"
)

// kind is what differs between collections and read lists in the tests.
type kind struct{ path, members, ids, count string }

var kinds = []kind{{"/api/v1/collections", "/series", "seriesIds", "seriesCount"}, {"/api/v1/readlists", "/books", "bookIds", "bookCount"}}

// things are three series A, B and C with descending years, and the books a, b and c.
type things map[string]uuid.UUID

func (th things) of(k kind, names string) (ids []string) {
	for _, n := range names {
		name := string(n)
		if k.ids == "bookIds" {
			name = strings.ToLower(name)
		}
		ids = append(ids, `"`+th[name].String()+`"`)
	}
	return ids
}

func (th things) body(k kind, names string) string {
	return `{"` + k.ids + `":[` + strings.Join(th.of(k, names), ",") + `]}`
}

func newThings(t testing.TB, s *testkit.Server, tenant uuid.UUID) things {
	t.Helper()
	th, library := things{}, uuid.New()
	s.DB.Exec(t, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'Comics', '/' || $2::uuid, 'b', '', 'series_volume', 'filename', 'file_order')`, tenant, library)
	for i, name := range []string{"A", "B", "C"} {
		of, book := uuid.New(), uuid.New()
		s.DB.Exec(t, `insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title, year) values ($1, $2, $3, $4, $4, $4, $4, lower($4), $5)`,
			tenant, of, library, name, 2000-i)
		s.DB.Exec(t, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, analyzed)
			values ($1, $2, $3, $4, $5, 1, now(), 'cbz', $5, $5, lower($5), true)`, tenant, book, library, of, name)
		s.DB.Exec(t, `insert into book_metadata (tenant_id, book_id, metadata) values ($1, $2, jsonb_build_object('year', $3::integer))`, tenant, book, 2000-i)
		th[name], th[strings.ToLower(name)] = of, book
	}
	return th
}

func create(t testing.TB, c *testkit.Client, k kind, body string) string {
	t.Helper()
	return k.path + "/" + c.Do("POST", k.path, body).Want(201).Map()["id"].(string)
}

// titles returns the members in order.
func titles(t testing.TB, c *testkit.Client, path string) (out string) {
	t.Helper()
	var page struct {
		Data  []struct{ Title string }
		Total int
	}
	c.Do("GET", path, nil).Want(200).JSON(&page)
	for _, m := range page.Data {
		out += m.Title
	}
	if !strings.Contains(path, "pageSize") && page.Total != len(page.Data) {
		t.Errorf("%s: %d of %d", path, len(page.Data), page.Total)
	}
	return out
}

func TestMembers(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, collection.Routes)
	me, reader := s.User(t, "one", "maintainer"), s.User(t, "one", "reader")
	th := newThings(t, s, s.One)
	for _, k := range kinds {
		at := create(t, me, k, `{"name":"Best"}`)
		members := at + k.members
		is := func(query, want string) {
			t.Helper()
			if got := titles(t, reader, members+query); got != want {
				t.Errorf("%s%s: %q, want %q", members, query, got, want)
			}
		}
		is("", "")
		unknown := strings.Replace(th.body(k, "CA"), "[", `["`+uuid.NewString()+`",`, 1)
		if m := me.Do("POST", members, unknown).Want(200).Map(); m[k.count] != 2.0 {
			t.Errorf("two of three are there: %v", m)
		}
		me.Do("POST", members, th.body(k, "BA")).Want(200)
		own := "ABC"
		if k.ids == "bookIds" {
			own = "CBA" // by release
		}
		is("", own)
		is("?sort=manual", "CAB")
		is("?sort=added&direction=desc", "BAC")
		is("?sort=title&direction=desc", "CBA")
		is("?pageSize=1&page=2", "B")
		year := "?sort=year"
		if k.ids == "bookIds" {
			year = "?sort=release"
		}
		is(year, "CBA")
		was := me.Do("GET", at, nil).Want(200).Map()["updatedAt"]
		if m := me.Do("PATCH", at, `{"ordered":true,"_name":"no name"}`).Want(200).Map(); m["name"] != "Best" {
			t.Errorf("an unknown member renamed it: %v", m)
		}
		is("", "CAB")
		me.Do("PUT", members, th.body(k, "B")).Want(204)
		is("", "BCA")
		me.Do("PUT", members, `{"`+k.ids+`":[]}`).Want(204)
		is("", "BCA")
		if now := me.Do("GET", at, nil).Want(200).Map()["updatedAt"]; now == was {
			t.Errorf("nobody sees that it was changed at %v", now)
		}
		one := strings.Trim(th.of(k, "C")[0], `"`)
		for range 2 {
			me.Do("DELETE", members+"/"+one, nil).Want(204)
		}
		is("", "BA")

		of := map[string]string{"seriesIds": "/api/v1/series/" + th["A"].String() + "/collections", "bookIds": "/api/v1/books/" + th["a"].String() + "/readlists"}[k.ids]
		var having struct{ Data []struct{ Name string } }
		if reader.Do("GET", of, nil).Want(200).JSON(&having); len(having.Data) != 1 || having.Data[0].Name != "Best" {
			t.Errorf("%s: %+v", of, having)
		}
		me.Do("DELETE", at, nil).Want(204)
		me.Do("GET", at, nil).Want(404)
		if reader.Do("GET", of, nil).Want(200).JSON(&having); len(having.Data) != 0 {
			t.Errorf("%s after it was deleted: %+v", of, having)
		}
	}
}

func TestGoneMembers(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, collection.Routes)
	me := s.User(t, "one", "maintainer")
	th := newThings(t, s, s.One)
	at := create(t, me, kinds[1], `{"name":"Best"}`)
	me.Do("POST", at+"/books", th.body(kinds[1], "ABC")).Want(200)
	s.DB.Exec(t, "update book set deleted_at = now() where id = $1", th["b"])
	if got, m := titles(t, me, at+"/books"), me.Do("GET", at, nil).Want(200).Map(); got != "CA" || m["bookCount"] != 2.0 {
		t.Errorf("a book whose file is gone is shown: %s, %v", got, m)
	}
	s.DB.Exec(t, "update book set deleted_at = null where id = $1", th["b"])
	if got := titles(t, me, at+"/books?sort=manual"); got != "ABC" {
		t.Errorf("the book that came back has another place: %s", got)
	}
	s.DB.Exec(t, "update book set deleted_at = now() where id = $1", th["b"])
	me.Do("PUT", at+"/books", th.body(kinds[1], "CA")).Want(204)
	s.DB.Exec(t, "update book set deleted_at = null where id = $1", th["b"])
	if got := titles(t, me, at+"/books?sort=manual"); got != "CBA" {
		t.Errorf("the book that was away while the others were ordered: %s", got)
	}
	s.DB.Exec(t, "delete from book where id = $1", th["a"])
	if got := titles(t, me, at+"/books"); got != "CB" {
		t.Errorf("a book that was removed: %s", got)
	}
}

// Ordering the visible members keeps the hidden ones in their places.
func TestOrderAroundTheHidden(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, collection.Routes)
	me, limited := s.User(t, "one", "maintainer"), s.User(t, "one", "maintainer")
	th, tag := newThings(t, s, s.One), uuid.New()
	s.DB.Exec(t, "insert into sharing_tag (tenant_id, id, name) values ($1, $2, 'hidden')", s.One, tag)
	s.DB.Exec(t, "insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) values ($1, gen_random_uuid(), $2, $3, 'deny')", s.One, tag, limited.ID)
	hide := func(names string) {
		s.DB.Exec(t, "delete from series_sharing_tag where tenant_id = $1", s.One)
		for _, name := range strings.Split(names, "") {
			s.DB.Exec(t, "insert into series_sharing_tag (tenant_id, series_id, sharing_tag_id) values ($1, $2, $3)", s.One, th[name], tag)
		}
	}
	for _, k := range kinds {
		at := create(t, me, k, `{"name":"Best","ordered":true}`) + k.members
		is := func(c *testkit.Client, want string) {
			t.Helper()
			if got := titles(t, c, at); got != want {
				t.Errorf("%s: %q, want %q", at, got, want)
			}
		}
		hide("AB")
		me.Do("POST", at, th.body(k, "ABC")).Want(200)
		limited.Do("PUT", at, th.body(k, "C")).Want(204)
		is(limited, "C")
		is(me, "ABC")
		hide("B")
		limited.Do("PUT", at, th.body(k, "CA")).Want(204)
		is(limited, "CA")
		is(me, "CBA")
		// New members come after the hidden ones.
		for range 10 {
			me.Do("DELETE", at+"/"+strings.Trim(th.of(k, "A")[0], `"`), nil).Want(204)
			limited.Do("POST", at, th.body(k, "A")).Want(200)
			is(me, "CBA")
		}
		for _, order := range []string{"ABC", "BCA", "CAB"} {
			me.Do("PUT", at, th.body(k, order)).Want(204)
			is(me, order)
		}
	}
}

// Making a collection automatic removes all chosen members, including hidden ones.
func TestAutomaticForgetsTheHidden(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, collection.Routes)
	me, limited := s.User(t, "one", "maintainer"), s.User(t, "one", "maintainer")
	th, tag := newThings(t, s, s.One), uuid.New()
	s.DB.Exec(t, "insert into sharing_tag (tenant_id, id, name) values ($1, $2, 'hidden')", s.One, tag)
	s.DB.Exec(t, "insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) values ($1, gen_random_uuid(), $2, $3, 'deny')", s.One, tag, limited.ID)
	s.DB.Exec(t, "insert into series_sharing_tag (tenant_id, series_id, sharing_tag_id) values ($1, $2, $3)", s.One, th["A"], tag)
	at := create(t, me, kinds[0], `{"name":"Best"}`)
	me.Do("POST", at+"/series", th.body(kinds[0], "AB")).Want(200)
	for _, condition := range []string{`{"title":{"operator":"is","value":"B"}}`, "null"} {
		limited.Do("PATCH", at, `{"condition":`+condition+`}`).Want(200)
	}
	if got := titles(t, me, at+"/series"); got != "" {
		t.Errorf("%q are members of what was automatic", got)
	}
}

// A read list is ordered by release day; books without one follow by title.
func TestAsReleased(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, collection.Routes)
	me := s.User(t, "one", "maintainer")
	th := newThings(t, s, s.One)
	at := create(t, me, kinds[1], `{"name":"Crossover"}`)
	me.Do("POST", at+"/books", th.body(kinds[1], "CAB")).Want(200)
	for _, c := range []struct{ a, b, c, order, back string }{
		{`{"year":2000,"month":11}`, `{"year":2000,"month":2,"day":3}`, `{"year":2000,"month":2,"day":2}`, "CBA", "ABC"},
		{`{"year":2000}`, `{"year":2000,"month":1,"day":2}`, `{"year":1999,"month":12,"day":31}`, "CAB", "BAC"},
		{`{}`, `{"year":2000}`, `{}`, "BAC", "BCA"},
		{`{}`, `{}`, `{}`, "ABC", "CBA"},
	} {
		for name, metadata := range map[string]string{"a": c.a, "b": c.b, "c": c.c} {
			s.DB.Exec(t, "update book_metadata set metadata = $2 where book_id = $1", th[name], metadata)
		}
		if got := titles(t, me, at+"/books"); got != c.order {
			t.Errorf("a %s, b %s, c %s: %s, want %s", c.a, c.b, c.c, got, c.order)
		}
		if got := titles(t, me, at+"/books?sort=release&direction=desc"); got != c.back {
			t.Errorf("a %s, b %s, c %s: backwards %s, want %s", c.a, c.b, c.c, got, c.back)
		}
	}
}

func TestAutomatic(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, collection.Routes)
	me, reader := s.User(t, "one", "maintainer"), s.User(t, "one", "reader")
	th := newThings(t, s, s.One)
	k := kinds[0]
	m := me.Do("POST", k.path, `{"name":"Old","condition":{"year":{"operator":"lt","value":2000}}}`).Want(201).Map()
	at := k.path + "/" + m["id"].(string)
	if m["automatic"] != true || m["seriesCount"] != nil || m["condition"] == nil {
		t.Errorf("an automatic one: %v", m)
	}
	for query, want := range map[string]string{"": "BC", "?sort=year": "CB", "?sort=title&direction=desc": "CB", "?sort=added": "BC"} {
		if got := titles(t, reader, at+"/series"+query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	reader.Do("GET", at+"/series?sort=manual", nil).Want(400)
	for _, c := range [][3]string{{"POST", "/series", th.body(k, "A")}, {"PUT", "/series", th.body(k, "A")}, {"DELETE", "/series/" + th["A"].String(), ""}} {
		var body any
		if c[2] != "" {
			body = c[2]
		}
		me.Do(c[0], at+c[1], body).Want(409)
	}
	// An automatic collection cannot be ordered manually.
	ordered := create(t, me, k, `{"name":"Ordered","ordered":true}`)
	for _, c := range [][3]string{{"POST", k.path, `{"name":"Both","ordered":true,"condition":{"title":{"operator":"is","value":"C"}}}`}, {"PATCH", at, `{"ordered":true}`},
		{"PATCH", ordered, `{"condition":{"title":{"operator":"is","value":"C"}}}`}, {"PATCH", at, `{"ordered":true,"condition":{"title":{"operator":"is","value":"C"}}}`}} {
		if m := me.Do(c[0], c[1], c[2]).Want(400).Map(); m["details"].([]any)[0].(map[string]any)["field"] != "ordered" {
			t.Errorf("%s: %v", c[2], m)
		}
	}
	me.Do("PATCH", ordered, `{"condition":{"title":{"operator":"is","value":"C"}},"ordered":false}`).Want(200)
	me.Do("PATCH", ordered, `{"condition":null,"ordered":true}`).Want(200)
	me.Do("PATCH", at, `{"ordered":false,"summary":"s"}`).Want(200)
	s.DB.Exec(t, "update collection set ordered = true where name = 'Old'") // by a previous version
	if m := me.Do("PATCH", at, `{"summary":"t"}`).Want(200).Map(); m["summary"] != "t" || m["automatic"] != true {
		t.Errorf("changed: %v", m)
	}
	me.Do("PATCH", at, `{"ordered":false}`).Want(200)
	me.Do("PATCH", k.path+"/"+uuid.NewString(), `{"ordered":true}`).Want(404)
	unread := create(t, me, k, `{"name":"Unread","condition":{"readStatus":{"operator":"is","value":"unread"}}}`)
	s.DB.Exec(t, "update series set book_count = 1")
	s.DB.Exec(t, "insert into progress (tenant_id, account_id, book_id, id, current_page, completed, completed_at) values ($1, $2, $3, gen_random_uuid(), 1, true, now())", s.One, reader.ID, th["b"])
	if mine, theirs := titles(t, me, unread+"/series"), titles(t, reader, unread+"/series"); mine != "ABC" || theirs != "AC" {
		t.Errorf("unread are %q, for who has read one %q", mine, theirs)
	}
	if m := me.Do("PATCH", at, `{"condition":null}`).Want(200).Map(); m["automatic"] != false || m["seriesCount"] != 0.0 || m["condition"] != nil {
		t.Errorf("no longer automatic: %v", m)
	}
	me.Do("POST", at+"/series", th.body(k, "A")).Want(200)
	me.Do("PATCH", at, `{"condition":{"title":{"operator":"is","value":"C"}}}`).Want(200)
	if got := titles(t, me, at+"/series"); got != "C" {
		t.Errorf("automatic again: %q", got)
	}
	if m := me.Do("PATCH", at, `{"condition":null}`).Want(200).Map(); m["seriesCount"] != 0.0 {
		t.Errorf("what was chosen before it was automatic: %v", m)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, collection.Routes)
	me, other, reader, foreign := s.User(t, "one", "maintainer"), s.User(t, "one", "admin"), s.User(t, "one", "reader"), s.User(t, "two", "admin")
	for _, k := range kinds {
		at := create(t, me, k, `{"name":" Best of All ","summary":"S","ordered":true}`)
		if m := other.Do("GET", at, nil).Want(200).Map(); m["name"] != "Best of All" || m["summary"] != "S" || m["ordered"] != true || m[k.count] != 0.0 {
			t.Errorf("made: %v", m)
		}
		for _, name := range []string{"another", "Another 10", "Another 2", "Zürich", "Éditions"} {
			create(t, me, k, `{"name":"`+name+`"}`)
		}
		for _, c := range []struct{ method, path, body string }{{"POST", k.path, `{"name":"best OF all"}`}, {"PATCH", at, `{"name":"Another"}`},
			{"POST", k.path, `{"name":"E\u0301ditions"}`}} {
			if m := me.Do(c.method, c.path, c.body).Want(409).Map(); m["details"].([]any)[0].(map[string]any)["field"] != "name" {
				t.Errorf("%s %s: %v", c.method, c.path, m)
			}
		}
		if m := me.Do("PATCH", at, `{"summary":null,"name":"BEST of all"}`).Want(200).Map(); m["summary"] != nil || m["name"] != "BEST of all" || m["ordered"] != true {
			t.Errorf("changed: %v", m)
		}
		for _, body := range []string{`{}`, `{"name":" "}`, `{"name":null}`, `{"name":"a\u202eb"}`, `{"name":"\u200b"}`, `{"name":"` + strings.Repeat("x", 201) + `"}`, `{"name":"x","summary":"\u0000"}`} {
			me.Do("POST", k.path, body).Want(400)
		}
		var page struct{ Data []struct{ Name string } }
		if reader.Do("GET", k.path, nil).Want(200).JSON(&page); fmt.Sprint(page.Data) != "[{another} {Another 2} {Another 10} {BEST of all} {Éditions} {Zürich}]" {
			t.Errorf("all by name: %v", page.Data)
		}
		other := kinds[0].path
		if k == kinds[0] {
			other = kinds[1].path
		}
		for _, path := range []string{at, k.path + "/" + uuid.NewString(), other + at[strings.LastIndex(at, "/"):]} {
			c := me
			if path == at {
				c = foreign
			}
			c.Do("GET", path, nil).Want(404)
			c.Do("PATCH", path, `{"name":"x"}`).Want(404)
			c.Do("DELETE", path, nil).Want(404)
			members := path + "/series"
			if strings.HasPrefix(path, kinds[1].path) {
				members = path + "/books"
			}
			c.Do("GET", members, nil).Want(404)
			c.Do("DELETE", members+"/"+uuid.NewString(), nil).Want(404)
		}
		reader.Do("POST", k.path, `{"name":"x"}`).Want(403)
		reader.Do("DELETE", at, nil).Want(403)
		s.Key(t, me, auth.SeriesRead, auth.BooksRead).Do("GET", at, nil).Want(403)
	}
	for _, condition := range []string{`{"inCollection":{"operator":"isTrue"}}`, `{"anyOf":[{"collectionId":{"operator":"is","value":"` + uuid.NewString() + `"}}]}`, `{"anyOf":[{"allOf":[{"in_collection":{"operator":"isFalse"}}]}]}`, `{"nothing":{"operator":"is","value":"x"}}`, `{"title":"x"}`, `[]`, `{"anyOf":[` + strings.Repeat(`{"title":{"operator":"is","value":"`+strings.Repeat("x", 1000)+`"}},`, 63) +
		`{"libraryId":{"operator":"in","values":["` + uuid.NewString() + strings.Repeat(`","`+uuid.NewString(), 499) + strings.Repeat(" ", 20_000) + `"]}}]}`} {
		me.Do("POST", kinds[0].path, `{"name":"bad","condition":`+condition+`}`).Want(400)
	}
}

// Concurrent changes of different fields all stay, and a list that becomes automatic keeps no members.
func TestChangesAtOnce(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, collection.Routes)
	me := s.User(t, "one", "maintainer")
	th := newThings(t, s, s.One)
	for range 5 {
		at := create(t, me, kinds[0], `{"name":"Best"}`)
		me.Do("POST", at+"/series", th.body(kinds[0], "AB")).Want(200)
		var wg sync.WaitGroup
		for _, body := range []string{`{"summary":"S"}`, `{"ordered":false}`, `{"condition":{"title":{"operator":"is","value":"C"}}}`, `{"name":"Better"}`} {
			wg.Go(func() {
				if r := me.Do("PATCH", at, body); r.Status != 200 {
					t.Errorf("%s: status %d: %s", body, r.Status, r.Body)
				}
			})
		}
		wg.Wait()
		if m := me.Do("GET", at, nil).Want(200).Map(); m["summary"] != "S" || m["automatic"] != true || m["name"] != "Better" {
			t.Errorf("after four changes: %v", m)
		}
		if m := me.Do("PATCH", at, `{"condition":null}`).Want(200).Map(); m["seriesCount"] != 0.0 {
			t.Errorf("members that nobody chose: %v", m)
		}
		me.Do("DELETE", at, nil).Want(204)
	}
}

// Concurrent changes lose nothing and do not block each other.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, collection.Routes)
	me := s.User(t, "one", "maintainer")
	th := newThings(t, s, s.One)
	k := kinds[0]
	one, two := create(t, me, k, `{"name":"One"}`), create(t, me, k, `{"name":"Two"}`)
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			at, names := []string{one, two}[i%2], []string{"ABC", "CBA", "BCA"}[i%3]
			for _, method := range []string{"POST", "PUT"} {
				if r := me.Do(method, at+"/series", th.body(k, names)); r.Status >= 300 {
					t.Errorf("%s: status %d: %s", method, r.Status, r.Body)
				}
			}
		})
	}
	wg.Wait()
	for _, at := range []string{one, two} {
		if got := titles(t, me, at+"/series"); got != "ABC" {
			t.Errorf("the members are %q", got)
		}
	}
}

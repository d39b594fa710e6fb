package wanted_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/domain/wanted"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

const at = "/api/v1/want-to-read"

// routes registers wanted, and the records that show whether something is wanted.
func routes(a *httpapi.API, d *db.DB) {
	wanted.Routes(a, d)
	series.Routes(a, d, nil, nil)
	book.Routes(a, d, nil, nil)
}

// things creates series and books of a tenant by name: A, B and C with the books a, b and c.
func things(t testing.TB, s *testkit.Server, tenant uuid.UUID) map[string]uuid.UUID {
	t.Helper()
	out, library := map[string]uuid.UUID{}, uuid.New()
	s.DB.Exec(t, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'Comics', '/' || $2::uuid, 'b', '', 'series_volume', 'filename', 'file_order')`, tenant, library)
	for _, name := range []string{"A", "B", "C"} {
		of, one := uuid.New(), uuid.New()
		s.DB.Exec(t, `insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) values ($1, $2, $3, $4, $4, $4, $4, lower($4))`,
			tenant, of, library, name)
		s.DB.Exec(t, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, analyzed)
			values ($1, $2, $3, $4, $5, 1, now(), 'cbz', $5, $5, lower($5), true)`, tenant, one, library, of, name+".cbz")
		out[name], out[strings.ToLower(name)] = of, one
	}
	return out
}

// names returns the entries of a list, and their ids.
func names(t testing.TB, c *testkit.Client, of map[string]uuid.UUID, query string) (list string, ids []string) {
	t.Helper()
	var page struct {
		Data []struct {
			ID, ItemType     string
			SeriesID, BookID *uuid.UUID
		}
		Total int
	}
	c.Do("GET", at+query, nil).Want(200).JSON(&page)
	for _, e := range page.Data {
		for name, id := range of {
			if e.SeriesID != nil && *e.SeriesID == id && e.BookID == nil && e.ItemType == "series" || e.BookID != nil && *e.BookID == id && e.SeriesID == nil && e.ItemType == "book" {
				list += name
			}
		}
		ids = append(ids, e.ID)
	}
	if len(list) != len(page.Data) || !strings.Contains(query, "page") && page.Total != len(list) {
		t.Errorf("%d entries are %q of %d", len(page.Data), list, page.Total)
	}
	return list, ids
}

func order(ids ...string) string { return `{"ids":["` + strings.Join(ids, `","`) + `"]}` }

func TestQueue(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me, other := s.User(t, "one", "reader"), s.User(t, "one", "reader")
	of := things(t, s, s.One)
	add := func(kind, name string) map[string]any {
		t.Helper()
		return me.Do("POST", at, fmt.Sprintf(`{"%sId":%q}`, kind, of[name])).Want(201).Map()
	}
	is := func(query, want string) []string {
		t.Helper()
		got, ids := names(t, me, of, query)
		if got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
		return ids
	}
	is("", "")
	first := add("series", "B")
	add("book", "a")
	if again := add("series", "B"); again["id"] != first["id"] || again["addedAt"] != first["addedAt"] {
		t.Errorf("added again it is another: %v, %v", first, again)
	}
	bulk := fmt.Sprintf(`{"seriesIds":[%q,%q,%q],"bookIds":[%q,%q,%q]}`, of["C"], of["B"], uuid.New(), of["c"], of["c"], of["C"])
	if got := me.Do("POST", at+"/bulk", bulk).Want(200).Map(); got["added"] != 2.0 || got["alreadyPresent"] != 1.0 {
		t.Errorf("two of six are new and one is there: %v", got)
	}
	is("", "cCaB")
	is("?sort=oldest", "BaCc")
	is("?sort=newest&page=2&pageSize=3", "B")
	ids := is("?sort=custom", "BaCc")

	me.Do("PUT", at+"/order", order(ids[3], uuid.NewString(), ids[1], ids[3])).Want(204)
	is("?sort=custom", "caBC")
	is("?sort=oldest", "BaCc")
	add("book", "b")
	is("?sort=custom", "caBCb")
	me.Do("PUT", at+"/order", `{"ids":[]}`).Want(204)
	is("?sort=custom", "caBCb")

	for name, want := range map[string]bool{"A": false, "B": true, "a": true, "b": true} {
		path := "/api/v1/series/"
		if name == strings.ToLower(name) {
			path = "/api/v1/books/"
		}
		if got := me.Do("GET", path+of[name].String(), nil).Want(200).Map()["wantToRead"]; got != want {
			t.Errorf("%s is wanted: %v", name, got)
		}
		if got := other.Do("GET", path+of[name].String(), nil).Want(200).Map()["wantToRead"]; got != false {
			t.Errorf("somebody else wants %s: %v", name, got)
		}
	}
	if got, _ := names(t, other, of, ""); got != "" {
		t.Errorf("somebody else wants %q", got)
	}
	other.Do("PUT", at+"/order", order(ids[2])).Want(204) // does not affect mine
	is("?sort=custom", "caBCb")

	s.DB.Exec(t, "update book set deleted_at = now() where id = $1", of["a"])
	is("?sort=custom", "cBCb")
	s.DB.Exec(t, "update book set deleted_at = null where id = $1", of["a"])
	is("?sort=custom", "caBCb")
	for name, kind := range map[string]string{"B": "series", "c": "book"} {
		other.Do("POST", at, fmt.Sprintf(`{"%sId":%q}`, kind, of[name])).Want(201)
	}
	for range 2 {
		me.Do("DELETE", at+"/series/"+of["B"].String(), nil).Want(204)
	}
	me.Do("DELETE", at+"/books/"+of["c"].String(), nil).Want(204)
	is("?sort=custom", "aCb")
	if got, _ := names(t, other, of, ""); len(got) != 2 {
		t.Errorf("somebody else wants only %q any more", got)
	}
	s.DB.Exec(t, "delete from book where id = $1", of["a"])
	is("?sort=custom", "Cb")
}

// Temporarily hidden entries keep their place, however the rest is reordered.
func TestOrderAroundTheHidden(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me, of, tag := s.User(t, "one", "reader"), things(t, s, s.One), uuid.New()
	me.Do("POST", at+"/bulk", fmt.Sprintf(`{"seriesIds":[%q,%q,%q]}`, of["A"], of["B"], of["C"])).Want(200)
	_, ids := names(t, me, of, "?sort=custom")
	s.DB.Exec(t, "insert into sharing_tag (tenant_id, id, name) values ($1, $2, 'hidden')", s.One, tag)
	for _, c := range []struct {
		hidden, order []string
		want          string
	}{{[]string{"A", "B"}, ids[2:], "ABC"}, {[]string{"B"}, []string{ids[2], ids[0]}, "CBA"}} {
		for _, name := range c.hidden {
			s.DB.Exec(t, "insert into series_sharing_tag (tenant_id, series_id, sharing_tag_id) values ($1, $2, $3)", s.One, of[name], tag)
		}
		s.DB.Exec(t, "insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) values ($1, gen_random_uuid(), $2, $3, 'deny')", s.One, tag, me.ID)
		me.Do("PUT", at+"/order", order(c.order...)).Want(204)
		s.DB.Exec(t, "delete from sharing_grant")
		s.DB.Exec(t, "delete from series_sharing_tag")
		if got, _ := names(t, me, of, "?sort=custom"); got != c.want {
			t.Errorf("without %v: %q, want %q", c.hidden, got, c.want)
		}
	}
	// So does a book whose file is gone.
	me.Do("POST", at+"/bulk", fmt.Sprintf(`{"bookIds":[%q,%q]}`, of["a"], of["b"])).Want(200)
	s.DB.Exec(t, "update book set deleted_at = now() where id = $1", of["a"])
	_, ids = names(t, me, of, "?sort=custom")
	me.Do("PUT", at+"/order", order(ids[3])).Want(204)
	s.DB.Exec(t, "update book set deleted_at = null where id = $1", of["a"])
	if got, _ := names(t, me, of, "?sort=custom"); got != "bCBaA" {
		t.Errorf("a book was away: %q", got)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me, admin := s.User(t, "one", "reader"), s.User(t, "one", "admin")
	of, theirs := things(t, s, s.One), things(t, s, s.Two)
	for _, body := range []string{`{}`, fmt.Sprintf(`{"seriesId":%q,"bookId":%q}`, of["A"], of["a"]), `{"seriesId":null}`} {
		if m := me.Do("POST", at, body).Want(400).Map(); m["details"].([]any)[0].(map[string]any)["field"] != "seriesId" {
			t.Errorf("%s: %v", body, m)
		}
	}
	s.DB.Exec(t, "update book set deleted_at = now() where id = $1", of["b"])
	for _, body := range []string{fmt.Sprintf(`{"seriesId":%q}`, of["a"]), fmt.Sprintf(`{"bookId":%q}`, of["A"]), fmt.Sprintf(`{"bookId":%q}`, of["b"]),
		fmt.Sprintf(`{"seriesId":%q}`, theirs["A"]), fmt.Sprintf(`{"bookId":%q}`, theirs["a"])} {
		me.Do("POST", at, body).Want(404)
	}
	if n := rows(t, s, "select count(*) from wanted"); n != 0 {
		t.Errorf("%d entries of what is not there", n)
	}
	if got := me.Do("POST", at+"/bulk", fmt.Sprintf(`{"seriesIds":[%q],"bookIds":[%q]}`, theirs["A"], theirs["a"])).Want(200).Map(); got["added"] != 0.0 || got["alreadyPresent"] != 0.0 {
		t.Errorf("another tenant's things are added: %v", got)
	}
	me.Do("DELETE", at+"/series/"+theirs["A"].String(), nil).Want(404)
	me.Do("DELETE", at+"/books/"+uuid.NewString(), nil).Want(404)
	me.Do("GET", at+"?sort=title", nil).Want(400)
	me.Do("PUT", at+"/order", `{"ids":["x"]}`).Want(400)
	many := strings.TrimSuffix(strings.Repeat(`"`+uuid.NewString()+`",`, 1001), ",")
	me.Do("POST", at+"/bulk", `{"bookIds":[`+many+`]}`).Want(400)
	s.Key(t, admin, auth.SeriesRead).Do("GET", at, nil).Want(403)
}

// Concurrent changes neither lose an entry nor block each other.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me := s.User(t, "one", "reader")
	of := things(t, s, s.One)
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			a, b := "A", "B"
			if i%2 == 1 {
				a, b = b, a
			}
			if r := me.Do("POST", at+"/bulk", fmt.Sprintf(`{"seriesIds":[%q,%q],"bookIds":[%q]}`, of[a], of[b], of["c"])); r.Status != 200 {
				t.Errorf("status %d: %s", r.Status, r.Body)
			}
			if r := me.Do("PUT", at+"/order", `{"ids":[]}`); r.Status != 204 {
				t.Errorf("status %d: %s", r.Status, r.Body)
			}
		})
	}
	wg.Wait()
	if got, _ := names(t, me, of, "?sort=custom"); len(got) != 3 {
		t.Errorf("three are wanted, not %q", got)
	}
	if n := rows(t, s, "select count(distinct place) from wanted"); n != 3 {
		t.Errorf("three entries have %d places", n)
	}
}

func rows(t testing.TB, s *testkit.Server, sql string) (n int) {
	t.Helper()
	if err := s.DB.Owner.Pool().QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A full list takes nothing more, but what is on it may be added again.
func TestFullList(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me, of := s.User(t, "one", "reader"), things(t, s, s.One)
	s.DB.Exec(t, `with b as (
		  insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title)
		  select tenant_id, gen_random_uuid(), library_id, series_id, n::text, 1, now(), 'cbz', 'n', 'n', 'n' from book, generate_series(1, 9998) n where id = $2 returning tenant_id, id)
		insert into wanted (tenant_id, account_id, id, book_id, place, added_at)
		select tenant_id, $1, id, id, row_number() over (), now() from b`, me.ID, of["a"])
	list := func(names ...string) string {
		var ids []string
		for _, n := range names {
			ids = append(ids, fmt.Sprintf("%q", of[n]))
		}
		return `{"seriesIds":[` + strings.Join(ids, ",") + `]}`
	}
	me.Do("POST", at+"/bulk", list("A", "B", "C")).Want(409)
	if m := me.Do("POST", at+"/bulk", list("A", "B")).Want(200).Map(); m["added"] != 2.0 {
		t.Errorf("%v", m)
	}
	if m := me.Do("POST", at+"/bulk", list("A", "B")).Want(200).Map(); m["added"] != 0.0 || m["alreadyPresent"] != 2.0 {
		t.Errorf("%v", m)
	}
	me.Do("POST", at, `{"seriesId":"`+of["A"].String()+`"}`).Want(201)
	me.Do("POST", at, `{"seriesId":"`+of["C"].String()+`"}`).Want(409)
	s.User(t, "one", "reader").Do("POST", at, `{"seriesId":"`+of["C"].String()+`"}`).Want(201)
	if m := me.Do("GET", at, nil).Want(200).Map(); m["total"] != 10_000.0 {
		t.Errorf("%v entries", m["total"])
	}
}

package taxonomy_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/taxonomy"
	"github.com/longbox/longbox/shared/platform/auth"
)

// books creates books in a series of their own, by title.
func (r *rig) books(tenant uuid.UUID, titles ...string) map[string]string {
	r.t.Helper()
	out, series := map[string]string{}, r.series(tenant, "Of "+strings.Join(titles, " "))
	for _, series := range series {
		for _, title := range titles {
			id := uuid.New()
			r.DB.Exec(r.t, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, updated_at)
				select tenant_id, $2, library_id, id, $3, 1, now(), 'cbz', $3, $3, $3, '2020-01-01' from series where id = $1`, series, id, title)
			out[title] = id.String()
		}
	}
	return out
}

// toldOfBooks counts the events since the last call; each must be of a book and name the field.
func (r *rig) toldOfBooks(field string) int {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.told {
		if !strings.HasPrefix(e, "book_updated ") || !strings.Contains(e, "["+field+"]") {
			r.t.Errorf("the event is %s", e)
		}
	}
	n := len(r.told)
	r.told = nil
	return n
}

func TestTermsOfBooks(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"genres", "tags"} {
		r := newRig(t)
		me, admin, reader, foreign := r.User(t, "one", "maintainer"), r.User(t, "one", "admin"), r.User(t, "one", "reader"), r.User(t, "two", "admin")
		of, series := r.books(r.One, "A", "B", "C"), r.series(r.One, "S")["S"]
		at := func(title string) string { return base + "/books/" + of[title] + "/" + kind }
		all := func() string { return base + "/" + kind }
		body := func(names ...string) string { return `{"` + kind + `":["` + strings.Join(names, `","`) + `"]}` }
		r.is(me.Do("PUT", at("A"), body(" Space ", "space", "Drama")), "Drama 0, Space 0, of 2")
		r.is(me.Do("PUT", at("B"), body("DRAMA", "Ärger")), "Ärger 0, Drama 0, of 2")
		if got := me.Do("POST", at("B"), `{"name":"SPACE"}`).Want(201).Map(); got["name"] != "Space" || got["seriesCount"] != 0.0 {
			t.Errorf("added: %v", got)
		}
		me.Do("POST", at("B"), `{"name":"space "}`).Want(201)
		r.is(reader.Do("GET", at("B")+"?pageSize=2&page=2", nil), "Space 0, of 3")
		if n := r.toldOfBooks(kind); n != 3 { // repeated ones have no event
			t.Errorf("three changes told of %d", n)
		}
		var fresh int
		if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from book where updated_at > '2020-02-01'").Scan(&fresh); err != nil || fresh != 2 {
			t.Errorf("%d books are marked as changed, %v", fresh, err)
		}
		me.Do("PUT", base+"/series/"+series+"/"+kind, body("drama")).Want(200)
		r.is(reader.Do("GET", all(), nil), "Ärger 0, Drama 1, Space 0, of 3")
		r.is(foreign.Do("GET", all(), nil), "of 0")
		r.toldOf(kind)

		change := func(ids, more, fewer string) any {
			t.Helper()
			return me.Do("POST", base+"/books/bulk/"+kind, `{"bookIds":[`+ids+`],"add":[`+more+`],"remove":[`+fewer+`]}`).Want(200).Map()["updatedCount"]
		}
		ids := fmt.Sprintf("%q,%q,%q,%q", of["A"], of["C"], uuid.New(), of["A"])
		if got := change(ids, `"new","drama"`, `"space"`); got != 2.0 {
			t.Errorf("changed: %v", got)
		}
		if got := change(ids, `"new"`, `"what"`); got != 0.0 {
			t.Errorf("what changes nothing is counted: %v", got)
		}
		if got := foreign.Do("POST", base+"/books/bulk/"+kind, `{"bookIds":[`+ids+`],"add":["theirs"]}`).Want(200).Map()["updatedCount"]; got != 0.0 {
			t.Errorf("another tenant changed: %v", got)
		}
		if n := r.toldOfBooks(kind); n != 2 {
			t.Errorf("two changes told of %d", n)
		}
		terms := r.is(reader.Do("GET", at("A"), nil), "Drama 1, new 0, of 2")
		me.Do("DELETE", at("B")+"/"+terms[1].ID, nil).Want(404)
		me.Do("DELETE", at("A")+"/"+terms[1].ID, nil).Want(204)
		me.Do("DELETE", at("C")+"/"+terms[1].ID, nil).Want(204)
		r.is(reader.Do("GET", all(), nil), "Ärger 0, Drama 1, Space 0, of 3")
		me.Do("PUT", base+"/series/"+series+"/"+kind, `{"`+kind+`":[]}`).Want(200)
		// Names of books are not cleaned up.
		if got := admin.Do("POST", all()+"/cleanup", nil).Want(200).Map(); fmt.Sprint(got["deletedNames"]) != "[new]" {
			t.Errorf("cleaned up: %v", got)
		}
		r.is(reader.Do("GET", at("C"), nil), "Drama 0, of 1")

		// Names of a book whose file is gone are kept, and cannot be changed.
		r.DB.Exec(t, "update book set deleted_at = now() where id = $1", of["C"])
		for method, body := range map[string]string{"GET": "", "PUT": body("x"), "POST": `{"name":"x"}`} {
			me.Do(method, at("C"), body).Want(404)
		}
		me.Do("DELETE", at("C")+"/"+terms[0].ID, nil).Want(404)
		if got := change(fmt.Sprintf("%q", of["C"]), `"x"`, `"drama"`); got != 0.0 {
			t.Errorf("a book that is gone was changed: %v", got)
		}
		r.DB.Exec(t, "update book set deleted_at = null where id = $1", of["C"])
		r.is(reader.Do("GET", at("C"), nil), "Drama 0, of 1")
		r.mu.Lock()
		r.told = nil
		r.mu.Unlock()
		admin.Do("DELETE", all()+"/"+terms[0].ID, nil).Want(204)
		if n := r.toldOfBooks(kind); n != 3 {
			t.Errorf("it went from three books, of which %d are told", n)
		}
		r.is(reader.Do("GET", at("A"), nil), "of 0")
	}
}

func TestRefusalsOfBooks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me, reader, foreign := r.User(t, "one", "maintainer"), r.User(t, "one", "reader"), r.User(t, "two", "maintainer")
	of := r.books(r.One, "A")
	at := base + "/books/" + of["A"] + "/genres"
	for _, body := range []string{`{"genres":["ok",""]}`, `{"genres":null}`, `{}`, `{"genres":["` + strings.Repeat("ä", 201) + `"]}`} {
		me.Do("PUT", at, body).Want(400)
	}
	for _, body := range []string{`{"name":"  "}`, `{}`} {
		me.Do("POST", at, body).Want(400)
	}
	for _, body := range []string{`{"bookIds":[]}`, `{"bookIds":[],"add":[""]}`, `{"seriesIds":[],"add":["a"]}`,
		`{"bookIds":[` + strings.TrimSuffix(strings.Repeat(`"`+of["A"]+`",`, 101), ",") + `],"add":["a"]}`} {
		me.Do("POST", base+"/books/bulk/genres", body).Want(400)
	}
	for method, body := range map[string]string{"GET": "", "PUT": `{"genres":[]}`, "POST": `{"name":"x"}`} {
		foreign.Do(method, at, body).Want(404)
		me.Do(method, base+"/books/"+uuid.NewString()+"/genres", body).Want(404)
		if method != "GET" {
			reader.Do(method, at, body).Want(403)
		}
	}
	reader.Do("DELETE", at+"/"+uuid.NewString(), nil).Want(403)
	for _, c := range []struct{ method, path, body string }{{"GET", at, ""}, {"POST", at, `{"name":"x"}`}, {"DELETE", at + "/" + uuid.NewString(), ""},
		{"POST", base + "/books/bulk/genres", `{"bookIds":["` + of["A"] + `"],"add":["x"]}`}} {
		r.Key(t, me, auth.SeriesRead, auth.SeriesWrite).Do(c.method, c.path, c.body).Want(403)
	}
	r.DB.Exec(t, "insert into genre (tenant_id, id, name) select $1, gen_random_uuid(), n::text from generate_series(1, 1000) n", r.One)
	r.DB.Exec(t, "insert into book_genre (tenant_id, book_id, genre_id) select tenant_id, $1, id from genre where tenant_id = $2", of["A"], r.One)
	me.Do("POST", at, `{"name":"one more"}`).Want(409)
	var left int
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from genre where name in ('one more', 'x', 'a')").Scan(&left); err != nil || left != 0 {
		t.Errorf("what was refused leaves %d names, %v", left, err)
	}
}

// Concurrent changes of series and books neither deadlock nor fail.
func TestBooksAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin := r.User(t, "one", "admin")
	of, series := r.books(r.One, "A", "B"), r.series(r.One, "S")["S"]
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			a, b := "A", "B"
			if i%2 == 1 {
				a, b = b, a
			}
			for range 4 {
				for path, body := range map[string]string{"/books/bulk/tags": fmt.Sprintf(`{"bookIds":[%q,%q],"add":["%s","%s","c%d"],"remove":["c%d"]}`, of[a], of[b], a, b, i, i+1),
					"/series/bulk/tags": fmt.Sprintf(`{"seriesIds":[%q],"add":["%s","%s"],"remove":["c%d"]}`, series, b, a, i), "/tags/cleanup": ""} {
					if res := admin.Do("POST", base+path, body); res.Status != 200 {
						t.Errorf("status %d: %s", res.Status, res.Body)
					}
				}
			}
		})
	}
	wg.Wait()
	if _, line := r.list(admin.Do("GET", base+"/books/"+of["A"]+"/tags", nil)); !strings.HasPrefix(line, "A 1, B 1, c") {
		t.Errorf("the tags are %s", line)
	}
}

// A user with limited access sees the names of the visible series and their books, without a scan of the hidden ones.
func TestTermsOfAllowed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, all := r.User(t, "one", "reader"), r.User(t, "one", "reader")
	seen := r.books(r.One, "Seen")
	r.DB.Exec(t, `with s as (insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
		  select tenant_id, gen_random_uuid(), library_id, 'h' || n, 'h', 'h', 'h', 'h' from book cross join generate_series(1, 400) n where id = $1 returning *)
		insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title)
		select tenant_id, gen_random_uuid(), library_id, id, path || '/' || n, 1, now(), 'cbz', 'h', 'h', 'h' from s cross join generate_series(1, 50) n`, seen["Seen"])
	r.DB.Exec(t, "insert into genre (tenant_id, id, name) select $1, gen_random_uuid(), n from unnest('{of all,of hidden,of seen,of series,of none}'::text[]) n", r.One)
	r.DB.Exec(t, `insert into book_genre (tenant_id, book_id, genre_id) select b.tenant_id, b.id, g.id from book b join genre g on g.tenant_id = b.tenant_id
		and g.name in ('of all', case b.title when 'Seen' then 'of seen' else 'of hidden' end)`)
	r.DB.Exec(t, "insert into series_genre (tenant_id, series_id, genre_id) select b.tenant_id, b.series_id, g.id from book b join genre g on g.tenant_id = b.tenant_id and g.name = 'of series' where b.id = $1", seen["Seen"])
	tag := uuid.New()
	r.DB.Exec(t, "insert into sharing_tag (tenant_id, id, name) values ($1, $2, 'Family')", r.One, tag)
	r.DB.Exec(t, "insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) values ($1, $2, $2, $3, 'allow')", r.One, tag, c.ID)
	r.DB.Exec(t, "insert into series_sharing_tag (tenant_id, series_id, sharing_tag_id) select tenant_id, series_id, $2 from book where id = $1", seen["Seen"], tag)
	r.is(c.Do("GET", base+"/genres", nil), "of all 0, of seen 0, of series 1, of 3")
	r.is(all.Do("GET", base+"/genres", nil), "of all 0, of hidden 0, of seen 0, of series 1, of 4")
	r.DB.Exec(t, "analyze")
	tx, err := r.DB.App.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), "select app.enter($1, $2, null, null, '')", r.One, c.ID); err != nil {
		t.Fatal(err)
	}
	var plan []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := tx.QueryRow(t.Context(), "explain (analyze, buffers, format json) "+taxonomy.CountUsed).Scan(&plan); err != nil {
		t.Fatal(err)
	}
	if n := plan[0].Plan.Hit + plan[0].Plan.Read; n > 200 {
		t.Errorf("%d pages are read", n)
	}
}

// Books from before books had genres get those in their files, unless locked.
func TestFill(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me := r.User(t, "one", "reader")
	of := r.books(r.One, "A", "B", "C", "D", "E")
	r.DB.Exec(t, "insert into genre (tenant_id, id, name) select $1, gen_random_uuid(), n from unnest('{Drama,Comedy}'::text[]) n", r.One)
	r.DB.Exec(t, "insert into tag (tenant_id, id, name) values ($1, gen_random_uuid(), 'red'), ($2, gen_random_uuid(), 'red')", r.One, r.Two)
	r.DB.Exec(t, `insert into book_metadata (tenant_id, book_id, metadata, locks) select tenant_id, id,
		case title when 'E' then '{"genres": "Drama"}' else '{"genres": ["drama ", "DRAMA", "gone"], "tags": ["Red"]}' end::jsonb, case title when 'D' then '{genresLock}' else '{}' end::text[] from book`)
	r.DB.Exec(t, "insert into book_genre (tenant_id, book_id, genre_id) select b.tenant_id, b.id, g.id from book b, genre g where b.title = 'B' and g.name in ('Drama', 'Comedy')")
	r.DB.Exec(t, "insert into term_fill (tenant_id) values ($1), ($2)", r.One, r.Two)
	fill := taxonomy.Fill
	fill.AtOnce = 2
	for range 2 { // the second run has nothing to do
		if err := fill.Run(t.Context(), r.DB.System, time.Minute); err != nil {
			t.Fatal(err)
		}
		for title, want := range map[string]string{"A": "Drama 0, of 1", "B": "Comedy 0, Drama 0, of 2", "C": "Drama 0, of 1", "D": "of 0", "E": "of 0"} {
			r.is(me.Do("GET", base+"/books/"+of[title]+"/genres", nil), want)
		}
		r.is(me.Do("GET", base+"/books/"+of["D"]+"/tags", nil), "red 0, of 1")
	}
	var left int
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from term_fill").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d tenants are left, %v", left, err)
	}
}

package taxonomy_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/domain/taxonomy"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

const base = "/api/v1"

// rig is a server that records events.
type rig struct {
	*testkit.Server
	t    *testing.T
	mu   sync.Mutex
	told []string
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t}
	r.Server = testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		series.Routes(a, d, nil, nil)
		taxonomy.Routes(a, d, func(_ context.Context, _ uuid.UUID, e ...events.Event) {
			r.mu.Lock()
			defer r.mu.Unlock()
			for _, one := range e {
				r.told = append(r.told, fmt.Sprintf("%s %v", one.Kind, one.Data))
			}
		})
	})
	return r
}

// toldOf counts the events since the last call; each must name the field.
func (r *rig) toldOf(field string) int {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.told {
		if !strings.HasPrefix(e, "series_updated ") || !strings.HasSuffix(e, "["+field+"]}") {
			r.t.Errorf("the event is %s", e)
		}
	}
	n := len(r.told)
	r.told = nil
	return n
}

// series creates series of a tenant, by title.
func (r *rig) series(tenant uuid.UUID, titles ...string) map[string]string {
	r.t.Helper()
	out, library := map[string]string{}, uuid.New()
	r.DB.Exec(r.t, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'Comics ' || $2::uuid, '/' || $2::uuid, 'b', '', 'series_volume', 'filename', 'file_order')`, tenant, library)
	for _, title := range titles {
		id := uuid.New()
		r.DB.Exec(r.t, `insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title, updated_at)
			values ($1, $2, $3, $4, $4, $4, $4, lower($4), '2020-01-01')`, tenant, id, library, title)
		out[title] = id.String()
	}
	return out
}

type term struct {
	ID, Name    string
	SeriesCount int
}

func (r *rig) list(res *testkit.Response) (terms []term, line string) {
	r.t.Helper()
	var page struct {
		Data  []term
		Total int
	}
	res.Want(200).JSON(&page)
	for _, d := range page.Data {
		line += fmt.Sprintf("%s %d, ", d.Name, d.SeriesCount)
	}
	return page.Data, line + fmt.Sprint("of ", page.Total)
}

func (r *rig) is(res *testkit.Response, want string) []term {
	r.t.Helper()
	terms, got := r.list(res)
	if got != want {
		r.t.Errorf("%s, want %s", got, want)
	}
	return terms
}

func TestTerms(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"genres", "tags"} {
		r := newRig(t)
		me, admin, reader, foreign := r.User(t, "one", "maintainer"), r.User(t, "one", "admin"), r.User(t, "one", "reader"), r.User(t, "two", "admin")
		of := r.series(r.One, "A", "B", "C")
		at := func(title string) string { return base + "/series/" + of[title] + "/" + kind }
		all := func(c *testkit.Client, query string) *testkit.Response { return c.Do("GET", base+"/"+kind+query, nil) }
		body := func(names ...string) string {
			return `{"` + kind + `":["` + strings.Join(names, `","`) + `"]}`
		}
		r.is(me.Do("PUT", at("A"), body(" Space ", "space", "Drama")), "Drama 1, Space 1, of 2")
		r.is(me.Do("PUT", at("B"), body("DRAMA", "Ärger", "ärger")), "Ärger 1, Drama 2, of 2")
		if got := me.Do("POST", at("B"), `{"name":"SPACE"}`).Want(201).Map(); got["name"] != "Space" || got["seriesCount"] != 2.0 {
			t.Errorf("added: %v", got)
		}
		me.Do("POST", at("B"), `{"name":"space "}`).Want(201)
		r.is(reader.Do("GET", at("B")+"?pageSize=2&page=2", nil), "Space 2, of 3")
		r.is(all(reader, ""), "Ärger 1, Drama 2, Space 2, of 3")
		r.is(all(reader, "?pageSize=1&page=2"), "Drama 2, of 3")
		r.is(all(foreign, ""), "of 0")
		if n := r.toldOf(kind); n != 3 { // repeated ones have no event
			t.Errorf("three changes told of %d", n)
		}
		details := reader.Do("GET", base+"/series/"+of["B"], nil).Want(200).Map()
		if n := len(details[kind].([]any)); n != 3 || strings.HasPrefix(details["updatedAt"].(string), "2020") {
			t.Errorf("the record has %d, of %v", n, details["updatedAt"])
		}

		change := func(c *testkit.Client, ids, more, fewer string) map[string]any {
			t.Helper()
			return c.Do("POST", base+"/series/bulk/"+kind, `{"seriesIds":[`+ids+`],"add":[`+more+`],"remove":[`+fewer+`]}`).Want(200).Map()
		}
		ids := fmt.Sprintf("%q,%q,%q,%q", of["A"], of["C"], uuid.New(), of["A"])
		if got := change(me, ids, `"new","drama"`, `"space"`); got["updatedCount"] != 2.0 || got["message"] == "" {
			t.Errorf("changed: %v", got)
		}
		if got := change(foreign, ids, `"theirs"`, ``); got["updatedCount"] != 0.0 {
			t.Errorf("another tenant changed: %v", got)
		}
		if n := r.toldOf(kind); n != 2 {
			t.Errorf("two changes told of %d", n)
		}
		r.is(reader.Do("GET", at("A"), nil), "Drama 3, new 2, of 2")
		terms := r.is(all(reader, ""), "Ärger 1, Drama 3, new 2, Space 1, of 4")

		me.Do("DELETE", at("B")+"/"+terms[3].ID, nil).Want(204)
		me.Do("DELETE", at("B")+"/"+terms[3].ID, nil).Want(404)
		changedAt := func() any { return reader.Do("GET", base+"/series/"+of["C"], nil).Want(200).Map()["updatedAt"] }
		before := changedAt()
		me.Do("DELETE", at("C")+"/"+terms[0].ID, nil).Want(404)
		me.Do("POST", at("C"), `{"name":"NEW"}`).Want(201)
		if got := change(me, fmt.Sprintf("%q", of["C"]), `"new"`, `"what"`); got["updatedCount"] != 0.0 {
			t.Errorf("what changes nothing is counted: %v", got)
		}
		if n := r.toldOf(kind); n != 1 || changedAt() != before {
			t.Errorf("what changes nothing is told: %d events, %v before %v", n, before, changedAt())
		}
		r.is(all(reader, ""), "Ärger 1, Drama 3, new 2, of 3")
		me.Do("POST", base+"/"+kind+"/cleanup", nil).Want(403)
		if got := admin.Do("POST", base+"/"+kind+"/cleanup", nil).Want(200).Map(); fmt.Sprint(got["deletedCount"], got["deletedNames"]) != "1 [Space]" {
			t.Errorf("cleaned up: %v", got)
		}
		foreign.Do("DELETE", base+"/"+kind+"/"+terms[1].ID, nil).Want(404)
		me.Do("DELETE", base+"/"+kind+"/"+terms[1].ID, nil).Want(403)
		admin.Do("DELETE", base+"/"+kind+"/"+terms[1].ID, nil).Want(204)
		admin.Do("DELETE", base+"/"+kind+"/"+terms[1].ID, nil).Want(404)
		if n := r.toldOf(kind); n != 3 {
			t.Errorf("it went from three series, of which %d are told", n)
		}
		r.is(all(reader, ""), "Ärger 1, new 2, of 2")
		r.is(me.Do("PUT", at("A"), `{"`+kind+`":[]}`), "of 0")
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me, reader, foreign := r.User(t, "one", "maintainer"), r.User(t, "one", "reader"), r.User(t, "two", "maintainer")
	of := r.series(r.One, "A")
	at := base + "/series/" + of["A"] + "/genres"
	long := strings.Repeat("ä", 201)
	for body, field := range map[string]string{`{"genres":["ok",""]}`: "genres[1]", `{"genres":["a\u0000b"]}`: "genres[0]", `{"genres":["` + long + `"]}`: "genres[0]",
		`{"genres":null}`: "genres", `{}`: "genres", `{"genres":["\u200b"]}`: "genres[0]"} {
		if m := me.Do("PUT", at, body).Want(400).Map(); m["details"].([]any)[0].(map[string]any)["field"] != field {
			t.Errorf("%s: %v", body, m)
		}
	}
	for _, body := range []string{`{"name":""}`, `{"name":"  "}`, `{"name":"` + long + `"}`, `{}`} {
		me.Do("POST", at, body).Want(400)
	}
	for _, body := range []string{`{"seriesIds":[]}`, `{"seriesIds":[],"add":[""]}`, `{"seriesIds":[],"remove":["\u0001"]}`, `{"add":["a"]}`,
		`{"seriesIds":[` + strings.TrimSuffix(strings.Repeat(`"`+of["A"]+`",`, 101), ",") + `],"add":["a"]}`} {
		me.Do("POST", base+"/series/bulk/genres", body).Want(400)
	}
	for method, body := range map[string]string{"GET": "", "PUT": `{"genres":[]}`, "POST": `{"name":"x"}`} {
		foreign.Do(method, at, body).Want(404)
		if method != "GET" {
			reader.Do(method, at, body).Want(403)
		}
	}
	foreign.Do("DELETE", at+"/"+uuid.NewString(), nil).Want(404)
	reader.Do("DELETE", at+"/"+uuid.NewString(), nil).Want(403)
	reader.Do("POST", base+"/series/bulk/genres", `{"seriesIds":["`+of["A"]+`"],"add":["x"]}`).Want(403)
	r.Key(t, me, auth.BooksRead).Do("GET", base+"/genres", nil).Want(403)
	if n := r.toldOf("genres"); n != 0 {
		t.Errorf("nothing has changed, and %d events say it has", n)
	}
	r.DB.Exec(t, "insert into genre (tenant_id, id, name) select $1, gen_random_uuid(), n::text from generate_series(1, 1000) n", r.One)
	r.DB.Exec(t, "insert into series_genre (tenant_id, series_id, genre_id) select tenant_id, $1, id from genre where tenant_id = $2", of["A"], r.One)
	me.Do("POST", at, `{"name":"one more"}`).Want(409)
	me.Do("PUT", base+"/series/"+uuid.NewString()+"/genres", `{"genres":["of nothing"]}`).Want(404)
	me.Do("POST", base+"/series/bulk/genres", `{"seriesIds":["`+of["A"]+`","`+uuid.NewString()+`"],"add":["of nothing"]}`).Want(200)
	var left int
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from genre where name in ('one more', 'of nothing', 'x')").Scan(&left); err != nil || left != 0 {
		t.Errorf("what was refused leaves %d names, %v", left, err)
	}
	me.Do("POST", at, `{"name":"1000"}`).Want(201)

	// Of more names than there is room for, it gets the first, and those that it has take no room.
	me.Do("POST", base+"/series/bulk/genres", `{"seriesIds":["`+of["A"]+`"],"remove":["1","2"],"add":["3","a1","a2","a3"]}`).Want(200)
	var names string
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), `select count(*) || ' ' || string_agg(g.name, ',' order by g.name) filter (where g.name like 'a%') from series_genre x
		join genre g on g.tenant_id = x.tenant_id and g.id = x.genre_id where x.series_id = $1`, of["A"]).Scan(&names); err != nil || names != "1000 a1,a2" {
		t.Errorf("a full series has %s, %v", names, err)
	}
}

// For very many series, the events are for their library.
func TestCommonTermGoes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin := r.User(t, "one", "admin")
	r.series(r.One, "A")
	r.DB.Exec(t, `insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
		select tenant_id, gen_random_uuid(), library_id, n::text, 'n', 'n', 'n', 'n' from series, generate_series(1, 500) n`)
	r.DB.Exec(t, "insert into tag (tenant_id, id, name) values ($1, $1, 'common')", r.One)
	r.DB.Exec(t, "insert into series_tag (tenant_id, series_id, tag_id) select tenant_id, id, tenant_id from series")
	admin.Do("DELETE", base+"/tags/"+r.One.String(), nil).Want(204)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.told) != 1 || !strings.HasPrefix(r.told[0], "library_updated ") {
		t.Errorf("told: %d events, first %v", len(r.told), r.told[:min(1, len(r.told))])
	}
}

// Taking a tag from very many series takes long: then it goes from fewer at once, and the next request continues.
func TestDeletionOfATermInParts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.series(r.One, "A")
	r.DB.Exec(t, `insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
		select tenant_id, gen_random_uuid(), library_id, n::text, 'n', 'n', 'n', 'n' from series, generate_series(2, 300) n`)
	r.DB.Exec(t, "insert into tag (tenant_id, id, name) values ($1, $1, 'common')", r.One)
	r.DB.Exec(t, "insert into series_tag (tenant_id, series_id, tag_id) select tenant_id, id, tenant_id from series")
	r.DB.Exec(t, `create function public.slow() returns trigger language plpgsql as $$ begin
		if (select count(*) from gone) > 200 then raise exception 'too many' using errcode = '57014'; end if; return null; end $$`)
	r.DB.Exec(t, "create trigger slow after delete on series_tag referencing old table as gone for each statement execute function public.slow()")
	told := 0
	for _, left := range []int{300 - 500/4, 0} {
		out, err := taxonomy.RemoveTag(r.In(r.One), r.DB.App, r.One, 500, time.Now().Add(-time.Second))
		var n int
		if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from series_tag").Scan(&n); err != nil {
			t.Fatal(err)
		}
		if told += len(out); n != left || fault.Is(err, fault.Unavailable) != (left > 0) {
			t.Fatalf("%d series have the tag, want %d: %v", n, left, err)
		}
	}
	if told != 300 {
		t.Errorf("%d series are told", told)
	}
	r.User(t, "one", "admin").Do("DELETE", base+"/tags/"+r.One.String(), nil).Want(404)
}

// Concurrent changes neither deadlock nor fail.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me, admin := r.User(t, "one", "maintainer"), r.User(t, "one", "admin")
	of := r.series(r.One, "A", "B")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			a, b := "A", "B"
			if i%2 == 1 {
				a, b = b, a
			}
			for range 5 {
				for path, body := range map[string]string{"/series/bulk/tags": fmt.Sprintf(`{"seriesIds":[%q,%q],"add":["%s","%s","c%d"],"remove":["c%d"]}`, of[a], of[b], a, b, i, i+1),
					"/tags/cleanup": ""} {
					if res := admin.Do("POST", base+path, body); res.Status != 200 {
						t.Errorf("status %d: %s", res.Status, res.Body)
					}
				}
			}
		})
	}
	wg.Wait()
	if _, line := r.list(me.Do("GET", base+"/series/"+of["A"]+"/tags", nil)); !strings.HasPrefix(line, "A 2, B 2, c") {
		t.Errorf("the tags are %s", line)
	}
}

// A clean-up deletes no name that is added to a series while it waits.
func TestCleanUpBesideWriter(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin := r.User(t, "one", "admin")
	of := r.series(r.One, "A")
	r.DB.Exec(t, "insert into tag (tenant_id, id, name) values ($1, gen_random_uuid(), 'unused'), ($1, gen_random_uuid(), 'wanted')", r.One)
	ctx := db.In(t.Context(), db.Tenant(r.One))
	cleaned := make(chan *testkit.Response, 1)
	err := r.DB.App.Tx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var b pgx.Batch
		taxonomy.QueueNames(&b, "tag", []string{"Wanted"}, "true")
		b.Queue("insert into series_tag (tenant_id, series_id, tag_id) select tenant_id, $1, id from tag where name = 'wanted'", of["A"])
		if err := tx.SendBatch(ctx, &b).Close(); err != nil {
			return err
		}
		go func() { cleaned <- admin.Do("POST", base+"/tags/cleanup", nil) }()
		r.DB.AwaitLock(t)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := (<-cleaned).Want(200).Map(); fmt.Sprint(got["deletedNames"]) != "[unused]" {
		t.Errorf("cleaned up: %v", got)
	}
	r.is(admin.Do("GET", base+"/series/"+of["A"]+"/tags", nil), "wanted 1, of 1")
}

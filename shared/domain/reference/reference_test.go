package reference_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/reference"
	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

// rig is a server with a series and one of its books, which records events.
type rig struct {
	*testkit.Server
	t            *testing.T
	series, book string // paths
	mu           sync.Mutex
	told         []string
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t}
	publish := func(_ context.Context, _ uuid.UUID, e ...events.Event) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, one := range e {
			data := fmt.Sprint(one.Data)
			r.told = append(r.told, one.Kind+" "+data[strings.LastIndex(data, "["):])
		}
	}
	r.Server = testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		series.Routes(a, d, publish, nil)
		reference.Routes(a, d, publish)
	})
	library, s, b := uuid.New(), uuid.New(), uuid.New()
	r.DB.Exec(t, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'Comics', '/c', 'b', '', 'series_volume', 'filename', 'file_order')`, r.One, library)
	r.DB.Exec(t, "insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) values ($1, $2, $3, 'A', 'A', 'A', 'A', 'a')", r.One, s, library)
	r.DB.Exec(t, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title)
		values ($1, $2, $3, $4, 'A/1.cbz', 1, now(), 'cbz', '1', '1', '1')`, r.One, b, library, s)
	r.series, r.book = "/api/v1/series/"+s.String(), "/api/v1/books/"+b.String()
	return r
}

// events returns the events since the last call.
func (r *rig) events() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := strings.Join(r.told, ", ")
	r.told = nil
	return out
}

// lists are the references of series and books, with two bodies for the same service and one for another.
var lists = map[string]struct {
	owners              string
	first, again, other string
	field               string // with the value
	said                []any  // in the three bodies
	event               string
}{
	"external-ids": {"series book", `{"source":"mal","externalId":"1","externalUrl":"https://mal.example/1"}`, `{"source":" mal ","externalId":"2"}`,
		`{"source":"anilist/x","externalId":"3","externalUrl":""}`, "externalId", []any{"1", "2", "3"}, "externalIds"},
	"external-links": {"series book", `{"sourceName":"mal","url":"https://mal.example/1","externalId":"x"}`, `{"sourceName":"mal","url":"http://mal.example/2"}`,
		`{"sourceName":"anilist","url":"https://a.example"}`, "url", []any{"https://mal.example/1", "http://mal.example/2", "https://a.example"}, "externalLinks"},
	"external-ratings": {"series", `{"sourceName":"MAL","rating":0,"voteCount":7}`, `{"sourceName":"mal","rating":87.5}`,
		`{"sourceName":"anilist","rating":100}`, "rating", []any{0.0, 87.5, 100.0}, "externalRatings"},
}

func TestLists(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me, reader, foreign := r.User(t, "one", "maintainer"), r.User(t, "one", "reader"), r.User(t, "two", "admin")
	for path, l := range lists {
		for _, owner := range strings.Fields(l.owners) {
			at := map[string]string{"series": r.series, "book": r.book}[owner] + "/" + path
			var all []map[string]any
			for i, body := range []string{l.first, l.again, l.other} {
				got := me.Do("POST", at, body).Want(201).Map()
				if got[l.field] != l.said[i] || got[owner+"Id"] != at[len(at)-37-len(path):len(at)-1-len(path)] {
					t.Errorf("%s of %s: %v", path, owner, got)
				}
				all = append(all, got)
			}
			if all[0]["id"] != all[1]["id"] || all[0]["createdAt"] != all[1]["createdAt"] || all[0]["id"] == all[2]["id"] {
				t.Errorf("%s: another of the same service does not take its place: %v", path, all)
			}
			if got, want := r.events(), strings.TrimSuffix(strings.Repeat(owner+"_updated ["+l.event+"]}, ", 3), ", "); got != want {
				t.Errorf("told %s, want %s", got, want)
			}
			page := reader.Do("GET", at+"?pageSize=1&page=2", nil).Want(200).Map()
			if data := page["data"].([]any); page["total"] != 2.0 || data[0].(map[string]any)["id"] != all[1]["id"] {
				t.Errorf("%s: %v", path, page)
			}
			if owner == "series" {
				if got := reader.Do("GET", r.series, nil).Want(200).Map()[l.event].([]any); len(got) != 2 || got[1].(map[string]any)[l.field] != l.said[1] {
					t.Errorf("the record has %v", got)
				}
			}
			for method, body := range map[string]string{"GET": "", "POST": l.first} {
				foreign.Do(method, at, body).Want(404)
			}
			foreign.Do("DELETE", at+"/mal", nil).Want(404)
			reader.Do("POST", at, l.first).Want(403)
			reader.Do("DELETE", at+"/mal", nil).Want(403)
			me.Do("DELETE", at+map[bool]string{true: "/MAL", false: "/mal"}[path == "external-ratings"], nil).Want(204)
			me.Do("DELETE", at+"/mal", nil).Want(404)
			me.Do("DELETE", at+"/"+all[2]["id"].(string), nil).Want(204)
			if got := me.Do("GET", at, nil).Want(200).Map()["total"]; got != 0.0 {
				t.Errorf("%s: %v are left", path, got)
			}
			if n := strings.Count(r.events(), "updated"); n != 2 {
				t.Errorf("two were removed, and %d events say so", n)
			}
		}
	}
}

func TestTitles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me, foreign := r.User(t, "one", "maintainer"), r.User(t, "two", "admin")
	at := r.series + "/alternate-titles"
	first := me.Do("POST", at, `{"label":"Japanese","title":"ナルト"}`).Want(201).Map()
	second := me.Do("POST", at, `{"label":"Japanese","title":"Naruto "}`).Want(201).Map()
	if first["id"] == second["id"] || second["title"] != "Naruto" {
		t.Errorf("two titles of a kind: %v, %v", first, second)
	}
	one := at + "/" + first["id"].(string)
	if got := me.Do("PATCH", one, `{"label":"Kana"}`).Want(200).Map(); got["label"] != "Kana" || got["title"] != "ナルト" || got["createdAt"] != first["createdAt"] {
		t.Errorf("changed: %v", got)
	}
	me.Do("PATCH", one, `{"title":"N","label":null}`).Want(200)
	me.Do("PATCH", one, `{}`).Want(200) // changes nothing
	me.Do("PATCH", one, `{"title":"\u0007"}`).Want(400)
	me.Do("PATCH", at+"/"+uuid.NewString(), `{"title":"N"}`).Want(404)
	me.Do("PATCH", at+"/Kana", `{"title":"N"}`).Want(400)
	foreign.Do("PATCH", one, `{"title":"N"}`).Want(404)
	me.Do("DELETE", at+"/Japanese", nil).Want(404) // there may be several
	if got, want := r.events(), strings.TrimSuffix(strings.Repeat("series_updated [alternateTitles]}, ", 4), ", "); got != want {
		t.Errorf("told %s", got)
	}
	me.Do("DELETE", one, nil).Want(204)
	got := me.Do("GET", r.series+"/metadata", nil).Want(200).Map()["alternateTitles"].([]any)
	if len(got) != 1 || got[0].(map[string]any)["title"] != "Naruto" {
		t.Errorf("left are %v", got)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me := r.User(t, "one", "maintainer")
	for _, c := range [][3]string{
		{"external-ids", `{"source":" ","externalId":"1"}`, "source"}, {"external-ids", `{"source":"a","externalId":"\u200b"}`, "externalId"},
		{"external-ids", `{"source":"a","externalId":"1","externalUrl":"javascript:alert(1)"}`, "externalUrl"}, {"external-ids", `{"externalId":"1"}`, "source"},
		{"external-links", `{"sourceName":"a","url":"mal.example"}`, "url"}, {"external-links", `{"sourceName":"a","url":"https:///x"}`, "url"},
		{"external-links", `{"sourceName":"a","url":"data:text/html,x"}`, "url"}, {"external-links", `{"sourceName":"a","url":"ftp://mal.example/1"}`, "url"},
		{"external-links", `{"sourceName":"a","url":"http://[::1"}`, "url"}, {"external-links", `{"sourceName":"a","url":"` + strings.Repeat("x", 2001) + `"}`, "url"},
		{"external-ratings", `{"sourceName":"a","rating":100.1}`, "rating"}, {"external-ratings", `{"sourceName":"a","rating":-1}`, "rating"},
		{"external-ratings", `{"sourceName":"a","rating":1,"voteCount":-1}`, "voteCount"}, {"external-ratings", `{"sourceName":"a","rating":"5"}`, "rating"},
		{"alternate-titles", `{"label":"a"}`, "title"}, {"alternate-titles", `{"label":"a\u0000","title":"b"}`, "label"},
	} {
		if m := me.Do("POST", r.series+"/"+c[0], c[1]).Want(400).Map(); m["details"].([]any)[0].(map[string]any)["field"] != c[2] {
			t.Errorf("%s: %v", c[1], m)
		}
	}
	r.Key(t, me, auth.BooksRead).Do("GET", r.series+"/external-ids", nil).Want(403)
	r.DB.Exec(t, `insert into external_link (tenant_id, id, series_id, source_name, url) select tenant_id, gen_random_uuid(), id, n::text, 'http://x'
		from series, generate_series(1, 200) n where tenant_id = $1`, r.One)
	me.Do("POST", r.series+"/external-links", `{"sourceName":"one more","url":"https://x.example"}`).Want(409)
	if got := r.events(); got != "" {
		t.Errorf("what was refused is told: %s", got)
	}
	me.Do("POST", r.series+"/external-links", `{"sourceName":"200","url":"https://x.example"}`).Want(201)
	for _, name := range []string{"MAL", "mal"} {
		me.Do("POST", r.series+"/external-ids", `{"source":"`+name+`","externalId":"1"}`).Want(201)
	}
	me.Do("DELETE", r.series+"/external-ids/MAL", nil).Want(204)
	left := me.Do("GET", r.series+"/external-ids", nil).Want(200).Map()["data"].([]any)
	if len(left) != 1 || left[0].(map[string]any)["source"] != "mal" {
		t.Fatalf("left are %v", left)
	}
	me.Do("DELETE", r.series+"/external-ids/"+strings.ToUpper(left[0].(map[string]any)["id"].(string)), nil).Want(204)
	r.DB.Exec(t, "update book set deleted_at = now()")
	me.Do("GET", r.book+"/external-links", nil).Want(404)
	me.Do("POST", r.book+"/external-links", `{"sourceName":"a","url":"https://x.example"}`).Want(404)
	if got := r.events(); strings.Contains(got, "book") {
		t.Errorf("told %s", got)
	}
}

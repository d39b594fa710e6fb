package series_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/testkit"
)

// The list of full records contains the same as each full record.
func TestFullList(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me, other := s.User(t, "one", "reader"), s.User(t, "one", "reader")
	library, foreign := newLibrary(t, s, s.One, "comics"), newLibrary(t, s, s.Two, "comics")
	newSeries(t, s, s.Two, foreign, "Foreign", 9, 1)
	one, ones := newSeries(t, s, s.One, library, "A", 1, 2)
	two, twos := newSeries(t, s, s.One, library, "B", 2, 1)
	none, _ := newSeries(t, s, s.One, library, "C", 3, 0)
	complete := func(c *testkit.Client, book uuid.UUID, times int) {
		exec(t, s, `insert into completion (tenant_id, account_id, book_id, id, pass, started_at, completed_at)
			select $1, $2, $3, gen_random_uuid(), n, now() - n * interval '2 hours', now() - n * interval '1 hour' from generate_series(1, $4::integer) n`, c.Tenant, c.ID, book, times)
	}
	complete(me, ones[0], 3)
	complete(me, ones[1], 2)
	complete(other, twos[0], 1)
	read(t, s, me, ones[0], true, 1)
	read(t, s, me, ones[1], false, 2)
	for i, id := range []uuid.UUID{one, two} {
		exec(t, s, "insert into alternate_title (tenant_id, id, series_id, label, title) select $1, gen_random_uuid(), $2, 'l' || n, 't' || n from generate_series(1, $3::integer) n", s.One, id, i+1)
		exec(t, s, "insert into external_id (tenant_id, id, series_id, source, external_id) select $1, gen_random_uuid(), $2, 's' || n, 'e' || n from generate_series(1, $3::integer) n", s.One, id, i+1)
		exec(t, s, "insert into external_link (tenant_id, id, series_id, source_name, url) values ($1, gen_random_uuid(), $2, 's', 'https://example.org/')", s.One, id)
		exec(t, s, "insert into external_rating (tenant_id, id, series_id, source_name, rating, fetched_at) values ($1, gen_random_uuid(), $2, 's', 50, now())", s.One, id)
		for _, table := range []string{"genre", "tag"} {
			term := uuid.New()
			exec(t, s, "insert into "+table+" (tenant_id, id, name) values ($1, $2, $3)", s.One, term, fmt.Sprint(table, i))
			exec(t, s, "insert into series_"+table+" (tenant_id, series_id, "+table+"_id) select $1, unnest($2::uuid[]), $3", s.One, []uuid.UUID{one, two}[i:], term)
		}
	}
	exec(t, s, "insert into sidecar (tenant_id, library_id, key, about, kind, version, size, modified_at, problem) select tenant_id, library_id, path || '/series.json', path, 'series', gen_random_uuid(), 1, now(), 'is no JSON' from series where id = $1", one)
	// The warning of a book's metadata.opf is not one of its series.
	exec(t, s, "insert into sidecar (tenant_id, library_id, key, about, kind, version, size, modified_at, problem) select tenant_id, library_id, path || '/metadata.opf', path, 'opf', gen_random_uuid(), 1, now(), 'is no XML' from series where id = $1", one)
	exec(t, s, "update series set locks = '{title}', authors = '[{\"name\":\"N\",\"role\":\"writer\"}]' where id = $1", two)
	type object = map[string]any
	list := func(query string) (out []object, page object) {
		t.Helper()
		page = me.Do("GET", "/api/v1/series/full"+query, nil).Want(200).Map()
		for _, entry := range page["data"].([]any) {
			out = append(out, entry.(object))
		}
		return out, page
	}
	got, page := list("")
	if len(got) != 3 || page["total"] != 3.0 {
		t.Fatalf("%d of %v series", len(got), page["total"])
	}
	for i, id := range []uuid.UUID{one, two, none} {
		var want object
		if err := json.Unmarshal(me.Do("GET", "/api/v1/series/"+id.String()+"/full", nil).Want(200).Body, &want); err != nil {
			t.Fatal(err)
		}
		for key := range maps.Keys(want) {
			if !reflect.DeepEqual(got[i][key], want[key]) {
				t.Errorf("%s of series %d: %v, alone %v", key, i, got[i][key], want[key])
			}
		}
		if len(got[i]) != len(want) {
			t.Errorf("series %d has %d fields, alone %d", i, len(got[i]), len(want))
		}
	}
	for _, l := range []struct{ method, path, body string }{{"GET", "?full=true", ""}, {"POST", "/list?full=true", "{}"}, {"POST", "/search?full=true&sort=name", `{"query":"a"}`},
		{"POST", "/search", `{"query":"a","full":true}`}, {"GET", "/in-progress?full=true", ""}, {"GET", "/recently-added?full=true&sort=name&pageSize=101", ""}, {"GET", "/recently-updated?full=true&sort=date_read,desc", ""}} {
		var body any
		if l.body != "" {
			body = l.body
		}
		page := me.Do(l.method, "/api/v1/series"+l.path, body).Want(200).Map()
		entries := page["data"].([]any)
		if len(entries) == 0 || page["total"] != float64(len(entries)) || page["pageSize"].(float64) > 100 {
			t.Errorf("%s: %d of %v", l.path, len(entries), page["total"])
		}
		for i, entry := range entries {
			if !reflect.DeepEqual(entry, any(got[i])) {
				t.Errorf("%s: %v, the full list has %v", l.path, entry, got[i])
			}
		}
	}
	if page := me.Do("GET", "/api/v1/series", nil).Want(200).Map(); page["data"].([]any)[0].(object)["metadata"] != nil {
		t.Errorf("without full there is more: %v", page)
	}
	if books := me.Do("GET", "/api/v1/series/"+one.String()+"/books?full=true", nil).Want(200).Map()["data"].([]any); len(books) != 2 || books[0].(object)["readCount"] != 3.0 {
		t.Errorf("the books of a series: %v", books)
	}
	if got[0]["readCount"] != 2.0 || got[1]["readCount"] != 0.0 || len(got[1]["externalIds"].([]any)) != 2 || len(got[0]["genres"].([]any)) != 1 || len(got[1]["genres"].([]any)) != 2 ||
		len(got[0]["metadata"].(object)["warnings"].([]any)) != 1 {
		t.Errorf("the test has less to compare than it means to: %v", got)
	}
	for query, want := range map[string]string{"?sort=name,desc": "[C B A]", "?pageSize=1&page=2": "[B]", "?genres=genre1": "[B]", "?tags=tag0": "[A B]", "?page=9": "[]",
		"?libraryId=" + library.String(): "[A B C]", "?libraryId=" + foreign.String(): "[]", "?sort=date_read,desc&pageSize=1": "[A]"} {
		names := []any{}
		entries, _ := list(query)
		for _, e := range entries {
			names = append(names, e["title"])
		}
		if fmt.Sprint(names) != want {
			t.Errorf("%s: %v, want %s", query, names, want)
		}
	}
	if _, page := list("?pageSize=101"); page["pageSize"] != 100.0 {
		t.Errorf("a page has %v", page["pageSize"])
	}

	var index struct {
		Data []struct {
			ID             uuid.UUID
			VolumesOwned   int
			LocalMaxVolume *int
			ExternalIDs    []object
		}
		Total int
	}
	me.Do("GET", "/api/v1/series/external-index?sort=name,desc&full=true", nil).Want(200).JSON(&index)
	if len(index.Data) != 3 || index.Total != 3 || index.Data[0].ID != none || index.Data[0].ExternalIDs == nil || index.Data[0].LocalMaxVolume != nil ||
		fmt.Sprint(index.Data[1].ExternalIDs) != "[map[externalId:e1 externalUrl:<nil> source:s1] map[externalId:e2 externalUrl:<nil> source:s2]]" ||
		index.Data[2].VolumesOwned != 2 || *index.Data[2].LocalMaxVolume != 2 {
		t.Errorf("the index: %+v", index)
	}
	// Chapters are no volumes, and books whose files are gone are not there.
	exec(t, s, "update book set chapter = 1 where id = $1", ones[0])
	exec(t, s, "update book set deleted_at = now() where id = $1", twos[0])
	me.Do("GET", "/api/v1/series/external-index?sort=name", nil).Want(200).JSON(&index)
	if index.Data[0].VolumesOwned != 1 || index.Data[1].VolumesOwned != 0 || index.Data[1].LocalMaxVolume != nil {
		t.Errorf("the index with a chapter, and with a series without files: %+v", index)
	}
	for _, path := range []string{"full", "external-index"} {
		me.Do("GET", "/api/v1/series/"+path+"?sort=nothing", nil).Want(400)
		me.Do("GET", "/api/v1/series/"+path+"?page=0", nil).Want(400)
		s.Key(t, me, "BooksRead").Do("GET", "/api/v1/series/"+path, nil).Want(403)
	}
}

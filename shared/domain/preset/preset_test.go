package preset_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/preset"
	"github.com/longbox/longbox/shared/testkit"
)

const at = "/api/v1/filter-presets"

func TestPresets(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, preset.Routes)
	me, other, foreign := s.User(t, "one", "reader"), s.User(t, "one", "reader"), s.User(t, "two", "admin")
	library, theirs := uuid.New(), uuid.New()
	for tenant, id := range map[uuid.UUID]uuid.UUID{s.One: library, s.Two: theirs} {
		s.DB.Exec(t, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
			values ($1, $2, 'Comics', '/c', 'b', '', 'series_volume', 'filename', 'file_order')`, tenant, id)
	}
	const condition = `{"allOf":[{"title":{"operator":"contains","value":"x"}}]}`
	body := func(scope, target, name, more string) string {
		return fmt.Sprintf(`{"scope":%q,"target":%q,"name":%q,"condition":%s%s}`, scope, target, name, condition, more)
	}
	mine := fmt.Sprintf(`,"libraryId":%q`, library)
	first := me.Do("POST", at, body("list", "books", " Unread ", `,"query":"hare","sort":"relevance,desc"`+mine)).Want(201).Map()
	if first["name"] != "Unread" || first["libraryId"] != library.String() || first["query"] != "hare" || first["sort"] != "relevance,desc" ||
		fmt.Sprint(first["condition"]) != "map[allOf:[map[title:map[operator:contains value:x]]]]" {
		t.Errorf("kept: %v", first)
	}
	me.Do("POST", at, body("list", "books", "unread", "")).Want(201) // for all libraries
	me.Do("POST", at, body("list", "series", "Unread", "")).Want(201)
	last := me.Do("POST", at, `{"scope":"search","target":"series","name":"All","condition":null}`).Want(201).Map()
	other.Do("POST", at, body("list", "books", "Unread", "")).Want(201)
	for _, again := range []string{body("list", "books", "UNREAD", mine), body("list", "books", "Unread", "")} {
		if m := me.Do("POST", at, again).Want(409).Map(); m["details"].([]any)[0].(map[string]any)["field"] != "name" {
			t.Errorf("the same name: %v", m)
		}
	}
	names := func(query string) (out string) {
		t.Helper()
		page := me.Do("GET", at+query, nil).Want(200).Map()
		for _, p := range page["data"].([]any) {
			out += fmt.Sprint(p.(map[string]any)["name"], " ")
		}
		return out + fmt.Sprint("of ", page["total"])
	}
	for query, want := range map[string]string{"": "All Unread unread Unread of 4", "?scope=search": "All of 1", "?scope=list&target=books": "Unread unread of 2",
		"?target=series&pageSize=1&page=2": "Unread of 2", "?target=books&libraryId=" + library.String(): "Unread unread of 2", "?target=books&libraryId=" + uuid.NewString(): "unread of 1"} {
		got := names(query)
		if query == "" { // equal names in any order
			got = strings.ReplaceAll(got, "unread", "Unread")
			want = strings.ReplaceAll(want, "unread", "Unread")
		}
		if strings.ReplaceAll(got, "unread Unread", "Unread unread") != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	one := at + "/" + first["id"].(string)
	if got := me.Do("PUT", one, `{"name":"Read","condition":{"hasError":{"operator":"isTrue"}}}`).Want(200).Map(); got["name"] != "Read" || got["libraryId"] != nil ||
		got["query"] != nil || got["target"] != "books" || got["createdAt"] != first["createdAt"] || got["updatedAt"] == first["updatedAt"] {
		t.Errorf("changed: %v", got)
	}
	if got := me.Do("GET", one, nil).Want(200).Map(); got["name"] != "Read" {
		t.Errorf("read: %v", got)
	}
	me.Do("PUT", one, `{"name":"unread","condition":null}`).Want(409)
	// Not a field of series.
	me.Do("PUT", at+"/"+last["id"].(string), `{"name":"All","condition":{"hasError":{"operator":"isTrue"}}}`).Want(400)
	for _, c := range []*testkit.Client{other, foreign} {
		c.Do("GET", one, nil).Want(404)
		c.Do("PUT", one, `{"name":"Theirs","condition":null}`).Want(404)
		c.Do("DELETE", one, nil).Want(404)
	}
	me.Do("DELETE", one, nil).Want(204)
	me.Do("DELETE", one, nil).Want(404)
	me.Do("GET", one, nil).Want(404)

	large := `{"allOf":[` + strings.Repeat(condition+",", 1800) + condition + `]}`
	for in, field := range map[string]string{body("list", "films", "x", ""): "target", body("shelf", "books", "x", ""): "scope", body("list", "books", "", ""): "name",
		body("list", "books", " ", ""): "name", body("list", "books", "x", `,"sort":"rating"`): "sort",
		body("list", "books", strings.Repeat("x", 101), ""): "name", body("list", "books", "x", fmt.Sprintf(`,"libraryId":%q`, theirs)): "libraryId",
		`{"scope":"list","target":"books","name":"x","condition":` + large + `}`:                       "condition",
		`{"scope":"list","target":"books","name":"x"}`:                                                 "condition",
		`{"scope":"list","target":"books","name":"x","condition":{"what":1}}`:                          "condition.what",
		`{"scope":"list","target":"books","name":"x","condition":"all"}`:                               "condition",
		`{"scope":"list","target":"books","name":"x","condition":{}}`:                                  "condition",
		`{"scope":"list","target":"series","name":"x","condition":{"hasError":{"operator":"isTrue"}}}`: "condition.hasError"} {
		m := me.Do("POST", at, in).Want(400).Map()
		if details, _ := m["details"].([]any); len(details) == 0 || details[0].(map[string]any)["field"] != field {
			t.Errorf("%s: %v", in, m)
		}
	}
	s.DB.Exec(t, `insert into filter_preset (tenant_id, account_id, id, name, scope, target, condition)
		select $1, $2, gen_random_uuid(), 'n' || n, 'list', 'books', 'null' from generate_series(1, 496) n`, s.One, me.ID)
	me.Do("POST", at, body("list", "books", "500th", "")).Want(201)
	me.Do("POST", at, body("list", "books", "501st", "")).Want(409)
	s.DB.Exec(t, "delete from library where id = $1", library) // filters for all libraries stay
	if got := names("?scope=search"); got != "All of 1" {
		t.Errorf("left: %s", got)
	}
}

// Filters of the same name are listed in the same order on every page.
func TestPagesOfEqualNames(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, preset.Routes)
	me := s.User(t, "one", "reader")
	s.DB.Exec(t, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		select $1, gen_random_uuid(), 'l' || n, '/' || n, 'b', '', 'series_volume', 'filename', 'file_order' from generate_series(1, 100) n`, s.One)
	s.DB.Exec(t, `insert into filter_preset (tenant_id, account_id, id, scope, target, name, library_id, condition)
		select $1, $2, gen_random_uuid(), 'list', 'books', 'Unread', id, 'null' from library order by id`, s.One, me.ID)
	var ids []string
	for page := 1; page <= 4; page++ {
		for _, p := range me.Do("GET", fmt.Sprintf("%s?pageSize=25&page=%d", at, page), nil).Want(200).Map()["data"].([]any) {
			ids = append(ids, p.(map[string]any)["id"].(string))
		}
	}
	if len(ids) != 100 || !slices.IsSorted(ids) {
		t.Errorf("%d filters are listed, by id: %v", len(ids), slices.IsSorted(ids))
	}
}

// All conditions of a user must fit in one response.
func TestRoomForConditions(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, preset.Routes)
	me := s.User(t, "one", "reader")
	words := make([]map[string]any, 60)
	for i := range words {
		words[i] = map[string]any{"title": map[string]any{"operator": "contains", "value": strings.Repeat("x", 1000)}}
	}
	body := func(n int, condition any) map[string]any {
		return map[string]any{"scope": "list", "target": "books", "name": fmt.Sprint("filter ", n), "condition": condition}
	}
	large := map[string]any{"anyOf": words}
	n := 0
	for ; n < 100 && me.Do("POST", at, body(n, large)).Status == 201; n++ {
	}
	if n < 30 || n > 34 {
		t.Errorf("%d filters of 60 KB each fit", n)
	}
	small := me.Do("POST", at, body(100, nil)).Want(201).Map()["id"].(string)
	me.Do("PUT", at+"/"+small, body(100, large)).Want(409)
	me.Do("PUT", at+"/"+small, body(101, nil)).Want(200)
	s.User(t, "one", "reader").Do("POST", at, body(0, large)).Want(201)
}

// Concurrent requests of one user are serialized: the limit is never exceeded.
func TestRoomIsCountedOneByOne(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, preset.Routes)
	me := s.User(t, "one", "reader")
	s.DB.Exec(t, `insert into filter_preset (tenant_id, account_id, id, scope, target, name, condition)
		select $1, $2, gen_random_uuid(), 'list', 'books', 'x' || n, 'null' from generate_series(1, 499) n`, s.One, me.ID)
	tx, err := s.DB.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	if _, err := tx.Exec(t.Context(), `insert into filter_preset (tenant_id, account_id, id, scope, target, name, condition)
		select tenant_id, id, gen_random_uuid(), 'list', 'books', 'the last', 'null' from account where id = $1 for no key update`, me.ID); err != nil {
		t.Fatal(err)
	}
	answer := make(chan *testkit.Response, 1)
	go func() {
		answer <- me.Do("POST", at, `{"scope":"list","target":"books","name":"one more","condition":null}`)
	}()
	s.DB.AwaitLock(t)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	(<-answer).Want(409)
}

package preference_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/domain/preference"
	"github.com/longbox/longbox/shared/testkit"
)

func TestSetAndReset(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, preference.Routes)
	me := s.User(t, "one", "reader")
	for _, c := range []struct {
		key  string
		body string
		kind string
	}{
		{"ui.theme", `{"value":"dark"}`, "string"},
		{"a", `{"value":3}`, "integer"},
		{"b", `{"value":1e300}`, "float"},
		{"b", `{"value":3.5}`, "float"},
		{"c", `{"value":true}`, "boolean"},
		{"d", `{"value":{"snake_case":[1]}}`, "json"},
		{"e", `{"value":{"cut emoji":"\ud83d"}}`, "json"},
		{"e", `{"value":{"markup":"` + strings.Repeat("<", 60<<10) + `"}}`, "json"},
	} {
		got := me.Do("PUT", "/api/v1/user/preferences/"+c.key, c.body).Want(200).Map()
		if got["valueType"] != c.kind || got["key"] != c.key {
			t.Errorf("%s: %v", c.key, got)
		}
	}
	list := me.Do("GET", "/api/v1/user/preferences?page_size=2", nil).Want(200)
	if m := list.Map(); m["total"] != 6.0 || m["totalPages"] != 3.0 || len(m["data"].([]any)) != 2 {
		t.Errorf("list: %v", m)
	}
	if link := list.Header.Get("Link"); !strings.Contains(link, `rel="next"`) {
		t.Errorf("Link: %q", link)
	}
	if got := me.Do("GET", "/api/v1/user/preferences/d", nil).Want(200); !strings.Contains(string(got.Body), "snake_case") {
		t.Errorf("free JSON was renamed: %s", got.Body)
	}
	if m := me.Do("DELETE", "/api/v1/user/preferences/a", nil).Want(200).Map(); m["deleted"] != true {
		t.Errorf("delete: %v", m)
	}
	me.Do("GET", "/api/v1/user/preferences/a", nil).Want(404)
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, preference.Routes)
	me := s.User(t, "one", "reader")
	for _, c := range []struct{ path, body, field string }{
		{"a..b", `{"value":1}`, "key"},
		{"a", `{}`, "value"},
		{"a", `{"value":"` + strings.Repeat("x", 70<<10) + `"}`, "value"},
		{"a", `not json`, ""},
		{"a", `{"value":"\u0000"}`, "NUL"},
		{"a", `{"value":{"deep":["x\u0000"]}}`, "NUL"},
		{"a", `{"value":` + strings.Repeat(`[`, 101) + strings.Repeat(`]`, 101) + `}`, "value: must not be nested"},
		{"a", `{"value":` + strings.Repeat(`{"a":`, 9000) + `1` + strings.Repeat(`}`, 9000) + `}`, "value: must not be nested"},
		{"a", `{"value":1e200000}`, "out of range"},
		{"a", `{"value":{"a":1e-20000}}`, "out of range"},
	} {
		m := me.Do("PUT", "/api/v1/user/preferences/"+c.path, c.body).Want(400).Map()
		if m["error"] != "BadRequest" || !strings.Contains(m["message"].(string), c.field) {
			t.Errorf("%s: %v", c.path, m)
		}
	}
}

func TestHowMany(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, preference.Routes)
	me := s.User(t, "one", "reader")
	several := func(from, to int) map[string]any {
		values := map[string]any{}
		for i := from; i < to; i++ {
			values[fmt.Sprintf("k.%04d", i)] = i
		}
		return map[string]any{"preferences": values}
	}
	const all = "/api/v1/user/preferences"
	if m := me.Do("PUT", all, several(0, 990)).Want(200).Map(); m["updated"] != 990.0 || m["preferences"].([]any)[7].(map[string]any)["key"] != "k.0007" {
		t.Errorf("%v", m["updated"])
	}
	me.Do("PUT", all, several(980, 1001)).Want(400) // 990 plus 11 new ones
	me.Do("PUT", all, several(0, 1001)).Want(400)
	put := func(from int) func() { return func() { me.Do("PUT", all, several(from, from+10)) } }
	s.DB.Together(t, "preference", put(1000), put(2000)) // there is room for one of them
	if m := me.Do("GET", all+"?pageSize=1", nil).Want(200).Map(); m["total"] != 1000.0 {
		t.Errorf("%v preferences", m["total"])
	}
	me.Do("PUT", all+"/one.more", `{"value":1}`).Want(400)
	me.Do("PUT", all+"/k.0001", `{"value":"changed"}`).Want(200)
	me.Do("PUT", all, several(0, 990)).Want(200)
}

// The total size per user is limited: one page loads everything.
func TestHowMuch(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, preference.Routes)
	me := s.User(t, "one", "reader")
	const all = "/api/v1/user/preferences"
	long := strings.Repeat("x", 64<<10-2) // with its quotes, the maximum of one value
	several := func(from, to int, value string) map[string]any {
		values := map[string]any{}
		for i := from; i < to; i++ {
			values[fmt.Sprintf("k.%02d", i)] = value
		}
		return map[string]any{"preferences": values}
	}
	refused := func(r *testkit.Response, field string) {
		t.Helper()
		m := r.Want(400).Map()
		if details := m["details"].([]any); details[0].(map[string]any)["field"] != field || !strings.Contains(m["message"].(string), "2097152 bytes") {
			t.Errorf("%v", m)
		}
	}
	me.Do("PUT", all, several(0, 16, long)).Want(200)
	refused(me.Do("PUT", all, several(16, 33, long)), "preferences")
	me.Do("PUT", all, several(16, 31, long)).Want(200)
	put := func(key string) func() { return func() { me.Do("PUT", all+key, map[string]any{"value": long}) } }
	s.DB.Together(t, "preference", put("/k.31"), put("/k.32")) // there is room for one of them
	if m := me.Do("GET", all+"?pageSize=1", nil).Want(200).Map(); m["total"] != 32.0 || len(m["data"].([]any)) != 1 {
		t.Errorf("%v preferences", m["total"])
	}
	refused(me.Do("PUT", all+"/one.more", map[string]any{"value": 1}), "value")
	me.Do("PUT", all+"/k.00", map[string]any{"value": long}).Want(200)
	me.Do("PUT", all+"/k.00", map[string]any{"value": long[1:]}).Want(200)
	me.Do("PUT", all+"/one.more", map[string]any{"value": 1}).Want(200)
	refused(me.Do("PUT", all+"/k.00", map[string]any{"value": long}), "value")

	// A user above the limit, from before it existed, may still reduce the size.
	s.DB.Exec(t, `insert into preference (tenant_id, account_id, key, value) select $1, $2, 'old.' || n, to_jsonb(repeat('y', 60000)) from generate_series(1, 5) n`, s.One, me.ID)
	me.Do("PUT", all+"/old.1", map[string]any{"value": "short"}).Want(200)
	refused(me.Do("PUT", all+"/old.1", map[string]any{"value": "longer"}), "value")
}

func TestPages(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, preference.Routes)
	me := s.User(t, "one", "reader")
	me.Do("PUT", "/api/v1/user/preferences", `{"preferences":{"c":3,"a":1,"b":"two"}}`).Want(200)
	me.Do("PUT", "/api/v1/user/preferences/a", `{"value":1}`).Want(200) // the latest, and still the first
	s.User(t, "one", "reader").Do("PUT", "/api/v1/user/preferences/a", `{"value":true}`).Want(200)
	for page, want := range map[string]string{"1": "a=1=integer b=\"two\"=string", "2": "c=3=integer", "3": ""} {
		var p struct {
			Data []struct {
				Key, ValueType string
				Value          json.RawMessage
			}
			Total int
		}
		me.Do("GET", "/api/v1/user/preferences?pageSize=2&page="+page, nil).Want(200).JSON(&p)
		var got []string
		for _, d := range p.Data {
			got = append(got, fmt.Sprintf("%s=%s=%s", d.Key, d.Value, d.ValueType))
		}
		if strings.Join(got, " ") != want || p.Total != 3 {
			t.Errorf("page %s: %v of %d", page, got, p.Total)
		}
	}
}

func TestBadInputOfSeveral(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, preference.Routes)
	me := s.User(t, "one", "reader")
	long := strings.Repeat("k", 254) + "éé"
	var p struct {
		Details []struct{ Field, Message string }
	}
	me.Do("PUT", "/api/v1/user/preferences", map[string]any{"preferences": map[string]any{
		"a..b": 1, "c": strings.Repeat("x", 70<<10), "d": 1, long: 2}}).Want(400).JSON(&p)
	if len(p.Details) != 3 || p.Details[0].Field != "preferences.a..b" || !strings.Contains(p.Details[0].Message, "letters, digits") ||
		p.Details[1].Field != "preferences.c" || !strings.Contains(p.Details[1].Message, "the limit is 65536") || p.Details[2].Field != "preferences."+long[:254] {
		t.Errorf("%v", p.Details)
	}
	if m := me.Do("GET", "/api/v1/user/preferences", nil).Want(200).Map(); m["total"] != 0.0 {
		t.Errorf("%v were stored", m["total"])
	}
}

func TestNobodyElseSeesThem(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, preference.Routes)
	s.User(t, "one", "reader").Do("PUT", "/api/v1/user/preferences/a", `{"value":1}`).Want(200)
	s.User(t, "one", "admin").Do("GET", "/api/v1/user/preferences/a", nil).Want(404)
	s.User(t, "two", "admin").Do("GET", "/api/v1/user/preferences/a", nil).Want(404)
	s.Anonymous(t, "one").Do("GET", "/api/v1/user/preferences", nil).Want(401)
	foreign := s.User(t, "one", "reader")
	foreign.Host = "two.test"
	foreign.Do("GET", "/api/v1/user/preferences", nil).Want(401)
}

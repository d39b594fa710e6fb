package preference_test

import (
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
		{"b", `{"value":3.5}`, "float"},
		{"c", `{"value":true}`, "boolean"},
		{"d", `{"value":{"snake_case":[1]}}`, "json"},
		{"e", `{"value":{"cut emoji":"\ud83d"}}`, "json"},
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
		{"a", `{"value":"\u0000"}`, "cannot be stored"},
		{"a", `{"value":1e200000}`, "out of range"},
		{"a", `{"value":{"a":1e-20000}}`, "too small"},
	} {
		m := me.Do("PUT", "/api/v1/user/preferences/"+c.path, c.body).Want(400).Map()
		if m["error"] != "BadRequest" || !strings.Contains(m["message"].(string), c.field) {
			t.Errorf("%s: %v", c.path, m)
		}
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

package rating_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/rating"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/testkit"
)

func TestRatings(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, rating.Routes)
	me, other, foreign := s.User(t, "one", "reader"), s.User(t, "one", "reader"), s.User(t, "two", "reader")
	library := uuid.New()
	s.DB.Exec(t, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'Comics', '/c', 'b', '', 'series_volume', 'filename', 'file_order')`, s.One, library)
	at := map[string]string{}
	for _, title := range []string{"A", "B"} {
		id := uuid.New()
		s.DB.Exec(t, "insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) values ($1, $2, $3, $4, $4, $4, $4, $4)", s.One, id, library, title)
		at[title] = "/api/v1/series/" + id.String()
	}
	average := func(title, want string) {
		t.Helper()
		got := other.Do("GET", at[title]+"/ratings/average", nil).Want(200).Map()
		if fmt.Sprint(got["average"], got["count"]) != want {
			t.Errorf("the average of %s is %v", title, got)
		}
	}
	average("A", "<nil> 0")
	me.Do("GET", at["A"]+"/rating", nil).Want(204)
	first := me.Do("PUT", at["A"]+"/rating", `{"rating":70,"notes":"good\nend"}`).Want(200).Map()
	if first["rating"] != 70.0 || first["notes"] != "good\nend" || !strings.HasSuffix(at["A"], first["seriesId"].(string)) {
		t.Errorf("said: %v", first)
	}
	other.Do("PUT", at["A"]+"/rating", `{"rating":25}`).Want(200)
	me.Do("PUT", at["B"]+"/rating", `{"rating":100}`).Want(200)
	average("A", "47.5 2")
	again := me.Do("PUT", at["A"]+"/rating", `{"rating":1}`).Want(200).Map()
	if again["id"] != first["id"] || again["createdAt"] != first["createdAt"] || again["notes"] != nil {
		t.Errorf("said again: %v", again)
	}
	if got := me.Do("GET", at["A"]+"/rating", nil).Want(200).Map(); got["rating"] != 1.0 || got["updatedAt"] == first["updatedAt"] {
		t.Errorf("read: %v", got)
	}
	mine := func(c *testkit.Client, query string) (out string) {
		t.Helper()
		page := c.Do("GET", "/api/v1/user/ratings"+query, nil).Want(200).Map()
		for _, r := range page["data"].([]any) {
			out += fmt.Sprint(r.(map[string]any)["rating"], " ")
		}
		return out + fmt.Sprint("of ", page["total"])
	}
	for query, want := range map[string]string{"": "1 100 of 2", "?pageSize=1&page=2": "100 of 2"} {
		if got := mine(me, query); got != want {
			t.Errorf("mine%s: %s, want %s", query, got, want)
		}
	}
	if got := mine(other, ""); got != "25 of 1" {
		t.Errorf("another's: %s", got)
	}
	for range 2 {
		me.Do("DELETE", at["A"]+"/rating", nil).Want(204)
	}
	me.Do("GET", at["A"]+"/rating", nil).Want(204)
	average("A", "25 1")

	longest := strings.Repeat("é", 10000) // characters, not bytes
	if got := me.Do("PUT", at["A"]+"/rating", `{"rating":5,"notes":"`+longest+`"}`).Want(200).Map(); got["notes"] != longest {
		t.Errorf("the longest notes: %.40v", got)
	}
	for body, field := range map[string]string{`{"rating":0}`: "rating", `{"rating":101}`: "rating", `{"rating":5.5}`: "rating", `{}`: "rating", `{"rating":5,"notes":"a\u0000"}`: "notes",
		`{"rating":5,"notes":"` + strings.Repeat("x", 10001) + `"}`: "notes"} {
		if m := me.Do("PUT", at["A"]+"/rating", body).Want(400).Map(); m["details"].([]any)[0].(map[string]any)["field"] != field {
			t.Errorf("%.40s: %v", body, m)
		}
	}
	for _, path := range []string{"/rating", "/ratings/average"} {
		foreign.Do("GET", at["A"]+path, nil).Want(404)
	}
	foreign.Do("PUT", at["A"]+"/rating", `{"rating":5}`).Want(404)
	foreign.Do("DELETE", at["A"]+"/rating", nil).Want(404)
	s.Key(t, me, auth.BooksRead).Do("GET", at["A"]+"/rating", nil).Want(403)
}

package progress_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/testkit"
)

// An old position from a device that was offline does not replace a newer one.
func TestOlderPlaceIsRefused(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	r := newReader(t, s)
	s.DB.Exec(t, "update book set format = 'epub' where id = $1", r.book)
	book := "/api/v1/books/" + r.book.String()
	put := func(href string, at float64, modified string, want int) {
		t.Helper()
		r.who.Do("PUT", book+"/progression", fmt.Sprintf(`{"device":{"id":"d-%s"},"locator":{"href":"%s","locations":{"totalProgression":%v}},"modified":"%s"}`,
			href, href, at, modified)).Want(want)
	}
	is := func(href string, at float64, modified string) {
		t.Helper()
		m := r.who.Do("GET", book+"/progression", nil).Want(200).Map()
		if got := m["locator"].(map[string]any)["href"]; got != href || modified != "" && m["modified"] != modified {
			t.Errorf("the place is in %v of %v, want %s of %s", got, m["modified"], href, modified)
		}
		if p := r.who.Do("GET", book+"/progress", nil).Want(200).Map(); p["progressPercentage"] != at {
			t.Errorf("the progress is %v, want %v", p, at)
		}
	}
	put("b", 0.5, "2024-05-02T00:00:00Z", 204)
	is("b", 0.5, "2024-05-02T00:00:00Z")
	put("a", 0.25, "2024-05-01T23:59:59Z", 409)
	is("b", 0.5, "2024-05-02T00:00:00Z")
	put("b", 0.5, "2024-05-02T00:00:00Z", 204) // sent again because the response was lost
	is("b", 0.5, "2024-05-02T00:00:00Z")
	put("c", 0.4, "2024-05-03T02:00:00+02:00", 204) // an earlier page at a later time
	is("c", 0.4, "2024-05-03T00:00:00Z")

	put("d", 0.6, time.Now().Add(time.Hour).UTC().Format(time.RFC3339), 204) // a clock that is ahead: counts as now
	is("d", 0.6, "")
	put("e", 0.7, "2024-05-04T00:00:00Z", 409)
	// Without a time, the time of arrival counts.
	r.who.Do("PUT", book+"/progression", `{"locator":{"href":"f","locations":{"totalProgression":0.8}}}`).Want(204)
	is("f", 0.8, "")
	r.who.Do("PUT", book+"/progression", `{"locator":{"href":"g","locations":{"totalProgression":0.9}},"modified":null}`).Want(204)
	is("g", 0.9, "")

	// A book marked unread stays unread, and a completed one completed.
	r.who.Do("POST", book+"/unread", nil).Want(204)
	put("a", 0.25, "2024-05-05T00:00:00Z", 409)
	r.who.Do("GET", book+"/progression", nil).Want(204)
	r.who.Do("GET", book+"/progress", nil).Want(204)
	r.who.Do("POST", book+"/read", nil).Want(200)
	put("a", 0.25, "2024-05-05T00:00:00Z", 409)
	if p := r.who.Do("GET", book+"/progress", nil).Want(200).Map(); p["completed"] != true {
		t.Errorf("the progress is %v", p)
	}
	r.who.Do("PUT", "/api/v1/books/00000000-0000-4000-8000-000000000000/progression",
		`{"locator":{"href":"a","locations":{"totalProgression":1}},"modified":"2024-05-01T00:00:00Z"}`).Want(404)
}

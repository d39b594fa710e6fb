package progress_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/testkit"
)

// A position in an e-book is returned as sent, and counts as progress.
func TestProgression(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	r := newReader(t, s)
	s.DB.Exec(t, "update book set format = 'epub' where id = $1", r.book)
	book := "/api/v1/books/" + r.book.String()
	put := func(body string) *testkit.Response { return r.who.Do("PUT", book+"/progression", body) }
	place := func() map[string]any { return r.who.Do("GET", book+"/progression", nil).Want(200).Map() }

	r.who.Do("GET", book+"/progression", nil).Want(204)
	put(`{"device":{"id":"tablet","name":"Mine"},"locator":{"href":"text/c1.xhtml","type":"application/xhtml+xml","some_key":{"a_b":[1]},
		"locations":{"totalProgression":0.25,"position":7}}}`).Want(204)
	m := place()
	locator := m["locator"].(map[string]any)
	if d := m["device"].(map[string]any); d["id"] != "tablet" || d["name"] != "Mine" || locator["href"] != "text/c1.xhtml" ||
		locator["some_key"].(map[string]any)["a_b"] == nil || locator["locations"].(map[string]any)["position"] != 7.0 || m["modified"] == "" {
		t.Errorf("came back as %v", m)
	}
	if p := r.who.Do("GET", book+"/progress", nil).Want(200).Map(); p["currentPage"] != 3.0 || p["progressPercentage"] != 0.25 || p["completed"] != false {
		t.Errorf("the progress is %v", p)
	}

	// A page without a position keeps the position; a session replaces it, also one with a complete progression.
	r.who.Do("PUT", book+"/progress", `{"currentPage":4}`).Want(200)
	if got := place()["locator"].(map[string]any)["href"]; got != "text/c1.xhtml" {
		t.Errorf("after a page the place is in %v", got)
	}
	r.tell(r.session("progress", 10, 20, session{"r2Progression": `{"href":"old"}`}))
	if got := place()["locator"].(map[string]any)["href"]; got != "text/c1.xhtml" {
		t.Errorf("after an old session the place is in %v", got)
	}
	later := r.session("progress", 10, 20, session{"r2Progression": `{"device":{},"locator":{"href":"late"}}`})
	later["clientStartedAt"], later["clientEndedAt"] = "2999-01-01T00:00:00Z", "2999-01-01T00:00:00Z" // counts as now
	r.tell(later)
	if got := place()["locator"].(map[string]any)["href"]; got != "late" {
		t.Errorf("after a session the place is in %v", got)
	}

	put(`{"locator":{"href":"end","locations":{"totalProgression":0.98}}}`).Want(204)
	if p := r.who.Do("GET", book+"/progress", nil).Want(200).Map(); p["completed"] != true {
		t.Errorf("at the end the progress is %v", p)
	}
	r.who.Do("POST", book+"/unread", nil).Want(204)
	r.who.Do("GET", book+"/progression", nil).Want(204)

	for body, field := range map[string]string{
		`{}`:            "locator",
		`{"locator":3}`: "locator",
		`{"locator":{"locations":{"totalProgression":1}}}`:                                              "locator.href",
		`{"locator":{"href":"a"}}`:                                                                      "locator.locations.totalProgression",
		`{"locator":{"href":"a","locations":{"totalProgression":2}}}`:                                   "locator.locations.totalProgression",
		`{"locator":{"href":"` + strings.Repeat("a", 10_000) + `","locations":{"totalProgression":1}}}`: "locator",
		`{"locator":{"href":"a","locations":{"totalProgression":1}},"device":{"name":3}}`:               "device.name",
		// Otherwise one of them would be validated and the other stored.
		`{"locator":{"href":"a","locations":{"totalProgression":1}},"device":{"id":"a","ID":"` + strings.Repeat("b", 300) + `"}}`: "body",
	} {
		if res := put(body).Want(400); !strings.Contains(string(res.Body), `"`+field+`"`) {
			t.Errorf("%.60s: %s", body, res.Body)
		}
	}
	gone := strings.Replace(book, r.book.String(), "00000000-0000-4000-8000-000000000000", 1)
	r.who.Do("GET", gone+"/progression", nil).Want(404)
	r.who.Do("PUT", gone+"/progression", `{"locator":{"href":"a","locations":{"totalProgression":1}}}`).Want(404)
	if other := s.User(t, "one", "reader"); len(other.Do("GET", book+"/progression", nil).Want(204).Body) != 0 {
		t.Error("another user sees the place")
	}
}

// In a book of page images a position is a page: totalProgression is where that page begins.
func TestProgressionOfPages(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	r := newReader(t, s)
	book := "/api/v1/books/" + r.book.String()
	put := func(page, total any) {
		t.Helper()
		r.who.Do("PUT", book+"/progression", fmt.Sprintf(`{"locator":{"href":"page","locations":{"position":%v,"progression":0,"totalProgression":%v}}}`, page, total)).Want(204)
	}
	want := func(page float64, completed bool) {
		t.Helper()
		if p := r.who.Do("GET", book+"/progress", nil).Want(200).Map(); p["currentPage"] != page || p["completed"] != completed {
			t.Errorf("the progress is %v, want page %v, %v", p, page, completed)
		}
	}
	for page := 1; page <= 10; page++ { // as in the book's list of positions
		put(page, float64(page-1)/10)
		want(float64(page), page == 10)
	}
	for _, none := range []any{0, -1, 2.5, `"3"`, 1e30, "null"} {
		put(none, 0.35)
		want(4, false)
	}
	s.DB.Exec(t, "update book set format = 'epub' where id = $1", r.book)
	put(9, 0.25) // there are other positions than pages
	want(3, false)
}

// A measured session keeps the position that was sent plainly during it.
func TestPlaceOfMeasuredSitting(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	r := newReader(t, s)
	s.DB.Exec(t, "update book set format = 'epub' where id = $1", r.book)
	path := "/api/v1/books/" + r.book.String() + "/progression"
	sitting := func(more session) session {
		more["activeDurationMs"], more["toPercentage"] = 1000, 0.42
		// The end counts as now.
		more["clientStartedAt"], more["clientEndedAt"] = "2024-05-01T00:00:00Z", "2999-01-01T00:00:00Z"
		return r.session("progress", 0, 0, more)
	}
	for _, c := range []struct {
		own  session
		want string
	}{
		{session{}, "Mine: plain"},
		{session{"r2Progression": `{"href":"own"}`}, "Mine: own"},
		{session{"r2Progression": `{"href":"own"}`, "deviceName": "Ours"}, "Ours: own"},
	} {
		r.who.Do("PUT", path, `{"device":{"id":"tablet","name":"Mine"},"locator":{"href":"plain","locations":{"totalProgression":0.4}}}`).Want(204)
		r.tell(sitting(c.own))
		m := r.who.Do("GET", path, nil).Want(200).Map()
		got := m["device"].(map[string]any)["name"].(string) + ": " + m["locator"].(map[string]any)["href"].(string)
		if got != c.want {
			t.Errorf("after a sitting with %v the place is %s, want %s", c.own, got, c.want)
		}
	}
}

// An invalid position in a session keeps the old one.
func TestPlaceThatIsNone(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	r := newReader(t, s)
	path := "/api/v1/books/" + r.book.String() + "/progression"
	r.who.Do("PUT", path, `{"locator":{"href":"text","locations":{"totalProgression":0.4}}}`).Want(204)
	for _, none := range []string{"", " ", "null", "3", `"text"`, "[]", "epubcfi(/6/4)", `{"href":`} {
		// The end counts as now.
		sitting := r.session("progress", 0, 0, session{"r2Progression": none, "clientEndedAt": "2999-01-01T00:00:00Z"})
		if accepted := r.tell(sitting)["accepted"].([]any); len(accepted) != 1 {
			t.Errorf("%q: accepted %v", none, accepted)
		}
		if res := r.who.Do("GET", path, nil); res.Status != 200 || !strings.Contains(string(res.Body), `"href":"text"`) {
			t.Errorf("after %q the place is %d %s", none, res.Status, res.Body)
		}
	}
}

// The share n/100 of a book of 100 pages is page n, although it is rounded: 0.07 * 100 is more than 7, and some clients
// compute with fewer digits.
func TestPageOfAShare(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	_, books := shelf(t, s, 100)
	s.DB.Exec(t, "update book set page_count = 100")
	for name, share := range map[string]func(n int) float64{
		"double": func(n int) float64 { return float64(n) / 100 },
		"single": func(n int) float64 { return float64(float32(n) / 100) },
	} {
		session, place := s.User(t, "one", "reader"), s.User(t, "one", "reader")
		var sent []any
		for i, book := range books {
			sent = append(sent, reader{t, session, book}.session("progress", 1, 2, map[string]any{"toPercentage": share(i + 1)}))
			place.Do("PUT", "/api/v1/books/"+book.String()+"/progression",
				fmt.Sprintf(`{"locator":{"href":"page","locations":{"totalProgression":%v}}}`, share(i+1))).Want(204)
		}
		session.Do("POST", "/api/v1/reading-sessions", map[string]any{"sessions": sent}).Want(200)
		for way, who := range map[string]*testkit.Client{"session": session, "place": place} {
			got := map[any]any{}
			for _, p := range who.Do("GET", "/api/v1/progress?pageSize=100", nil).Want(200).Map()["data"].([]any) {
				got[p.(map[string]any)["bookId"]] = p.(map[string]any)["currentPage"]
			}
			for i, book := range books {
				if got[book.String()] != float64(i+1) {
					t.Errorf("%s in %s precision: at %d %% the page is %v", way, name, i+1, got[book.String()])
				}
			}
		}
	}
}

package progress_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/testkit"
)

// Progress sent for a book that has turned out to be another is recorded for that one, for every user who was offline
// meanwhile.
func TestHeirIsTold(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	r := newReader(t, s)
	was := reader{t, r.who, uuid.New()}
	s.DB.Exec(t, "insert into book_heir (tenant_id, id, book_id) values ($1, $2, $3)", s.One, was.book, r.book)
	path := "/api/v1/books/" + was.book.String()
	at := func() string {
		if m := r.who.Do("GET", "/api/v1/books/"+r.book.String()+"/progress", nil); m.Status == 200 {
			return fmt.Sprint(m.Map()["currentPage"], " ", m.Map()["completed"])
		}
		return "nowhere"
	}
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"PUT", "/progress", `{"currentPage":4}`, 200, "4 false"},
		{"POST", "/read", "", 200, "10 true"},
		{"POST", "/unread", "", 204, "nowhere"},
		{"PUT", "/progression", `{"locator":{"href":"c1","locations":{"totalProgression":0.25}}}`, 204, "3 false"},
		{"DELETE", "/progress", "", 204, "nowhere"},
	} {
		if r.who.Do(c.method, path+c.path, c.body).Want(c.status); at() != c.want {
			t.Errorf("%s %s: the reader is at %s, want %s", c.method, c.path, at(), c.want)
		}
	}
	r.who = s.User(t, "one", "reader")
	none := reader{t, r.who, uuid.New()}
	m := r.tell(was.session("reset", 1, 1, nil), was.session("progress", 10, 20, session{"toPage": 4}), r.session("progress", 30, 40, session{"toPage": 5}),
		none.session("progress", 10, 20, session{"toPage": 6}))
	if list := m["progress"].([]any); len(m["accepted"].([]any)) != 3 || len(m["rejected"].([]any)) != 1 || len(list) != 1 || list[0].(map[string]any)["bookId"] != r.book.String() {
		t.Errorf("sessions: %v", m)
	}
	s.User(t, "two", "reader").Do("PUT", path+"/progress", `{"currentPage":4}`).Want(404)
	s.DB.Exec(t, "delete from book where id = $1", r.book)
	r.who.Do("PUT", path+"/progress", `{"currentPage":4}`).Want(404)
}

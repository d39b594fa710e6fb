package series_test

import (
	"fmt"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

// The unread counts are the same whether the books are looked up one by one, as for a small page and much progress, or
// the caller's progress is collected.
func TestUnreadOfLists(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me, other := s.User(t, "one", "reader"), s.User(t, "one", "reader")
	comics := newLibrary(t, s, s.One, "comics")
	_, short := newSeries(t, s, s.One, comics, "A", 1, 3)
	_, long := newSeries(t, s, s.One, comics, "B", 2, 20)
	read(t, s, me, short[0], true, 1)
	read(t, s, me, short[1], false, 1)
	for i, id := range long {
		if i < 15 {
			read(t, s, me, id, true, 1)
		}
		read(t, s, other, id, i%2 == 0, 1)
	}
	for query, want := range map[string][]float64{"": {2, 5}, "?pageSize=1": {2}, "?pageSize=1&page=2": {5}} {
		items := me.Do("GET", "/api/v1/series"+query, nil).Want(200).Map()["data"].([]any)
		if len(items) != len(want) {
			t.Fatalf("%q lists %d series", query, len(items))
		}
		for i, item := range items {
			if got := item.(map[string]any)["unreadCount"]; got != want[i] {
				t.Errorf("%q: %v of series %d unread, want %v", query, got, i+1, want[i])
			}
		}
	}
}

// Progress in a book whose file is gone counts nowhere: not as being in progress, as read, or in the order of reading.
func TestProgressInGoneBooks(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me := s.User(t, "one", "reader")
	comics := newLibrary(t, s, s.One, "comics")
	_, gone := newSeries(t, s, s.One, comics, "A", 1, 2)
	_, there := newSeries(t, s, s.One, comics, "B", 2, 2)
	read(t, s, me, gone[0], false, 1)
	read(t, s, me, there[0], false, 2)
	lists := func() (out []string) {
		t.Helper()
		for _, path := range []string{"/in-progress", "/in-progress?sort=name", "?sort=date_read,desc"} {
			got, total := titles(t, me.Do("GET", "/api/v1/series"+path, nil))
			out = append(out, fmt.Sprint(got, total))
		}
		for _, status := range []string{"unread", "in_progress"} {
			got, total := titles(t, me.Do("POST", "/api/v1/series/list", `{"condition":{"readStatus":{"operator":"is","value":"`+status+`"}}}`))
			out = append(out, fmt.Sprint(got, total))
		}
		return out
	}
	if got := fmt.Sprint(lists()); got != "[A,B2 A,B2 A,B2 0 A,B2]" {
		t.Errorf("with the file: %s", got)
	}
	exec(t, s, "update book set deleted_at = now() where id = $1", gone[0])
	if got := fmt.Sprint(lists()); got != "[B1 B1 B,A2 A1 B1]" {
		t.Errorf("without it: %s", got)
	}
}

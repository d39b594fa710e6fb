package series_test

import (
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

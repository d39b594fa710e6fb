package series_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/testkit"
)

// The lists of a library are those of all series, with the library in the path.
func TestListsOfALibrary(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me, foreigner := s.User(t, "one", "reader"), s.User(t, "two", "admin")
	comics, manga, foreign := newLibrary(t, s, s.One, "comics"), newLibrary(t, s, s.One, "manga"), newLibrary(t, s, s.Two, "comics")
	_, as := newSeries(t, s, s.One, comics, "A", 1, 2)
	newSeries(t, s, s.One, comics, "B", 2, 1)
	_, cs := newSeries(t, s, s.One, manga, "C", 3, 2)
	read(t, s, me, as[0], false, 5)
	read(t, s, me, cs[0], true, 1)
	lacking := s.Key(t, s.User(t, "one", "admin"), auth.LibrariesRead, auth.BooksRead)
	for _, c := range []struct {
		path, comics, manga string
		total               int // of comics
	}{
		{"", "A,B", "C", 2},
		{"?sort=name,desc&pageSize=1", "B", "C", 2},
		{"?sort=date_read,desc", "A,B", "C", 2},
		{"?libraryId=" + foreign.String(), "A,B", "C", 2}, // the one in the path counts
		{"/in-progress", "A", "", 1},
		{"/recently-added", "B,A", "C", 2},
		{"/recently-added?limit=1", "B", "C", 2},
		{"/recently-updated?pageSize=1&page=2", "B", "", 2},
	} {
		of := func(id uuid.UUID) string { return "/api/v1/libraries/" + id.String() + "/series" + c.path }
		if got, total := titles(t, me.Do("GET", of(comics), nil)); got != c.comics || total != c.total {
			t.Errorf("comics %s: %s, total %d; want %s, %d", c.path, got, total, c.comics, c.total)
		}
		if got, _ := titles(t, me.Do("GET", of(manga), nil)); got != c.manga {
			t.Errorf("manga %s: %s, want %s", c.path, got, c.manga)
		}
		for _, id := range []uuid.UUID{foreign, uuid.New()} {
			if m := me.Do("GET", of(id), nil).Want(404).Map(); m["message"] != "Library not found" {
				t.Errorf("%s: %v", c.path, m)
			}
		}
		foreigner.Do("GET", of(comics), nil).Want(404)
		lacking.Do("GET", of(comics), nil).Want(403)
		s.Anonymous(t, "one").Do("GET", of(comics), nil).Want(401)
	}
	for path, field := range map[string]string{"?sort=nonsense": "sort", "/in-progress?page=0": "page"} {
		m := me.Do("GET", "/api/v1/libraries/"+comics.String()+"/series"+path, nil).Want(400).Map()
		if m["details"].([]any)[0].(map[string]any)["field"] != field {
			t.Errorf("%s: %v", path, m)
		}
	}
	me.Do("GET", "/api/v1/libraries/x/series", nil).Want(400)
}

func TestReadSeveralSeries(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me, other := s.User(t, "one", "reader"), s.User(t, "one", "reader")
	comics := newLibrary(t, s, s.One, "comics")
	a, as := newSeries(t, s, s.One, comics, "A", 1, 3)
	b, _ := newSeries(t, s, s.One, comics, "B", 2, 2)
	c, _ := newSeries(t, s, s.One, comics, "C", 3, 2)
	foreign, _ := newSeries(t, s, s.Two, newLibrary(t, s, s.Two, "comics"), "F", 1, 4)
	exec(t, s, "update book set deleted_at = now() where id = $1", as[0])
	do := func(word string, count float64, ids ...uuid.UUID) {
		t.Helper()
		m := me.Do("POST", "/api/v1/series/bulk/"+word, map[string]any{"seriesIds": append([]uuid.UUID{}, ids...)}).Want(200).Map()
		if m["count"] != count || m["message"] == "" {
			t.Errorf("%s: %v, want %v", word, m, count)
		}
	}
	unread := func(who *testkit.Client, id uuid.UUID) any {
		t.Helper()
		return who.Do("GET", "/api/v1/series/"+id.String(), nil).Want(200).Map()["unreadCount"]
	}
	do("read", 4, a, b, a, foreign, uuid.New())
	if unread(me, a) != 0.0 || unread(me, b) != 0.0 || unread(me, c) != 2.0 || unread(other, a) != 2.0 {
		t.Errorf("unread: %v, %v, %v; of another user %v", unread(me, a), unread(me, b), unread(me, c), unread(other, a))
	}
	if m := me.Do("GET", "/api/v1/series/"+a.String(), nil).Map(); m["readCount"] != 1.0 {
		t.Errorf("%v", m)
	}
	do("unread", 2, a, c, foreign)
	if unread(me, a) != 2.0 || unread(me, b) != 0.0 {
		t.Errorf("unread: %v, %v", unread(me, a), unread(me, b))
	}
	do("read", 0)
	do("unread", 0, foreign)
	many := make([]uuid.UUID, 101)
	for _, word := range []string{"read", "unread"} {
		path := "/api/v1/series/bulk/" + word
		for _, body := range []any{map[string]any{"seriesIds": many}, `{}`, `{"seriesIds":null}`, `{"seriesIds":"` + a.String() + `"}`} {
			if m := me.Do("POST", path, body).Want(400).Map(); m["details"].([]any)[0].(map[string]any)["field"] != "seriesIds" {
				t.Errorf("%v", m)
			}
		}
		me.Do("POST", path, `{"seriesIds":["x"]}`).Want(400)
		me.Do("POST", path, map[string]any{"series_ids": many[:100]}).Want(200)
		s.Key(t, me, auth.SeriesRead).Do("POST", path, map[string]any{"seriesIds": many[:1]}).Want(403)
		s.Anonymous(t, "one").Do("POST", path, map[string]any{"seriesIds": many[:1]}).Want(401)
	}
}

package series_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/testkit"
)

// The lists of a library are the lists of all series with the library in the path.
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
		{"?libraryId=" + foreign.String(), "A,B", "C", 2}, // the id in the path takes precedence
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

// Lists can be narrowed to series that have all given genres and tags, in any spelling.
func TestGenresAndTags(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me, foreigner := s.User(t, "one", "reader"), s.User(t, "two", "reader")
	comics, manga := newLibrary(t, s, s.One, "comics"), newLibrary(t, s, s.One, "manga")
	a, as := newSeries(t, s, s.One, comics, "A", 1, 1)
	b, _ := newSeries(t, s, s.One, comics, "B", 2, 1)
	c, _ := newSeries(t, s, s.One, manga, "C", 3, 1)
	newSeries(t, s, s.One, manga, "D", 4, 1)
	f, _ := newSeries(t, s, s.Two, newLibrary(t, s, s.Two, "comics"), "F", 1, 1)
	read(t, s, me, as[0], false, 5)
	give := func(tenant uuid.UUID, table, name string, series ...uuid.UUID) {
		t.Helper()
		id := uuid.New()
		exec(t, s, "insert into "+table+" (tenant_id, id, name) values ($1, $2, $3)", tenant, id, name)
		exec(t, s, "insert into series_"+table+" select $1, unnest($2::uuid[]), $3", tenant, series, id)
	}
	give(s.One, "genre", "Action", a, b, c)
	give(s.One, "genre", "Drama", b, c)
	give(s.One, "genre", "Émigré Tales", c)
	give(s.One, "genre", "100%", a)
	give(s.One, "tag", "Action", c) // a tag is no genre
	give(s.One, "tag", "Space Opera", a, b)
	give(s.Two, "genre", "Action", f)
	for _, x := range []struct {
		query, all, comics string
		total              int // of all
	}{
		{"?genres=&tags=", "A,B,C,D", "A,B", 4},
		{"?genres=,%20,&tags=,", "A,B,C,D", "A,B", 4},
		{"?genres=Action", "A,B,C", "A,B", 3},
		{"?genres=aCTION", "A,B,C", "A,B", 3},
		{"?genres=action,Drama", "B,C", "B", 2},
		{"?genres=%20drama%20,,ACTION,Action,Drama", "B,C", "B", 2},
		{"?genres=%C3%A9MIGR%C3%89%20tales", "C", "", 1},
		{"?genres=e%CC%81migr%C3%A9%20tales", "C", "", 1}, // accents apart
		{"?genres=action,none", "", "", 0},
		{"?genres=act", "", "", 0},
		{"?genres=100%25", "A", "A", 1},
		{"?tags=action", "C", "", 1},
		{"?tags=space%20opera", "A,B", "A,B", 2},
		{"?genres=drama&tags=Space%20Opera", "B", "B", 1},
		{"?genres=drama&tags=Space%20Opera,action", "", "", 0},
		{"?genres=action&sort=name,desc&pageSize=1&page=2", "B", "A", 3},
		{"?genres=action&sort=date_added&order=desc", "C,B,A", "B,A", 3},
		{"?genres=drama,action&tags=&sort=date_read,desc", "B,C", "B", 2},
		{"?genres=action&sort=date_read,desc&pageSize=2&page=2", "C", "", 3},
		{"?genres=action&libraryId=" + manga.String(), "C", "A,B", 1},
		{"?genres=" + strings.Repeat("action,", 50), "A,B,C", "A,B", 3},
	} {
		if got, total := titles(t, me.Do("GET", "/api/v1/series"+x.query, nil)); got != x.all || total != x.total {
			t.Errorf("%s: %s, total %d; want %s, %d", x.query, got, total, x.all, x.total)
		}
		if got, _ := titles(t, me.Do("GET", "/api/v1/libraries/"+comics.String()+"/series"+x.query, nil)); got != x.comics {
			t.Errorf("comics %s: %s; want %s", x.query, got, x.comics)
		}
	}
	if got, total := titles(t, foreigner.Do("GET", "/api/v1/series?genres=action", nil)); got != "F" || total != 1 {
		t.Errorf("another tenant: %s, %d", got, total)
	}
	me.Do("GET", "/api/v1/libraries/"+uuid.NewString()+"/series?genres=action", nil).Want(404)
	for _, path := range []string{"/api/v1/series", "/api/v1/libraries/" + comics.String() + "/series"} {
		for _, field := range []string{"genres", "tags"} {
			for _, value := range []string{strings.Repeat("a,", 51), strings.Repeat("a", 2001)} {
				m := me.Do("GET", path+"?"+field+"="+value, nil).Want(400).Map()
				if m["details"].([]any)[0].(map[string]any)["field"] != field {
					t.Errorf("%s %s: %v", path, field, m)
				}
			}
			me.Do("GET", path+"?"+field+"=a%00b", nil).Want(400)
			me.Do("GET", path+"?"+field+"=%ff", nil).Want(400)
		}
	}
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

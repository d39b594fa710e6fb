package book_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/testkit"
)

// The lists of a library are the lists of all books with the library in the path.
func TestListsOfALibrary(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me, foreigner, admin := s.User(t, "one", "reader"), s.User(t, "two", "admin"), s.User(t, "one", "admin")
	comics, manga, empty := library(t, s, s.One, "comics"), library(t, s, s.One, "manga"), library(t, s, s.One, "empty")
	foreign := library(t, s, s.Two, "comics")
	a, as := series(t, s, s.One, comics, "A", 4)
	_, bs := series(t, s, s.One, manga, "B", 3)
	series(t, s, s.One, comics, "C", 1)
	read(t, s, me, as[0], true, 30)
	read(t, s, me, as[1], false, 20)
	read(t, s, me, bs[0], true, 10)
	lacking := s.Key(t, admin, auth.LibrariesRead, auth.SeriesRead)
	for _, c := range []struct {
		path, comics, manga string
		total               int // of comics
	}{
		{"", "A 1,A 2,A 3,A 4,C 1", "B 1,B 2,B 3", 5},
		{"?sort=number,desc&pageSize=2", "A 4,A 3", "B 3,B 2", 5},
		{"?sort=title&order=desc&page=2&page_size=2", "A 3,A 2", "B 1", 5},
		{"?seriesId=" + a.String() + "&order=desc", "A 4,A 3,A 2,A 1", "", 4},
		{"?libraryId=" + foreign.String() + "&pageSize=1", "A 1", "B 1", 5}, // the id in the path takes precedence
		{"/in-progress", "A 2", "", 1},
		{"/on-deck", "", "B 2", 0},
		{"/recently-read", "A 2,A 1", "B 1", 2},
		{"/recently-read?pageSize=1&page=2", "A 1", "", 2},
		{"/recently-added?limit=2", "A 4,A 3", "B 3,B 2", 5},
		{"/recently-added?seriesId=" + a.String() + "&pageSize=1", "A 4", "", 4},
	} {
		of := func(id uuid.UUID) string { return "/api/v1/libraries/" + id.String() + "/books" + c.path }
		r := me.Do("GET", of(comics), nil)
		if got, total := titles(t, r); strings.Join(got, ",") != c.comics || total != c.total {
			t.Errorf("comics %s: %v, total %d; want %s, %d", c.path, got, total, c.comics, c.total)
		}
		bare, _, _ := strings.Cut(of(comics), "?")
		if self := r.Map()["links"].(map[string]any)["self"].(string); !strings.HasPrefix(self, bare+"?page=") {
			t.Errorf("%s: self is %s", c.path, self)
		}
		if got, _ := titles(t, me.Do("GET", of(manga), nil)); strings.Join(got, ",") != c.manga {
			t.Errorf("manga %s: %v, want %s", c.path, got, c.manga)
		}
		if got, total := titles(t, me.Do("GET", of(empty), nil)); len(got) != 0 || total != 0 && !strings.Contains(c.path, "seriesId") {
			t.Errorf("empty %s: %v, %d", c.path, got, total)
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
	for path, field := range map[string]string{"?sort=nonsense": "sort", "?seriesId=x": "seriesId", "?page=0": "page", "/on-deck?pageSize=-1": "pageSize"} {
		m := me.Do("GET", "/api/v1/libraries/"+comics.String()+"/books"+path, nil).Want(400).Map()
		if m["details"].([]any)[0].(map[string]any)["field"] != field {
			t.Errorf("%s: %v", path, m)
		}
	}
	me.Do("GET", "/api/v1/libraries/x/books", nil).Want(400)
}

// The neighbours of each book match the list of its series.
func TestAdjacent(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me := s.User(t, "one", "reader")
	comics := library(t, s, s.One, "comics")
	_, as := series(t, s, s.One, comics, "A", 12)
	_, alone := series(t, s, s.One, comics, "B", 1)
	_, nameless := series(t, s, s.One, comics, "C", 3)
	// Three books share a number.
	exec(t, s, "update book set number = 5 where id = any($1)", as[5:7])
	// Two share everything but the id.
	exec(t, s, "update book set number = 3, title_sort = 'same', title = 'same' where id = any($1)", as[2:4])
	exec(t, s, "update book set number = null where id = any($1)", as[9:12])
	exec(t, s, "update book set number = null where id = any($1)", nameless)
	exec(t, s, "update book set deleted_at = now() where id = any($1)", []uuid.UUID{as[7], as[10]})
	exec(t, s, "update book set number = -0.5 where id = $1", as[1])
	type neighbours struct{ Prev, Next *struct{ ID uuid.UUID } }
	for _, books := range [][]uuid.UUID{as, alone, nameless} {
		var list struct {
			Data []struct{ ID, SeriesID uuid.UUID }
		}
		me.Do("GET", "/api/v1/books/"+books[0].String(), nil).Want(200)
		seriesID := me.Do("GET", "/api/v1/books/"+books[0].String(), nil).Map()["seriesId"].(string)
		me.Do("GET", "/api/v1/books?seriesId="+seriesID, nil).Want(200).JSON(&list)
		for i, b := range list.Data {
			r := me.Do("GET", "/api/v1/books/"+b.ID.String()+"/adjacent", nil).Want(200)
			var got neighbours
			r.JSON(&got)
			if (i == 0) != (got.Prev == nil) || i > 0 && got.Prev.ID != list.Data[i-1].ID {
				t.Errorf("before book %d of %d: %v", i, len(list.Data), got.Prev)
			}
			last := i == len(list.Data)-1
			if last != (got.Next == nil) || !last && got.Next.ID != list.Data[i+1].ID {
				t.Errorf("after book %d of %d: %v", i, len(list.Data), got.Next)
			}
			if m := r.Map(); len(m) != 2 { // null at the ends, not omitted
				t.Errorf("book %d: members %v", i, keysOf(m))
			}
		}
	}
	read(t, s, me, as[1], false, 5)
	m := me.Do("GET", "/api/v1/books/"+as[0].String()+"/adjacent", nil).Want(200).Map()
	if prev := m["prev"].(map[string]any); prev["id"] != as[1].String() || prev["title"] != "A 2" || prev["readProgress"] == nil || prev["path"] == "" {
		t.Errorf("%v", prev)
	}
	one := "/api/v1/books/" + as[0].String() + "/adjacent"
	for path, want := range map[string]int{"/api/v1/books/" + as[7].String() + "/adjacent": 404, "/api/v1/books/" + uuid.NewString() + "/adjacent": 404, "/api/v1/books/x/adjacent": 400} {
		me.Do("GET", path, nil).Want(want)
	}
	s.User(t, "two", "admin").Do("GET", one, nil).Want(404)
	s.Key(t, me, auth.SeriesRead).Do("GET", one, nil).Want(403)
	s.Anonymous(t, "one").Do("GET", one, nil).Want(401)
}

func keysOf(m map[string]any) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	return out
}

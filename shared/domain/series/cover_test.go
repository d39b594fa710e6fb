package series_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/cover"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

func TestPeopleChooseCovers(t *testing.T) {
	t.Parallel()
	told := make(chan string, 10)
	s := testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		routes(a, d)
		cover.Routes(a, d, func(_ context.Context, _ uuid.UUID, e ...events.Event) {
			for _, one := range e {
				told <- one.Kind
			}
		}, nil)
	})
	me, reader, stranger := s.User(t, "one", "maintainer"), s.User(t, "one", "reader"), s.User(t, "two", "admin")
	lib := newLibrary(t, s, s.One, "comics")
	id, books := newSeries(t, s, s.One, lib, "A", 1, 2)
	_, others := newSeries(t, s, s.One, lib, "B", 2, 1)
	one := "/api/v1/series/" + id.String()
	shows := func(want string) {
		t.Helper()
		if got := reader.Do("GET", one, nil).Want(200).Map()["selectedCoverSource"]; got != want {
			t.Errorf("shows %v, want %s", got, want)
		}
	}
	shows("first_book")
	me.Do("PATCH", one+"/cover/source", `{"source":"book:`+strings.ToUpper(books[1].String())+`"}`).Want(200)
	shows("book:" + books[1].String())
	exec(t, s, "update book set deleted_at = now() where id = $1", books[1])
	shows("first_book") // while the chosen book is gone
	exec(t, s, "insert into sidecar (tenant_id, library_id, key, kind, about, version, size, modified_at, document) values ($1, $2, 'x/A/cover.jpg', 'cover', 'x/A', $3, 1, now(), '{}')", s.One, lib, id)
	shows("file")
	exec(t, s, "update book set deleted_at = null where id = $1", books[1])
	shows("book:" + books[1].String())
	exec(t, s, "update book set series_id = (select series_id from book where id = $2) where id = $1", books[1], others[0])
	shows("file") // it moved to another series
	exec(t, s, "delete from sidecar")
	shows("first_book")
	exec(t, s, "update book set series_id = $2 where id = $1", books[1], id)
	me.Do("PATCH", one+"/cover/source", `{"source":"file"}`).Want(200)
	shows("first_book") // there is none
	exec(t, s, `insert into sidecar (tenant_id, library_id, key, kind, about, version, size, modified_at, document)
		values ($1, $2, 'x/A/series.json', 'series', 'x/A', $3, 1, now(), '{}'), ($1, $2, 'x/A/cover.jpg', 'cover', 'x/A', $3, 1, now(), null)`, s.One, lib, id)
	shows("first_book") // the picture beside the books cannot be shown
	exec(t, s, "delete from sidecar")
	me.Do("DELETE", one+"/covers/selected", nil).Want(204)
	shows("first_book")
	if n := len(told); n != 3 || <-told != "cover_updated" {
		t.Errorf("%d events", n)
	}
	for _, source := range []string{"", "custom", "custom:x", "book:", "book:x", "book:" + others[0].String(), "book:" + uuid.NewString()} {
		if text := string(me.Do("PATCH", one+"/cover/source", `{"source":"`+source+`"}`).Want(400).Body); !strings.Contains(text, "source") {
			t.Errorf("%q: %s", source, text)
		}
	}
	for _, c := range []struct {
		method, path string
		body         any
	}{{"PATCH", one + "/cover/source", `{"source":"file"}`}, {"DELETE", one + "/covers/selected", nil}} {
		reader.Do(c.method, c.path, c.body).Want(403)
		s.Anonymous(t, "one").Do(c.method, c.path, c.body).Want(401)
		stranger.Do(c.method, c.path, c.body).Want(404)
	}
}

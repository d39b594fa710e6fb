package book_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

func TestSeveralBooksAreChanged(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	told := 0
	s := testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		book.Routes(a, d, func(_ context.Context, _ uuid.UUID, e ...events.Event) {
			mu.Lock()
			defer mu.Unlock()
			told += len(e)
		}, nil)
	})
	me, reader, stranger := s.User(t, "one", "maintainer"), s.User(t, "one", "reader"), s.User(t, "two", "admin")
	_, ids := series(t, s, s.One, library(t, s, s.One, "comics"), "A", 3)
	s.DB.Exec(t, "update book set deleted_at = now() where id = $1", ids[2])
	s.DB.Exec(t, `insert into book_metadata (tenant_id, book_id, metadata, locks) values ($1, $2,
		'{"publisher":"Old","summary":"Stays","authors":[{"name":"T","role":"translator"},{"name":"W","role":"writer"}]}', '{summaryLock}')`, s.One, ids[0])
	all := fmt.Sprintf(`"bookIds":[%q,%q,%q,%q,%q]`, ids[1], ids[0], ids[2], uuid.New(), ids[0])
	const meta, locks = "/api/v1/books/bulk/metadata", "/api/v1/books/bulk/metadata/locks"
	change := func(c *testkit.Client, method, path, body string, want, events int) {
		t.Helper()
		told = 0
		if m := c.Do(method, path, `{`+all+body+`}`).Want(200).Map(); m["updatedCount"] != float64(want) || m["message"] == "" || told != events {
			t.Errorf("%s %s: %v, told of %d", path, body, m, told)
		}
	}
	is := func(id uuid.UUID, want string) {
		t.Helper()
		m := me.Do("GET", "/api/v1/books/"+id.String(), nil).Want(200).Map()["metadata"].(map[string]any)
		var set []string
		for _, name := range []string{"authorsJsonLock", "bookTypeLock", "publisherLock", "summaryLock", "translatorLock", "yearLock"} {
			if m["locks"].(map[string]any)[name] == true {
				set = append(set, name)
			}
		}
		if got := fmt.Sprint(m["publisher"], " ", m["bookType"], " ", m["summary"], " ", m["writers"], " ", m["translator"], " ", set); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	change(me, "PATCH", meta, `,"publisher":"New","bookType":"manga","translator":"Ann, Bob","title":"not this","unknown":1`, 2, 2)
	is(ids[0], "New manga Stays [W] Ann, Bob [bookTypeLock publisherLock summaryLock translatorLock]")
	is(ids[1], "New manga <nil> [] Ann, Bob [bookTypeLock publisherLock translatorLock]")
	if got := me.Do("GET", "/api/v1/books/"+ids[1].String(), nil).Want(200).Map()["title"]; got == "not this" {
		t.Error("several books got one title")
	}
	change(me, "PATCH", meta, `,"publisher":null,"authors":[{"name":"C"}]`, 2, 2)
	is(ids[0], "<nil> manga Stays [] <nil> [authorsJsonLock bookTypeLock publisherLock summaryLock translatorLock]")
	change(me, "PATCH", meta, ``, 0, 0)
	change(stranger, "PATCH", meta, `,"publisher":"Theirs"`, 0, 0)
	change(me, "PUT", locks, `,"yearLock":true,"summary_lock":false,"publisherLock":null,"what":true`, 2, 2)
	is(ids[0], "<nil> manga Stays [] <nil> [authorsJsonLock bookTypeLock publisherLock translatorLock yearLock]")
	is(ids[1], "<nil> manga <nil> [] <nil> [authorsJsonLock bookTypeLock publisherLock translatorLock yearLock]")
	change(me, "PUT", locks, ``, 0, 0)
	change(stranger, "PUT", locks, `,"yearLock":false`, 0, 0)

	many := `"bookIds":[` + strings.TrimSuffix(strings.Repeat(`"`+ids[0].String()+`",`, 101), ",") + `]`
	for _, c := range [][3]string{{meta, `{"publisher":"x"}`, "bookIds"}, {meta, `{"bookIds":null}`, "bookIds"}, {meta, `{` + many + `}`, "bookIds"},
		{meta, `{` + all + `,"publisher":" "}`, "publisher"}, {meta, `{` + all + `,"languageIso":"?"}`, "languageIso"}, {meta, `{` + all + `,"originalYear":0}`, "originalYear"},
		{locks, `{"yearLock":true}`, "bookIds"}, {locks, `{` + many + `}`, "bookIds"}, {locks, `{` + all + `,"yearLock":"yes"}`, "yearLock"}, {locks, `{"bookIds":["x"]}`, "bookIds[0]"}} {
		method := "PATCH"
		if c[0] == locks {
			method = "PUT"
		}
		if m := me.Do(method, c[0], c[1]).Want(400).Map(); m["details"].([]any)[0].(map[string]any)["field"] != c[2] {
			t.Errorf("%.60s: %v", c[1], m)
		}
		reader.Do(method, c[0], `{`+all+`}`).Want(403)
	}
}

package series_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

func TestSeveralSeriesAreChanged(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	told := 0
	s := testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		series.Routes(a, d, func(_ context.Context, _ uuid.UUID, e ...events.Event) {
			mu.Lock()
			defer mu.Unlock()
			told += len(e)
		}, nil)
	})
	me, reader, stranger := s.User(t, "one", "maintainer"), s.User(t, "one", "reader"), s.User(t, "two", "admin")
	library := newLibrary(t, s, s.One, "comics")
	a, _ := newSeries(t, s, s.One, library, "A", 1, 1)
	b, _ := newSeries(t, s, s.One, library, "B", 2, 1)
	exec(t, s, "update series set publisher = 'Old', status = 'ended', described = '{publisher,status}', locks = '{status}' where id = $1", a)
	all := fmt.Sprintf(`"seriesIds":[%q,%q,%q,%q]`, b, a, uuid.New(), b)
	const meta, locks = "/api/v1/series/bulk/metadata", "/api/v1/series/bulk/metadata/locks"
	change := func(c *testkit.Client, method, path, body string, want, events int) {
		t.Helper()
		told = 0
		if m := c.Do(method, path, `{`+all+body+`}`).Want(200).Map(); m["updatedCount"] != float64(want) || m["message"] == "" || told != events {
			t.Errorf("%s %s: %v, told of %d", path, body, m, told)
		}
	}
	is := func(id uuid.UUID, want string) {
		t.Helper()
		m := me.Do("GET", "/api/v1/series/"+id.String()+"/metadata", nil).Want(200).Map()
		var described string
		if err := s.DB.Owner.Pool().QueryRow(t.Context(), "select described::text from series where id = $1", id).Scan(&described); err != nil {
			t.Fatal(err)
		}
		if got := line(m["title"], m["publisher"], m["status"], m["language"], m["totalChapterCount"], m["authors"], locked(m["locks"].(map[string]any)), described); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	change(me, "PATCH", meta, `,"publisher":"New","language":"pt_br","totalChapterCount":10.5,"authors":[{"name":"C"}],"title":"not this"`, 2, 2)
	is(a, "A New ended pt-BR 10.5 [map[name:C role:author sortName:<nil>]] [status] {status}")
	is(b, "B New <nil> pt-BR 10.5 [map[name:C role:author sortName:<nil>]] [] {}")
	change(me, "PATCH", meta, `,"publisher":null,"authors":null`, 2, 2)
	is(a, "A <nil> ended pt-BR 10.5 <nil> [status] {status}")
	change(me, "PATCH", meta, ``, 0, 0)
	change(stranger, "PATCH", meta, `,"publisher":"Theirs"`, 0, 0)
	change(me, "PUT", locks, `,"genres":true,"status":false,"title":null,"what":true`, 2, 2)
	is(a, "A <nil> ended pt-BR 10.5 <nil> [genres] {status}")
	is(b, "B <nil> <nil> pt-BR 10.5 <nil> [genres] {}")
	change(me, "PUT", locks, ``, 0, 0)
	change(stranger, "PUT", locks, `,"genres":false`, 0, 0)

	many := `"seriesIds":[` + strings.TrimSuffix(strings.Repeat(`"`+a.String()+`",`, 101), ",") + `]`
	for _, c := range [][3]string{{meta, `{"publisher":"x"}`, "seriesIds"}, {meta, `{` + many + `}`, "seriesIds"}, {meta, `{` + all + `,"imprint":" "}`, "imprint"},
		{meta, `{` + all + `,"status":"over"}`, "status"}, {meta, `{` + all + `,"language":"?"}`, "language"},
		{locks, `{"genres":true}`, "seriesIds"}, {locks, `{` + many + `}`, "seriesIds"}, {locks, `{` + all + `,"genres":"yes"}`, "genres"}} {
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

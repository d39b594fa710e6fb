package statistic_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/domain/statistic"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

const at = "/api/v1/reading-stats"

// shelf creates two series with two books each: a1, a2 and b1, b2; those of B are EPUBs.
func shelf(t *testing.T, s *testkit.Server) map[string]uuid.UUID {
	out, library := map[string]uuid.UUID{}, uuid.New()
	s.DB.Exec(t, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'Comics', '/c', 'b', '', 'series_volume', 'filename', 'file_order')`, s.One, library)
	for name, format := range map[string]string{"A": "cbz", "B": "epub"} {
		id := uuid.New()
		s.DB.Exec(t, "insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) values ($1, $2, $3, $4, $4, $4, $4, $4)", s.One, id, library, name)
		out[name] = id
		for n := range 2 {
			book := uuid.New()
			key := fmt.Sprint(strings.ToLower(name), n+1)
			s.DB.Exec(t, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, page_count, analyzed)
				values ($1, $2, $3, $4, $5, 1, now(), $6, $5, $5, $5, 20, true)`, s.One, book, library, id, key, format)
			out[key] = book
		}
	}
	return out
}

// session returns a session as clients send it.
func session(book uuid.UUID, kind, device, from, to, more string) string {
	return fmt.Sprintf(`{"id":%q,"bookId":%q,"kind":%q,"deviceId":%q,"clientStartedAt":%q,"clientEndedAt":%q%s}`, uuid.New(), book, kind, device, from, to, more)
}

// line formats a part of the response: sessions, total, measured and inferred milliseconds, pages and finished books.
func line(v any) string {
	m := v.(map[string]any)
	d := m["duration"].(map[string]any)
	return fmt.Sprint(m["sessions"], " ", d["totalMs"], "=", d["measuredMs"], "+", d["inferredMs"], " ", m["pagesRead"], " ", m["booksFinished"])
}

func TestStatistics(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		progress.Routes(a, d)
		statistic.Routes(a, d)
	})
	me, other := s.User(t, "one", "reader"), s.User(t, "one", "reader")
	of := shelf(t, s)
	if got := me.Do("GET", at+"/coverage", nil).Want(200).Map(); got["firstReadAt"] != nil || got["lastReadAt"] != nil {
		t.Errorf("before anything was read: %v", got)
	}
	sessions := []string{
		session(of["a1"], "progress", "tab", "2024-05-06T10:00:00Z", "2024-05-06T10:10:00Z", `,"activeDurationMs":300000,"pagesRead":10,"deviceName":"Old"`),
		session(of["a1"], "completed", "tab", "2024-05-07T23:30:00Z", "2024-05-07T23:59:59Z", `,"activeDurationMs":60000,"pagesRead":10,"deviceName":"Tablet"`),
		session(of["b1"], "progress", "phone", "2024-05-12T10:00:00Z", "2024-05-12T10:10:00Z", `,"toPage":3`),
		session(of["b2"], "completed", "phone", "2024-06-03T10:00:00Z", "2024-06-03T10:10:00Z", `,"pagesRead":7`),
		// Without activity.
		session(of["b2"], "progress", "phone", "2024-06-04T10:00:00Z", "2024-06-04T10:10:00Z", `,"activeDurationMs":0,"toPage":1`),
		session(of["b2"], "reset", "phone", "2024-06-05T10:00:00Z", "2024-06-05T10:00:00Z", ""),
	}
	for _, c := range []*testkit.Client{me, other} {
		if got := c.Do("POST", "/api/v1/reading-sessions", `{"sessions":[`+strings.Join(sessions, ",")+`]}`).Want(200).Map(); len(got["accepted"].([]any)) != len(sessions) {
			t.Fatalf("recorded: %v", got)
		}
		sessions = sessions[:1] // the only session of the other user
	}
	s.DB.Exec(t, `insert into reading_session (tenant_id, account_id, id, book_id, pass, kind, device_id, started_at, ended_at, page, implied) values
		($1, $2, gen_random_uuid(), $3, 1, 'progress', 'web', '2024-05-06T12:00:00Z', '2024-05-06T12:00:40Z', 5, true),
		($1, $2, gen_random_uuid(), $3, 1, 'progress', 'web', '2024-05-06T13:00:00Z', '2024-05-06T13:00:00Z', 6, true),
		($1, $2, gen_random_uuid(), $3, 1, 'progress', 'legacy', '2024-05-01T13:00:00Z', '2024-05-09T13:00:00Z', 6, true)`, s.One, me.ID, of["a2"])

	got := me.Do("GET", at+"?from=2024-05-06T00:00:00Z&to=2024-07-01T00:00:00%2B02:00&granularity=month", nil).Want(200).Map()
	summary := got["summary"].(map[string]any)
	if line(summary) != "5 400000=360000+40000 27 2" || fmt.Sprint(summary["books"], summary["sessionsWithoutDuration"], summary["sessionsWithoutPages"]) != "4 2 2" {
		t.Errorf("all: %v", summary)
	}
	if got["from"] != "2024-05-06T00:00:00Z" || got["to"] != "2024-06-30T22:00:00Z" || got["granularity"] != "month" {
		t.Errorf("the span: %v %v %v", got["from"], got["to"], got["granularity"])
	}
	list := func(query, what, name string) (out []string) {
		t.Helper()
		for _, v := range me.Do("GET", at+"?from=2024-05-01T00:00:00Z&to=2024-07-01T00:00:00Z"+query, nil).Want(200).Map()[what].([]any) {
			out = append(out, fmt.Sprint(v.(map[string]any)[name], ": ", line(v)))
		}
		return out
	}
	for _, c := range []struct {
		query, what, name string
		want              []string
	}{
		{"", "periods", "bucket", []string{"2024-05-06: 2 340000=300000+40000 10 0", "2024-05-07: 1 60000=60000+0 10 1", "2024-05-12: 1 0=0+0 0 0", "2024-06-03: 1 0=0+0 7 1"}},
		{"&granularity=week", "periods", "bucket", []string{"2024-05-06: 4 400000=360000+40000 20 1", "2024-06-03: 1 0=0+0 7 1"}},
		{"&granularity=month", "periods", "bucket", []string{"2024-05-01: 4 400000=360000+40000 20 1", "2024-06-01: 1 0=0+0 7 1"}},
		{"", "series", "seriesName", []string{"A: 3 400000=360000+40000 20 1", "B: 2 0=0+0 7 1"}},
		{"&seriesLimit=1", "series", "seriesName", []string{"A: 3 400000=360000+40000 20 1"}},
		{"", "formats", "format", []string{"cbz: 3 400000=360000+40000 20 1", "epub: 2 0=0+0 7 1"}},
		{"", "devices", "deviceId", []string{"phone: 2 0=0+0 7 1", "tab: 2 360000=360000+0 20 1", "web: 1 40000=0+40000 0 0"}},
	} {
		if got := list(c.query, c.what, c.name); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s %s: %v, want %v", c.what, c.query, got, c.want)
		}
	}
	if got := list("", "devices", "deviceName"); !strings.HasPrefix(got[1], "Tablet") || !strings.HasPrefix(got[0], "<nil>") {
		t.Errorf("the devices are called %v", got)
	}
	s.DB.Exec(t, "update completion set forgotten = true where book_id = $1", of["a1"])
	if got := list("", "formats", "format"); fmt.Sprint(got) != "[cbz: 3 400000=360000+40000 20 0 epub: 2 0=0+0 7 1]" {
		t.Errorf("a forgotten completion counts: %v", got)
	}
	s.DB.Exec(t, "update reading_session set pages_read = 100 where book_id = $1 and pages_read is null and active_ms is null", of["b1"])
	for order, want := range map[string]string{"pages": "B", "time": "A", "completions": "B"} {
		if got := list("&sort="+order, "series", "seriesName"); !strings.HasPrefix(got[0], want) {
			t.Errorf("by %s: %v", order, got)
		}
	}
	if got := me.Do("GET", at+"/coverage", nil).Want(200).Map(); got["firstReadAt"] != "2024-05-06T10:00:00Z" || got["lastReadAt"] != "2024-06-03T10:10:00Z" {
		t.Errorf("read between: %v", got)
	}
	if got := other.Do("GET", at+"?from=2024-01-01T00:00:00Z", nil).Want(200).Map()["summary"]; line(got) != "1 300000=300000+0 10 0" {
		t.Errorf("another's: %v", got)
	}
	if got := me.Do("GET", at, nil).Want(200).Map(); line(got["summary"]) != "0 0=0+0 0 0" || len(got["periods"].([]any)) != 0 {
		t.Errorf("the last 90 days: %v", got)
	}
	for days, pages := range map[int]int{1: 5, 89: 7, 91: 11} {
		s.DB.Exec(t, `insert into reading_session (tenant_id, account_id, id, book_id, pass, kind, device_id, started_at, ended_at, pages_read)
			select $1, $2, gen_random_uuid(), $3, 9, 'progress', 'tab', at, at, $5 from (select now() - $4 * interval '1 day') x(at)`, s.One, me.ID, of["a2"], days, pages)
	}
	s.DB.Exec(t, "insert into completion (tenant_id, id, account_id, book_id, started_at, completed_at, pass) values ($1, gen_random_uuid(), $2, $3, now(), now() - interval '2 hours', 9)", s.One, me.ID, of["b1"])
	s.DB.Exec(t, `insert into reading_session (tenant_id, account_id, id, book_id, pass, kind, device_id, started_at, ended_at, implied)
		values ($1, $2, gen_random_uuid(), $3, 9, 'completed', 'browser', now() - interval '2 hours', now() - interval '2 hours', true)`, s.One, me.ID, of["b1"])
	recent := me.Do("GET", at, nil).Want(200).Map()
	devices := recent["devices"].([]any)
	if line(recent["summary"]) != "2 0=0+0 12 1" || len(devices) != 2 || devices[0].(map[string]any)["deviceId"] != "browser" {
		t.Errorf("the last 90 days: %v, %v", recent["summary"], devices)
	}
	for _, query := range []string{"?from=2024-05-02T00:00:00Z&to=2024-05-01T00:00:00Z", "?from=yesterday", "?granularity=year", "?seriesLimit=51", "?seriesLimit=0", "?sort=title", "?to=9999-12-31T23:59:59-01:00"} {
		me.Do("GET", at+query, nil).Want(400)
	}
	s.Key(t, me, auth.SeriesRead, auth.BooksRead).Do("GET", at, nil).Want(403)
	s.Key(t, me, auth.ProgressRead).Do("GET", at, nil).Want(200)
}

// A period includes its start and excludes its end; a completion belongs to the device that reported it first, in that
// reading.
func TestBordersOfASpan(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, statistic.Routes)
	me, other := s.User(t, "one", "reader"), s.User(t, "one", "reader")
	of := shelf(t, s)
	for _, c := range []struct {
		who        *testkit.Client
		pass       int
		device, at string
	}{{me, 1, "before", "2024-05-01T00:00:00Z"}, {other, 2, "theirs", "2024-05-02T00:00:00Z"}, {me, 2, "first", "2024-05-06T00:00:00Z"}, {me, 2, "second", "2024-05-06T10:00:00Z"}, {me, 3, "later", "2024-05-07T00:00:00Z"},
		{other, 4, "theirs", "2024-05-06T05:00:00Z"}} {
		s.DB.Exec(t, `insert into reading_session (tenant_id, account_id, id, book_id, pass, kind, device_id, started_at, ended_at, pages_read)
			values ($1, $2, gen_random_uuid(), $3, $4, 'completed', $5, $6, $6, 1)`, s.One, c.who.ID, of["a1"], c.pass, c.device, c.at)
		if c.device != "second" {
			s.DB.Exec(t, `insert into completion (tenant_id, id, account_id, book_id, started_at, completed_at, pass)
				values ($1, gen_random_uuid(), $2, $3, $4, $4, $5)`, s.One, c.who.ID, of["a1"], c.at, c.pass)
		}
	}
	got := me.Do("GET", at+"?from=2024-05-06T00:00:00Z&to=2024-05-07T00:00:00Z", nil).Want(200).Map()
	var devices []string
	for _, d := range got["devices"].([]any) {
		devices = append(devices, fmt.Sprint(d.(map[string]any)["deviceId"], ": ", line(d)))
	}
	if line(got["summary"]) != "2 0=0+0 2 1" || fmt.Sprint(devices) != "[second: 1 0=0+0 1 0 first: 1 0=0+0 1 1]" {
		t.Errorf("%v, %v", got["summary"], devices)
	}
	me.Do("GET", at+"?from=2024-05-06T00:00:00Z&to=2024-05-06T00:00:00Z", nil).Want(200)
}

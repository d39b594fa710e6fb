package progress_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/testkit"
)

// reader sends sessions for one book, at minutes after the start of a day.
type reader struct {
	t    *testing.T
	who  *testkit.Client
	book uuid.UUID
}

type session map[string]any

func (r reader) session(kind string, from, to int, more session) session {
	at := func(minute int) string {
		return time.Date(2024, 5, 1, 0, minute, 0, 0, time.UTC).Format(time.RFC3339)
	}
	out := session{"id": uuid.NewString(), "bookId": r.book, "deviceId": "tablet", "kind": kind, "clientStartedAt": at(from), "clientEndedAt": at(to)}
	for k, v := range more {
		out[k] = v
	}
	return out
}

func (r reader) tell(sessions ...session) map[string]any {
	r.t.Helper()
	return r.who.Do("POST", "/api/v1/reading-sessions", map[string]any{"sessions": append([]session{}, sessions...)}).Want(200).Map()
}

// told returns the progress in a response as text.
func told(m map[string]any) string {
	list := m["progress"].([]any)
	if len(list) == 0 {
		return "none"
	}
	p := list[0].(map[string]any)
	return fmt.Sprint(p["currentPage"], " ", p["progressPercentage"], " ", p["completed"], " ", p["startedAt"], " ", p["completedAt"])
}

func newReader(t *testing.T, s *testkit.Server) reader {
	_, books := shelf(t, s, 1)
	return reader{t, s.User(t, "one", "reader"), books[0]}
}

// The last session by its own time is the progress, however late an earlier one is sent; repeated ones are ignored.
func TestSessionsCountInTheirOwnOrder(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	r := newReader(t, s)
	first := r.session("progress", 10, 20, session{"toPage": 4})
	for _, c := range []struct {
		name, want string
		session    session
	}{
		{"first", "4 0.4 false 2024-05-01T00:10:00Z <nil>", first},
		{"earlier, told late", "4 0.4 false 2024-05-01T00:01:00Z <nil>", r.session("progress", 1, 5, session{"toPage": 9})},
		{"back on purpose", "2 0.2 false 2024-05-01T00:01:00Z <nil>", r.session("progress", 21, 22, session{"toPage": 2})},
		{"told again", "2 0.2 false 2024-05-01T00:01:00Z <nil>", first},
		{"to the end", "10 1 true 2024-05-01T00:01:00Z 2024-05-01T00:40:00Z", r.session("completed", 30, 40, session{"toPage": 10})},
		{"to the end again", "10 1 true 2024-05-01T00:01:00Z 2024-05-01T00:40:00Z", r.session("completed", 41, 42, session{"toPage": 10})},
		{"turned back", "9 0.9 false 2024-05-01T00:01:00Z <nil>", r.session("progress", 43, 44, session{"toPage": 9})},
		{"and forth", "10 1 true 2024-05-01T00:01:00Z 2024-05-01T00:46:00Z", r.session("completed", 45, 46, session{"toPage": 10})},
		{"unread", "none", r.session("reset", 50, 50, nil)},
		{"read before that", "none", r.session("progress", 47, 48, session{"toPage": 3})},
		{"read anew", "1 0.1 false 2024-05-01T01:00:00Z <nil>", r.session("progress", 60, 61, session{"toPage": 1})},
		{"only finished", "1 0.1 true 2024-05-01T01:00:00Z 2024-05-01T01:03:00Z", r.session("completed", 62, 63, nil)},
		{"beyond the end", "10 1 false 2024-05-01T01:00:00Z <nil>", r.session("progress", 64, 65, session{"toPage": 99})},
	} {
		m := r.tell(c.session)
		if got := told(m); got != c.want || len(m["accepted"].([]any)) != 1 || m["accepted"].([]any)[0] != c.session["id"] || len(m["rejected"].([]any)) != 0 {
			t.Errorf("%s: %s, want %s: %v", c.name, got, c.want, m)
		}
	}
	if n := completions(t, s, r.book); n != 2 {
		t.Errorf("%d completions, want one for each pass", n)
	}
}

// The order and batching in which sessions arrive do not affect the progress.
func TestSessionsInAnyOrder(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	_, books := shelf(t, s, 1)
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(1, seed))
		kinds := []string{"progress", "progress", "progress", "completed", "completed", "reset"}
		r := reader{t, s.User(t, "one", "reader"), books[0]}
		var sessions []session
		for i := range 12 {
			more := session{"toPage": 1 + random.IntN(10)}
			if random.IntN(4) == 0 {
				more = session{"toPercentage": random.Float64()}
			}
			sessions = append(sessions, r.session(kinds[random.IntN(len(kinds))], 10*i, 10*i+random.IntN(9), more))
		}
		var want string
		for _, one := range sessions { // in order, one at a time
			want = told(r.tell(one))
		}
		for range 3 {
			other := reader{t, s.User(t, "one", "reader"), books[0]}
			random.Shuffle(len(sessions), func(i, j int) { sessions[i], sessions[j] = sessions[j], sessions[i] })
			at := random.IntN(len(sessions))
			other.tell(sessions[:at]...)
			if got := told(other.tell(append(sessions[at:], sessions[:at]...)...)); got != want {
				t.Errorf("seed %d: %s, want %s", seed, got, want)
			}
		}
	}
}

// Sessions of one batch that end at the same time, or in the future, count in the order in which they were sent.
func TestSessionsThatEndTogether(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	_, books := shelf(t, s, 1)
	ahead := func(sessions ...session) []session {
		for i, one := range sessions {
			at := time.Now().Add(2*time.Minute + time.Duration(i)*time.Second).Format(time.RFC3339)
			one["clientStartedAt"], one["clientEndedAt"] = at, at
		}
		return sessions
	}
	for name, c := range map[string]struct {
		sessions func(r reader) []session
		want     string
	}{
		"pages":       {func(r reader) (out []session) { return pagesAt(r, 5, 1, 2, 3, 4, 5, 6) }, "6 0.6 false"},
		"clock ahead": {func(r reader) (out []session) { return ahead(pagesAt(r, 5, 2, 4, 6, 8)...) }, "8 0.8 false"},
		"completed":   {func(r reader) []session { return ahead(pagesAt(r, 5, 3)[0], r.session("completed", 5, 5, nil)) }, "3 0.3 true"},
		"unread":      {func(r reader) []session { return ahead(pagesAt(r, 5, 3)[0], r.session("reset", 5, 5, nil)) }, "none"},
		"and read": {func(r reader) []session {
			return ahead(pagesAt(r, 5, 3)[0], r.session("reset", 5, 5, nil), pagesAt(r, 5, 2)[0])
		}, "2 0.2 false"},
		"out of order": {func(r reader) []session { out := ahead(pagesAt(r, 5, 2, 4, 6, 8)...); slices.Reverse(out); return out }, "8 0.8 false"},
	} {
		for range 5 {
			r := reader{t, s.User(t, "one", "reader"), books[0]}
			if got := told(r.tell(c.sessions(r)...)); !strings.HasPrefix(got, c.want) {
				t.Errorf("%s: %s, want %s", name, got, c.want)
				break
			}
		}
	}
}

// pagesAt returns sessions at a minute, one per page.
func pagesAt(r reader, minute int, pages ...int) (out []session) {
	for _, p := range pages {
		out = append(out, r.session("progress", minute, minute, session{"toPage": p}))
	}
	return out
}

// A device whose clock is ahead sends two readings at once: both count.
func TestReadTwiceByAClockThatIsAhead(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	r := newReader(t, s)
	var sessions []session
	for i, kind := range []string{"completed", "reset", "completed"} {
		at := time.Now().Add(time.Duration(10+i) * time.Minute).Format(time.RFC3339)
		sessions = append(sessions, r.session(kind, 0, 0, session{"clientStartedAt": at, "clientEndedAt": at}))
	}
	r.tell(sessions...)
	if n := completions(t, s, r.book); n != 2 {
		t.Errorf("%d readings, want 2", n)
	}
	r.tell(r.session("reset", 0, 0, session{"clientStartedAt": time.Now(), "clientEndedAt": time.Now()}))
	r.tell(r.session("completed", 0, 0, session{"clientStartedAt": time.Now(), "clientEndedAt": time.Now()}))
	if n := completions(t, s, r.book); n != 3 {
		t.Errorf("%d readings, want 3", n)
	}
}

// An invalid session is rejected alone.
func TestSessionsAreRefusedOneByOne(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	r := newReader(t, s)
	good := r.session("progress", 10, 20, session{"toPage": 4, "activeDurationMs": 99_000_000, "pagesRead": 3, "deviceName": "My tablet", "r2Progression": `{"href": "a"}`})
	cases := map[string]session{
		"invalid_time_range":  r.session("progress", 20, 10, session{"toPercentage": 2}),
		"invalid_percentage":  r.session("progress", 10, 20, session{"toPercentage": 1.01, "pagesRead": -1}),
		"invalid_measurement": r.session("progress", 10, 20, session{"activeDurationMs": -1}),
		"book_not_found":      r.session("progress", 10, 20, session{"bookId": uuid.New()}),
	}
	batch := []session{good}
	for _, c := range cases {
		batch = append(batch, c)
	}
	again := r.session("progress", 10, 20, session{"id": good["id"], "toPage": 7})
	m := r.tell(append(batch, again, r.session("progress", 1, 2, session{"toPage": -1}))...)
	reasons := map[string]int{}
	for _, x := range m["rejected"].([]any) {
		x := x.(map[string]any)
		reason := x["reason"].(string)
		reasons[reason]++
		if c := cases[reason]; c != nil && x["id"] != c["id"] && reason != "invalid_measurement" || reason == "duplicate_in_batch" && x["id"] != good["id"] {
			t.Errorf("%v", x)
		}
	}
	if fmt.Sprint(reasons) != "map[book_not_found:1 duplicate_in_batch:1 invalid_measurement:2 invalid_percentage:1 invalid_time_range:1]" {
		t.Errorf("%v", reasons)
	}
	if got := told(m); got != "4 0.4 false 2024-05-01T00:10:00Z <nil>" || len(m["accepted"].([]any)) != 1 {
		t.Errorf("%s: %v", got, m)
	}
	var active int64
	if err := s.DB.Owner.Pool().QueryRow(context.Background(), "select active_ms from reading_session where id = $1", good["id"]).Scan(&active); err != nil || active != 600_000 {
		t.Errorf("%d ms of ten minutes: %v", active, err)
	}
	unsaid := r.session("progress", 12, 22, session{"toPage": 4})
	r.tell(unsaid)
	var known bool
	if err := s.DB.Owner.Pool().QueryRow(context.Background(), "select active_ms is not null from reading_session where id = $1", unsaid["id"]).Scan(&known); err != nil || known {
		t.Errorf("how long the reader was active is known, though nobody said: %v", err)
	}
	snake := `{"sessions":[{"id":"` + uuid.NewString() + `","book_id":"` + r.book.String() + `","device_id":"d","kind":"progress","client_started_at":"2024-05-01T01:00:00Z",
		"client_ended_at":"2024-05-01T02:00:00Z","to_page":5,"active_duration_ms":1,"r2_progression":null}]}`
	if got := told(r.who.Do("POST", "/api/v1/reading-sessions", snake).Want(200).Map()); got != "5 0.5 false 2024-05-01T00:10:00Z <nil>" {
		t.Errorf("in the other spelling: %s", got)
	}
	if m := r.tell(); len(m["accepted"].([]any)) != 0 || len(m["progress"].([]any)) != 0 || len(m["rejected"].([]any)) != 0 {
		t.Errorf("nothing was told: %v", m)
	}
	for wrong, field := range map[string]string{`{}`: "sessions", `{"sessions":null}`: "sessions", `{"sessions":[` + strings.Repeat("{},", 500) + `{}]}`: "sessions",
		`{"sessions":[{}]}`: "sessions[0].id", `{"sessions":[5]}`: "sessions[0].id", `{"sessions":[null]}`: "sessions[0].id", `{"sessions":[{"id":"x"}]}`: "sessions[0].id"} {
		if m := r.who.Do("POST", "/api/v1/reading-sessions", wrong).Want(400).Map(); m["details"].([]any)[0].(map[string]any)["field"] != field {
			t.Errorf("%v, want %s", m, field)
		}
	}
	// Another tenant's book is unknown, and ids of different users do not collide.
	stranger := reader{t, s.User(t, "two", "admin"), r.book}
	if m := stranger.tell(good); len(m["accepted"].([]any)) != 0 || m["rejected"].([]any)[0].(map[string]any)["reason"] != "book_not_found" {
		t.Errorf("%v", m)
	}
	s.Anonymous(t, "one").Do("POST", "/api/v1/reading-sessions", map[string]any{"sessions": []session{}}).Want(401)
}

// An undecodable session does not affect the others; invalid optional values are cut or dropped.
func TestSessionsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	r := newReader(t, s)
	long := strings.Repeat("ß", 10_001)
	for _, c := range []struct {
		reason string
		more   session
	}{
		{"invalid_measurement", session{"toPage": 1 << 31}},
		{"invalid_measurement", session{"toPage": "3"}},
		{"invalid_measurement", session{"pagesRead": 1.5}},
		{"invalid_measurement", session{"activeDurationMs": 1e300}},
		{"invalid_measurement", session{"kind": "finished"}},
		{"invalid_measurement", session{"kind": nil}},
		{"invalid_percentage", session{"toPercentage": "0.5"}},
		{"invalid_time_range", session{"clientStartedAt": "yesterday"}},
		{"invalid_time_range", session{"clientEndedAt": nil}},
		{"book_not_found", session{"bookId": "x"}},
		{"book_not_found", session{"bookId": nil}},
		{"invalid_measurement", session{"activeDurationMs": json.RawMessage("-0.5e1")}},
		{"invalid_measurement", session{"toPage": json.RawMessage("1.05")}},
		{"", session{"toPage": json.RawMessage("2.0"), "pagesRead": json.RawMessage("1.00"), "activeDurationMs": json.RawMessage("1234.5678")}},
		{"", session{"deviceId": long, "deviceName": long, "r2Progression": long}},
		{"", session{"deviceId": "", "deviceName": 3, "r2Progression": map[string]any{"href": "a"}}},
		{"", session{"deviceId": nil, "deviceName": nil, "r2Progression": nil}},
		{"", session{"deviceId": "a\x00b", "deviceName": "a\x00b", "r2Progression": "{\"a\x00b\":1}"}},
	} {
		bad, good := r.session("progress", 1, 2, c.more), r.session("progress", 1, 2, nil)
		m := r.tell(bad, good)
		accepted, rejected := m["accepted"].([]any), m["rejected"].([]any)
		if !slices.Contains(accepted, good["id"]) || c.reason == "" && len(accepted) != 2 ||
			c.reason != "" && (len(rejected) != 1 || rejected[0].(map[string]any)["id"] != bad["id"] || rejected[0].(map[string]any)["reason"] != c.reason) {
			t.Errorf("%.100v: %v, want %q", c.more, m, c.reason)
		}
	}
	rows, err := s.DB.Owner.Pool().Query(context.Background(), `select device_id || ':' || coalesce(device_name, '-') || ':' || coalesce(locator, '-')
		from reading_session where device_id <> 'tablet'`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	ofClient := "ua:"
	want := []string{`ab:ab:{"ab":1}`, ofClient, ofClient, long[:256] + ":" + long[:400] + ":-"}
	slices.Sort(got)
	for i, w := range want {
		if len(got) != len(want) || !strings.HasPrefix(got[i], w) || w == ofClient && !strings.HasSuffix(got[i], ":-:-") {
			t.Fatalf("%.300q, want %.300q", got, want)
		}
	}
}

// Sessions and plain writes of progress combine.
func TestSessionsAmongPlainWrites(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	r := newReader(t, s)
	path := "/api/v1/books/" + r.book.String() + "/progress"
	put := func(body, device string) map[string]any {
		t.Helper()
		c := *r.who
		c.Header = r.who.Header.Clone()
		c.Header.Set("X-Codex-Device-Id", device)
		return c.Do("PUT", path, body).Want(200).Map()
	}
	rows := func() (n int) {
		if err := s.DB.Owner.Pool().QueryRow(context.Background(), "select count(*) from reading_session where book_id = $1 and account_id = $2", r.book, r.who.ID).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	// Stored by a program without sessions.
	if _, err := s.DB.Owner.Pool().Exec(context.Background(), `insert into progress (tenant_id, account_id, book_id, id, current_page, started_at, updated_at)
		values ($1, $2, $3, gen_random_uuid(), 6, '2024-01-01', '2024-01-02')`, s.One, r.who.ID, r.book); err != nil {
		t.Fatal(err)
	}
	if got := told(r.tell(session{"id": uuid.NewString(), "bookId": r.book, "deviceId": "d", "kind": "progress", "toPage": 3,
		"clientStartedAt": "2023-12-31T00:00:00Z", "clientEndedAt": "2023-12-31T01:00:00Z"})); got != "6 0.6 false 2023-12-31T00:00:00Z <nil>" {
		t.Errorf("older than what was stored before: %s", got)
	}
	before := rows()
	for page := range 5 {
		put(fmt.Sprintf(`{"currentPage":%d}`, 3+page), "tablet")
	}
	if n := rows() - before; n != 1 {
		t.Errorf("five pages turned are %d sessions", n)
	}
	put(`{"currentPage":8}`, "phone")
	if n := rows() - before; n != 2 {
		t.Errorf("two devices are %d sessions", n)
	}
	// Pages that the tablet turned after a measured hour are not part of it.
	now := time.Now()
	measured := r.session("progress", 0, 0, session{"activeDurationMs": 1000, "toPage": 9,
		"clientStartedAt": now.Add(-2 * time.Hour).Format(time.RFC3339), "clientEndedAt": now.Add(-time.Hour).Format(time.RFC3339)})
	if got := r.tell(measured)["progress"].([]any)[0].(map[string]any)["currentPage"]; got != 8.0 {
		t.Errorf("a page of an hour ago: %v, want 8", got)
	}
	if before++; rows()-before != 2 {
		t.Errorf("%d sessions besides the measured one, want the tablet's and the phone's", rows()-before)
	}
	// A measured hour includes the pages that the tablet turned during it; if its clock is ahead, later writes still
	// count.
	measured = r.session("progress", 0, 0, session{"activeDurationMs": 1000, "toPage": 2,
		"clientStartedAt": now.Add(-time.Hour).Format(time.RFC3339), "clientEndedAt": now.Add(time.Hour).Format(time.RFC3339)})
	if got := r.tell(measured)["progress"].([]any)[0].(map[string]any)["currentPage"]; got != 7.0 {
		t.Errorf("the furthest page that the tablet turned: %v, want 7", got)
	}
	if n := rows() - before; n != 2 {
		t.Errorf("%d sessions after one was measured, want it and the phone's", n)
	}
	if got := put(`{"currentPage":5}`, "phone"); got["currentPage"] != 5.0 {
		t.Errorf("a clock that is ahead has the last word: %v", got)
	}
	r.who.Do("POST", "/api/v1/books/"+r.book.String()+"/unread", nil).Want(204)
	r.who.Do("POST", "/api/v1/books/"+r.book.String()+"/unread", nil).Want(204)
	r.who.Do("GET", path, nil).Want(204)
	if got := put(`{"currentPage":10}`, "phone"); got["completed"] != true {
		t.Errorf("%v", got)
	}
}

// A limited number of sessions per book is kept; progress is unaffected.
func TestFirstSessionsAreForgotten(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	r := newReader(t, s)
	r.tell(r.session("completed", 1, 2, session{"toPage": 10}))
	if _, err := s.DB.Owner.Pool().Exec(context.Background(), `insert into reading_session (tenant_id, account_id, id, book_id, pass, kind, device_id, started_at, ended_at, page)
		select $1, $2, gen_random_uuid(), $3, 1, 'progress', 'd', at, at, 3 from (select '2024-06-01'::timestamptz + n * interval '1 minute' as at from generate_series(1, $4::integer) n) x`,
		s.One, r.who.ID, r.book, progress.MaxSessions+50); err != nil {
		t.Fatal(err)
	}
	var kept, first int
	for range 2 {
		if got := r.who.Do("PUT", "/api/v1/books/"+r.book.String()+"/progress", `{"currentPage":4}`).Want(200).Map(); got["currentPage"] != 4.0 || got["completed"] != false {
			t.Errorf("%v", got)
		}
		if err := s.DB.Owner.Pool().QueryRow(context.Background(), "select count(*), count(*) filter (where kind = 'completed') from reading_session").Scan(&kept, &first); err != nil {
			t.Fatal(err)
		}
		if kept != progress.MaxSessions || first != 0 {
			t.Errorf("%d sessions are kept, the first among them: %d", kept, first)
		}
	}
	if n := completions(t, s, r.book); n != 1 {
		t.Errorf("%d completions, want the one that was told first", n)
	}
	// A session older than all kept ones arrives last: it is dropped without effect.
	r.tell(r.session("progress", 1, 2, session{"toPage": 7}))
	if got := r.who.Do("PUT", "/api/v1/books/"+r.book.String()+"/progress", `{"currentPage":5}`).Want(200).Map(); got["currentPage"] != 5.0 {
		t.Errorf("%v", got)
	}
	if err := s.DB.Owner.Pool().QueryRow(context.Background(), "select count(*), count(*) filter (where device_id = 'legacy') from reading_session").Scan(&kept, &first); err != nil {
		t.Fatal(err)
	}
	if kept != progress.MaxSessions || first != 0 {
		t.Errorf("%d sessions are kept, of them made of the progress: %d", kept, first)
	}
}

// Few locators per book are kept; the reader's place is among them, also if the sessions after it have none.
func TestOldLocatorsAreDeleted(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	r := newReader(t, s)
	place := func() string {
		return string(r.who.Do("GET", "/api/v1/books/"+r.book.String()+"/progression", nil).Want(200).Body)
	}
	kept := func() (n int) {
		t.Helper()
		if err := s.DB.Owner.Pool().QueryRow(context.Background(), "select count(*) from reading_session where locator is not null").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	var with, without []session
	for i := range 100 {
		locator := fmt.Sprintf(`{"href":"%d.xhtml","locations":{"totalProgression":0.5}}`, i)
		with = append(with, r.session("progress", 2*i, 2*i+1, session{"r2Progression": locator}))
		without = append(without, r.session("progress", 500+2*i, 501+2*i, session{"toPage": 3}))
	}
	r.tell(with...)
	before := place()
	if n := kept(); n > 21 || !strings.Contains(before, "99.xhtml") {
		t.Errorf("%d locators are kept; the place is %s", n, before)
	}
	for range 2 {
		r.tell(without...)
		if after := place(); after != before || kept() != 1 {
			t.Errorf("%d locators are kept; the place is %s, was %s", kept(), after, before)
		}
	}
	r.tell(r.session("reset", 1000, 1000, nil), r.session("progress", 1001, 1002, nil))
	if n := kept(); n != 0 {
		t.Errorf("%d locators of the former pass are kept", n)
	}
}

// A limited number of completions per book is kept, the newest, and the others are not logged again.
func TestFirstCompletionsAreForgotten(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	r := newReader(t, s)
	s.DB.Exec(t, `insert into reading_session (tenant_id, account_id, id, book_id, pass, kind, device_id, started_at, ended_at)
		select $1, $2, gen_random_uuid(), $3, n + 1, kind, 'd', at, at from generate_series(1, 1200) n
		cross join lateral (values ('reset', 0), ('completed', 1)) as k(kind, later)
		cross join lateral (select '2024-06-01Z'::timestamptz + (2 * n + later) * interval '1 minute' as at) t`, s.One, r.who.ID, r.book)
	const minute = 2*200 + 3 // of the completion of pass 202, after the start
	want := time.Date(2024, 6, 1, 0, minute, 0, 0, time.UTC)
	for i, write := range []func(){
		func() { r.who.Do("PUT", "/api/v1/books/"+r.book.String()+"/progress", `{"currentPage":4}`).Want(200) },
		func() { r.who.Do("PUT", "/api/v1/books/"+r.book.String()+"/progress", `{"currentPage":5}`).Want(200) },
		func() { r.who.Do("DELETE", "/api/v1/books/"+r.book.String()+"/read-history", nil).Want(204) },
		func() { r.tell(r.session("progress", 1, 2, session{"toPage": 7})) },
	} {
		write()
		var first time.Time
		if err := s.DB.Owner.Pool().QueryRow(context.Background(), "select min(completed_at) from completion where book_id = $1", r.book).Scan(&first); err != nil {
			t.Fatal(err)
		}
		if n := completions(t, s, r.book); n != 1000 || !first.Equal(want) {
			t.Errorf("after write %d: %d completions, the first at %s, want 1000 from %s on", i+1, n, first, want)
		}
	}
	// One more takes the place of the first.
	now := time.Now().UTC().Format(time.RFC3339)
	more := session{"clientStartedAt": now, "clientEndedAt": now}
	r.tell(r.session("reset", 0, 0, more), r.session("completed", 0, 0, more))
	if n := completions(t, s, r.book); n > 1000 {
		t.Errorf("%d completions", n)
	}
}

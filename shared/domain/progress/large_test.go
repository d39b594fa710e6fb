package progress_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/testkit"
)

// large adds a series of n books.
func large(t *testing.T, s *testkit.Server, n int) (series uuid.UUID) {
	t.Helper()
	series, _ = shelf(t, s, 1)
	s.DB.Exec(t, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, page_count)
		select tenant_id, gen_random_uuid(), library_id, series_id, n::text, 10, now(), 'cbz', 't', 't', 't', 10 from book, generate_series(2, $1::integer) n`, n)
	return series
}

// refuse makes statements fail that change more than that many rows of a table.
func refuse(t *testing.T, s *testkit.Server, table string, most int) {
	t.Helper()
	s.DB.Exec(t, `create or replace function refuse() returns trigger language plpgsql as $$ begin
		if (select count(*) from changed) > tg_argv[0]::integer then raise 'too many rows'; end if; return null; end $$`)
	for _, event := range []string{"insert", "update"} {
		s.DB.Exec(t, "create trigger refuse_"+event+" after "+event+" on "+table+" referencing new table as changed execute function refuse('"+
			strconv.Itoa(most)+"')")
	}
}

// A large series is marked in several transactions, so that no statement reaches the time limit of a request.
func TestMarkLargeSeries(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	series := large(t, s, 2500)
	refuse(t, s, "progress", 1000)
	refuse(t, s, "reading_session", 1000)
	ctx := callerContext(s.User(t, "one", "reader"))
	for range 2 {
		if n, err := progress.ReadSeries(ctx, s.DB.App, series); err != nil || n != 2500 {
			t.Fatalf("read: %d, %v", n, err)
		}
	}
	if n, err := progress.UnreadSeries(ctx, s.DB.App, series); err != nil || n != 2500 {
		t.Fatalf("unread: %d, %v", n, err)
	}
	if n, err := progress.ReadAllSeries(ctx, s.DB.App, []uuid.UUID{uuid.New(), series}); err != nil || n != 2500 {
		t.Fatalf("read all: %d, %v", n, err)
	}
	var sessions, completions int
	if err := s.DB.Owner.Pool().QueryRow(t.Context(), "select (select count(*) from reading_session), (select count(*) from completion)").
		Scan(&sessions, &completions); err != nil || sessions != 7500 || completions != 5000 {
		t.Errorf("%d sessions and %d completions, %v", sessions, completions, err)
	}
}

// A request that marks very many books ends in time, and the next one continues: it does not begin anew.
func TestMarkingContinues(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	series := large(t, s, 2500)
	ctx, past := callerContext(s.User(t, "one", "reader")), time.Now().Add(-time.Second)
	for _, read := range []bool{true, false} {
		for left := 1500; left >= -500; left -= 1000 {
			n, err := progress.MarkUntil(ctx, s.DB.App, []uuid.UUID{series}, read, past)
			if left > 0 && !fault.Is(err, fault.Unavailable) || left <= 0 && (err != nil || read && n != 2500 || !read && n != 500) {
				t.Fatalf("read %v: %d are marked, %v", read, n, err)
			}
			var unread int
			if err := s.DB.Owner.Pool().QueryRow(t.Context(), "select 2500 - count(*) from progress").Scan(&unread); err != nil {
				t.Fatal(err)
			}
			if want := max(left, 0); read && unread != want || !read && unread != 2500-want {
				t.Errorf("read %v: %d books are unread while %d are left", read, unread, want)
			}
		}
	}
}

// Marking books as read leaves those as they are that are read already, except for one with another number of pages.
func TestMarkingAgainChangesNothing(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	series, books := shelf(t, s, 3)
	me := s.User(t, "one", "reader")
	ctx := callerContext(me)
	if _, err := progress.ReadSeries(ctx, s.DB.App, series); err != nil {
		t.Fatal(err)
	}
	// Another device would add a session, and the same one would change the time of its session.
	s.DB.Exec(t, "update reading_session set device_id = 'other' where book_id = $1", books[1])
	s.DB.Exec(t, "update book set page_count = 11 where id = $1", books[2])
	const state = "select array(select updated_at::text || current_page from progress order by array_position($1::uuid[], book_id))"
	var before, after []string
	if err := s.DB.Owner.Pool().QueryRow(t.Context(), state, books).Scan(&before); err != nil {
		t.Fatal(err)
	}
	for name, again := range map[string]func() (int64, error){
		"series": func() (int64, error) { return progress.ReadSeries(ctx, s.DB.App, series) },
		"books":  func() (int64, error) { return progress.ReadBooks(ctx, s.DB.App, books) },
	} {
		if n, err := again(); err != nil || n != 3 {
			t.Errorf("%s: %d, %v", name, n, err)
		}
		if err := s.DB.Owner.Pool().QueryRow(t.Context(), state, books).Scan(&after); err != nil {
			t.Fatal(err)
		}
		if before[0] != after[0] || before[1] != after[1] || !strings.HasSuffix(after[2], "11") {
			t.Errorf("%s: %v, was %v", name, after, before)
		}
	}
}

// Marking 500 books reads the rows of a user who has read much a few times, not once per book, also without statistics
// and whichever index Postgres takes.
func TestMarkingStaysLinear(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	large(t, s, 10000)
	me := s.User(t, "one", "reader")
	for _, table := range []string{"reading_session", "completion", "progress"} {
		s.DB.Exec(t, "alter table "+table+" set (autovacuum_enabled = off)")
	}
	for _, sql := range []string{
		`insert into progress (tenant_id, account_id, book_id, id, current_page, completed) select tenant_id, $1, id, gen_random_uuid(), 10, true from book`,
		`insert into completion (tenant_id, id, account_id, book_id, started_at, completed_at, pass) select tenant_id, gen_random_uuid(), $1, id, now(), now(), 1 from book`,
		`insert into reading_session (tenant_id, account_id, id, book_id, pass, kind, device_id, started_at, ended_at, implied, recorded_at)
		 select tenant_id, $1, gen_random_uuid(), id, 1, 'completed', 'device', now(), now(), true, now() from book`,
	} {
		s.DB.Exec(t, sql, me.ID)
	}
	// Without the indexes that have the book, Postgres takes another one.
	s.DB.Exec(t, "drop index reading_session_book, reading_session_of_book, completion_of_book, progress_book")
	var books []uuid.UUID
	if err := s.DB.Owner.Pool().QueryRow(t.Context(), "select array(select id from book limit 500)").Scan(&books); err != nil {
		t.Fatal(err)
	}
	for i, sql := range append(progress.Writes, progress.WritesBy...) {
		if n := discarded(t, s, me, sql, []any{books, "device"}[:1+i/len(progress.Writes)]...); n > 1_000_000 { // once per book: 5,000,000
			t.Errorf("%s discards %d rows", sql, n)
		}
	}
}

// A measured session looks only for positions of its own time, not for all that the device has sent of the book.
func TestAbsorbingStaysLinear(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	large(t, s, 1)
	me := s.User(t, "one", "reader")
	s.DB.Exec(t, `insert into reading_session (tenant_id, account_id, id, book_id, pass, kind, device_id, started_at, ended_at, implied, active_ms, recorded_at)
		select tenant_id, $1, gen_random_uuid(), id, 1, 'progress', 'device', at, at + length, active is null, active, now()
		from book, (
		  select now() - n * interval '1 minute' as at, interval '0' as length, null::bigint as active from generate_series(1, 5000) n
		  union all select now() - n * interval '10 minutes', interval '5 minutes', 1000 from generate_series(1, 500) n) x`, me.ID)
	s.DB.Exec(t, "analyze reading_session")
	var measured []uuid.UUID
	if err := s.DB.Owner.Pool().QueryRow(t.Context(), "select array(select id from reading_session where active_ms > 0)").Scan(&measured); err != nil {
		t.Fatal(err)
	}
	if n := discarded(t, s, me, progress.AbsorbSQL, measured); n > 50_000 { // each session with all positions: 2,500,000
		t.Errorf("%d rows are discarded", n)
	}
}

// The progress is computed from measured sessions with the plans that suit a few books.
func TestMeasuredSessionsOfFewBooks(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	r := newReader(t, s)
	s.DB.Exec(t, `create function public.plans() returns trigger language plpgsql as $$ begin
		if current_setting('enable_nestloop') = 'off' then raise exception 'progress is computed without nested loops'; end if; return null; end $$`)
	s.DB.Exec(t, "create trigger plans after insert or update on progress for each statement execute function public.plans()")
	r.tell(r.session("progress", 10, 20, session{"toPage": 4, "activeDurationMs": 1000}))
}

// discarded runs a statement as the caller and returns how many rows its filters and joins discard.
func discarded(t *testing.T, s *testkit.Server, c *testkit.Client, sql string, args ...any) (n int) {
	t.Helper()
	tx, err := s.DB.App.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	var raw []byte
	var b pgx.Batch
	b.Queue("select set_config('app.tenant', $1, true), set_config('app.account', $2, true)", c.Tenant.String(), c.ID.String())
	b.Queue(progress.Hashing)
	b.Queue("explain (analyze, timing off, format json) "+sql, args...).QueryRow(func(row pgx.Row) error { return row.Scan(&raw) })
	if err := tx.SendBatch(t.Context(), &b).Close(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	type node struct {
		Loops  float64 `json:"Actual Loops"`
		Filter float64 `json:"Rows Removed by Filter"`
		Join   float64 `json:"Rows Removed by Join Filter"`
		Plans  []json.RawMessage
	}
	var count func(json.RawMessage)
	count = func(raw json.RawMessage) {
		var at node
		if err := json.Unmarshal(raw, &at); err != nil {
			t.Fatal(err)
		}
		n += int(at.Loops * (at.Filter + at.Join))
		for _, p := range at.Plans {
			count(p)
		}
	}
	var plans []struct{ Plan json.RawMessage }
	if err := json.Unmarshal(raw, &plans); err != nil {
		t.Fatal(err)
	}
	for _, p := range plans {
		count(p.Plan)
	}
	return n
}

// A long history is deleted in several transactions.
func TestForgetLongHistory(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	series := large(t, s, 1)
	me := s.User(t, "one", "reader")
	refuse(t, s, "completion", 5000)
	s.DB.Exec(t, "alter table completion disable trigger refuse_insert")
	for _, path := range []string{"/api/v1/series/" + series.String() + "/read-history", "/api/v1/user/read-history"} {
		s.DB.Exec(t, `insert into completion (tenant_id, id, account_id, book_id, started_at, completed_at, pass)
			select tenant_id, gen_random_uuid(), $1, id, now(), now() + n * interval '1 second', n from book, generate_series(1, 6000) n`, me.ID)
		me.Do("DELETE", path, nil).Want(204)
		var left int
		if err := s.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from completion where not forgotten").Scan(&left); err != nil || left != 0 {
			t.Errorf("%s leaves %d readings, %v", path, left, err)
		}
	}
}

package release_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/release"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/plug"
	"github.com/longbox/longbox/shared/testkit"
)

// announced adds releases of the source.
func (r *rig) announced(n int) {
	r.t.Helper()
	r.DB.Exec(r.t, `insert into release (tenant_id, id, source_id, series_id, external_release_id, info, payload_url, confidence, state, observed_at)
		select $1, gen_random_uuid(), $2, $3, n, 'torrent ' || n, 'https://example.org', 1, 'announced', now() from generate_series(1, $4) n`, r.One, r.source, r.series, n)
}

// A source with very many releases disappears at once, and its releases within some rounds.
func TestSourcesGo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	r.DB.Exec(t, "insert into series_tracking (tenant_id, series_id, tracked) values ($1, $2, true)", r.One, r.series)
	r.announced(2*release.SweepStep + 10)
	id := r.value("select id from release limit 1")
	p, err := release.Begin(r.In(r.One), r.DB.App, r.source)
	if err != nil {
		t.Fatal(err)
	}
	in := &release.Result{}
	in.Take(&plug.Changes{Releases: &plug.ReleaseChanges{Sources: []json.RawMessage{json.RawMessage(`{"sourceKey":"new","kind":"api-feed"}`)}}})
	if _, err := p.Record(r.In(r.One), r.DB.App, r.publish, in); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/releases?state=all", "/series/" + r.series.String() + "/releases"} {
		if m := c.Do("GET", base+path, nil).Want(200).Map(); m["total"] != 0.0 || len(m["data"].([]any)) != 0 {
			t.Errorf("%s: %v are shown", path, m["total"])
		}
	}
	if m := c.Do("GET", base+"/releases/facets?state=all", nil).Want(200).Map(); len(m["series"].([]any)) != 0 || len(m["libraries"].([]any)) != 0 {
		t.Errorf("%v", m)
	}
	c.Do("POST", base+"/releases/"+id+"/dismiss", nil).Want(404)
	c.Do("DELETE", base+"/releases/"+id, nil).Want(404)
	if m := c.Do("POST", base+"/releases/bulk", object{"action": "delete", "ids": []string{id}}).Want(200).Map(); m["affected"] != 0.0 {
		t.Errorf("%v", m)
	}
	at := base + "/release-sources"
	if m := c.Do("GET", at, nil).Want(200).Map(); m["total"] != 1.0 || m["data"].([]any)[0].(object)["sourceKey"] != "new" {
		t.Errorf("%v", m)
	}
	for _, do := range []string{"/reset", "/poll-now"} {
		c.Do("POST", at+"/"+r.source.String()+do, nil).Want(404)
	}
	c.Do("PATCH", at+"/"+r.source.String(), object{"enabled": true}).Want(404)
	if m := c.Do("POST", at+"/reset-all", nil).Want(200).Map(); fmt.Sprint(m["considered"], m["deletedLedgerEntries"]) != "1 0" {
		t.Errorf("%v", m)
	}
	// Its torrents do not block those of the source that has replaced it.
	was := r.source
	r.source = uuid.MustParse(r.value("select id from release_source where name = 'new'"))
	if out := r.record(r.candidate("a", object{"infoHash": "Torrent 1"})); out.Announced+out.Ignored != 1 {
		t.Errorf("%+v", out)
	}
	// Locked rows are left for the next round, without waiting.
	if err := pgx.BeginFunc(t.Context(), r.DB.Owner.Pool(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "select from release where source_id = $1 and external_release_id = '7' for update", was); err != nil {
			return err
		}
		if n, err := release.Sweep(t.Context(), r.DB.System, 0); err != nil || n != 0 {
			t.Errorf("%d in no time, %v", n, err)
		}
		if n, err := release.Sweep(t.Context(), r.DB.System, time.Minute); err != nil || n != 2*release.SweepStep+8 {
			t.Errorf("%d, %v", n, err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := r.value("select count(*) from release_source where id = $1", was); got != "1" {
		t.Error("the source has gone before its releases")
	}
	if n, err := release.Sweep(t.Context(), r.DB.System, time.Minute); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	if got := r.value("select string_agg(name, ',') from release_source") + r.value("select string_agg(external_release_id, ',') from release"); got != "newa" {
		t.Errorf("left: %s", got)
	}
}

// Listeners are told of the series whose releases a reset has deleted.
func TestResetIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	for _, path := range []string{"/" + r.source.String() + "/reset", "/reset-all"} {
		r.announced(3)
		r.heard()
		m := c.Do("POST", base+"/release-sources"+path, nil).Want(200).Map()
		if h := r.heard(); m["deletedLedgerEntries"] != 3.0 || strings.Count(h, "series_updated {") != 1 || !strings.Contains(h, `"fields":["releases"]`) {
			t.Errorf("%s: %v, listeners are told %s", path, m, h)
		}
	}
}

// When more arrive, the oldest are deleted: per source, and in total.
func TestOldestAreForgotten(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.DB.Exec(t, "insert into series_tracking (tenant_id, series_id, tracked) values ($1, $2, true)", r.One, r.series)
	other := uuid.New()
	r.DB.Exec(t, "insert into release_source (tenant_id, id, plugin_id, name, display_name, kind) values ($1, $2, $3, 'other', 'Other', 'api-feed')", r.One, other, r.plugin)
	r.DB.Exec(t, `insert into release (tenant_id, id, source_id, series_id, external_release_id, payload_url, confidence, state, observed_at, created_at)
		select $1, gen_random_uuid(), case when n < 5 then $2::uuid else $3 end, $4, 'old ' || n, 'https://example.org', 1, 'announced', now(), now() - make_interval(days => 10 - n)
		from generate_series(1, 8) n`, r.One, other, r.source, r.series)
	keep := func(source, all int, name, want string) {
		t.Helper()
		p, err := release.Begin(r.In(r.One), r.DB.App, r.source)
		if err != nil {
			t.Fatal(err)
		}
		p.Keep(source, all)
		if _, err := p.Record(r.In(r.One), r.DB.App, r.publish, &release.Result{Candidates: []json.RawMessage{r.candidate(name, nil)}}); err != nil {
			t.Fatal(err)
		}
		if got := r.value("select string_agg(external_release_id, ',' order by created_at) from release"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	keep(4, 100, "a", "old 1,old 2,old 3,old 4,old 6,old 7,old 8,a")
	keep(100, 6, "b", "old 4,old 6,old 7,old 8,a,b")
	// Ignored releases are deleted first, however new: they must not displace visible or marked ones.
	r.DB.Exec(t, "update release set state = 'ignored' where external_release_id in ('old 8', 'b')")
	r.DB.Exec(t, "update release set state = 'dismissed' where external_release_id = 'old 4'")
	keep(100, 6, "c", "old 4,old 6,old 7,a,b,c")
	keep(4, 100, "d", "old 4,old 7,a,c,d")
	keep(100, 5, "e", "old 7,a,c,d,e")
}

// However many are in excess, as after an upgrade, a poll deletes at most one step, oldest first.
func TestTooManyGoInSteps(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.DB.Exec(t, "insert into series_tracking (tenant_id, series_id, tracked) values ($1, $2, true)", r.One, r.series)
	r.DB.Exec(t, `insert into release (tenant_id, id, source_id, series_id, external_release_id, payload_url, confidence, state, observed_at, created_at)
		select $1, gen_random_uuid(), $2, $3, 'old ' || n, 'https://example.org', 1, 'announced', now(), now() - make_interval(days => 10 - n)
		from generate_series(1, 8) n`, r.One, r.source, r.series)
	for i, want := range []string{"old 4,old 5,old 6,old 7,old 8,0", "old 7,old 8,0,1", "0,1,2", "1,2,3"} {
		p, err := release.Begin(r.In(r.One), r.DB.App, r.source)
		if err != nil {
			t.Fatal(err)
		}
		p.Keep(100, 3)
		p.Trim(3)
		if _, err := p.Record(r.In(r.One), r.DB.App, r.publish, &release.Result{Candidates: []json.RawMessage{r.candidate(fmt.Sprint(i), nil)}}); err != nil {
			t.Fatal(err)
		}
		if got := r.value("select string_agg(external_release_id, ',' order by created_at) from release"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A round continues until its time is up, even if many removed sources have no releases.
func TestManySourcesGo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.DB.Exec(t, `insert into release_source (tenant_id, id, plugin_id, name, display_name, kind, enabled)
		select $1, gen_random_uuid(), null, 'gone ' || n, 'Gone', 'api-feed', false from generate_series(1, $2) n`, r.One, release.SweepGone+30)
	if n, err := release.Sweep(t.Context(), r.DB.System, time.Minute); err != nil || n != 0 {
		t.Errorf("%d, %v", n, err)
	}
	if got := r.value("select count(*) from release_source where plugin_id is null"); got != "0" {
		t.Errorf("%s sources are left", got)
	}
}

// The number of aliases is limited, and so is the data that a plugin gets about a series.
func TestManyTitles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.DB.Exec(t, "insert into series_tracking (tenant_id, series_id, tracked) values ($1, $2, true)", r.One, r.series)
	r.DB.Exec(t, "insert into series_alias (tenant_id, id, series_id, alias, normalized, source) select $1, gen_random_uuid(), $2, n || repeat('<', 900), n, 'x' from generate_series(1, 197) n", r.One, r.series)
	r.DB.Exec(t, "insert into alternate_title (tenant_id, id, series_id, label, title) select $1, gen_random_uuid(), $2, 'l' || n, 'title ' || n / 2 from generate_series(2, 11) n", r.One, r.series)
	out, err := (&release.Tracker{Database: r.DB.App, Publish: r.publish}).Backfill(r.In(r.One), task.Held{Tenant: r.One, Params: json.RawMessage("{}")})
	if got := r.value("select count(*) from series_alias"); err != nil || got != "200" || out.(*release.Done).Aliases != 3 {
		t.Errorf("%s aliases, %v, %v", got, out, err)
	}
	p, err := release.Begin(r.In(r.One), r.DB.App, r.source)
	if err != nil {
		t.Fatal(err)
	}
	known, err := p.Known(r.In(r.One), r.DB.App)
	if err != nil || len(known.Releases.Tracked) != 1 {
		t.Fatalf("%+v, %v", known, err)
	}
	data, err := json.Marshal(known.Releases.Tracked[0])
	if err != nil || len(data) > 65<<10 || len(known.Releases.Tracked[0].Aliases) < 5 || !strings.Contains(string(data), r.series.String()) {
		t.Errorf("%d bytes of %d titles, %v", len(data), len(known.Releases.Tracked[0].Aliases), err)
	}
	// No more is read than fits one poll; the rest follows with the next polls.
	for i := range 40 {
		id := r.add(fmt.Sprintf("S %02d", i))
		r.DB.Exec(t, "insert into series_tracking (tenant_id, series_id, tracked) values ($1, $2, true)", r.One, id)
		r.DB.Exec(t, "insert into series_alias (tenant_id, id, series_id, alias, normalized, source) select $1, gen_random_uuid(), $2, n || repeat('x', 900), n, 'x' from generate_series(1, 199) n", r.One, id)
	}
	seen := map[string]int{}
	for range 20 {
		if p, err = release.Begin(r.In(r.One), r.DB.App, r.source); err != nil {
			t.Fatal(err)
		}
		known, err := p.Known(r.In(r.One), r.DB.App)
		if err != nil || len(known.Releases.Tracked) == 0 || len(known.Releases.Tracked) > 25 {
			t.Fatalf("%d series, %v", len(known.Releases.Tracked), err)
		}
		for _, s := range known.Releases.Tracked {
			seen[s.SeriesID]++
		}
		if _, err := p.Record(r.In(r.One), r.DB.App, r.publish, &release.Result{}); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != 41 {
		t.Errorf("%d of 41 series were told of in 20 polls", len(seen))
	}
}

// A poll that replaces the plugin's sources locks them in the same order as a reset of all.
func TestSourcesAreLockedInOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	higher := uuid.Max
	r.DB.Exec(t, "insert into release_source (tenant_id, id, plugin_id, name, display_name, kind) values ($1, $2, $3, 'other', 'Other', 'api-feed')", r.One, higher, r.plugin)
	p, err := release.Begin(r.In(r.One), r.DB.App, r.source)
	if err != nil {
		t.Fatal(err)
	}
	in := &release.Result{}
	in.Take(&plug.Changes{Releases: &plug.ReleaseChanges{Sources: []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"sourceKey":%q,"kind":"api-feed"}`, p.Name))}}})
	done := make(chan error, 1)
	if err := pgx.BeginFunc(t.Context(), r.DB.Owner.Pool(), func(tx pgx.Tx) error {
		var me int
		if err := tx.QueryRow(t.Context(), "select pg_backend_pid() from release_source where id = $1 for no key update", r.source).Scan(&me); err != nil {
			return err
		}
		go func() {
			_, err := p.Record(r.In(r.One), r.DB.App, r.publish, in)
			done <- err
		}()
		testkit.Eventually(t, 30*time.Second, func() bool {
			return r.value("select exists (select from pg_stat_activity where $1 = any(pg_blocking_pids(pid)))", me) == "true"
		})
		_, err := tx.Exec(t.Context(), "select from release_source where id = $1 for no key update nowait", higher)
		return err
	}); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := r.value("select string_agg(name, ',') from release_source where plugin_id is not null"); got != p.Name {
		t.Errorf("left: %s", got)
	}
}

package release_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/release"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/plug"
)

// begin begins a poll of the source, and returns it with the data for the plugin.
func (r *rig) begin() (*release.Poll, *plug.Releases) {
	r.t.Helper()
	p, err := release.Begin(r.In(r.One), r.DB.App, r.source)
	if err != nil {
		r.t.Fatal(err)
	}
	known, err := p.Known(r.In(r.One), r.DB.App)
	if err != nil {
		r.t.Fatal(err)
	}
	return p, known.Releases
}

// end records the result of a poll.
func (r *rig) end(p *release.Poll, in *release.Result) *release.Outcome {
	r.t.Helper()
	out, err := p.Record(r.In(r.One), r.DB.App, r.publish, in)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// fill adds so many series, and tracks all.
func (r *rig) fill(n int) {
	r.t.Helper()
	r.DB.Exec(r.t, `insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
		select $1, gen_random_uuid(), $2, n, n, n, n, n from (select n::text from generate_series(1, $3) n) x`, r.One, r.library, n)
	r.DB.Exec(r.t, "insert into series_tracking (tenant_id, series_id, tracked) select tenant_id, id, true from series")
}

// A plugin that sends all that its source has ever announced still gets new releases in.
func TestReleasesOfLongAgoAreKnown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.DB.Exec(t, "insert into series_tracking (tenant_id, series_id, tracked) values ($1, $2, true)", r.One, r.series)
	r.DB.Exec(t, `insert into release (tenant_id, id, source_id, series_id, external_release_id, payload_url, confidence, state, observed_at, created_at)
		select $1, gen_random_uuid(), $2, $3, n || repeat('ü<', 200), 'https://example.org', 1, 'announced', now(), now() - n * interval '1 minute'
		from generate_series(1, 20000) n`, r.One, r.source, r.series)
	name := func(n int) string { return fmt.Sprint(n, strings.Repeat("ü<", 200)) }
	p, known := r.begin()
	oldest := r.value("select id from release order by created_at limit 1")
	if got := known.Recorded[plug.Key(name(20_000))]; got != oldest {
		t.Errorf("the oldest of %d releases is %q, want %s", len(known.Recorded), got, oldest)
	}
	if data, err := json.Marshal(known); err != nil || len(data) > 5<<18 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	var all []json.RawMessage
	for n := range 1100 {
		all = append(all, r.candidate(name(18_900+n), nil))
	}
	if out := r.end(p, &release.Result{Candidates: append(all, r.candidate("new", nil))}); *out != (release.Outcome{Candidates: 1101, Announced: 1, Known: 1100}) {
		t.Errorf("%+v", out)
	}
}

// After a poll that exceeds its time limit, the next one begins where the plugin was.
func TestPollsThatTakeTooLong(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.fill(9)
	why := "not in time"
	stop := func(p *release.Poll, reached string) {
		in := &release.Result{Failed: &why, TimedOut: true}
		in.Take(&plug.Changes{Releases: &plug.ReleaseChanges{Reached: reached}})
		r.end(p, in)
	}
	p, known := r.begin()
	stop(p, known.Tracked[3].SeriesID)
	p, rest := r.begin()
	if len(known.Tracked) != 10 || len(rest.Tracked) != 6 || rest.Tracked[0].SeriesID != known.Tracked[4].SeriesID {
		t.Fatalf("after 4 of %d series follow %d", len(known.Tracked), len(rest.Tracked))
	}
	r.end(p, &release.Result{Failed: &why}) // it was not asked
	if p, rest = r.begin(); len(rest.Tracked) != 6 {
		t.Errorf("%d series after another failure", len(rest.Tracked))
	}
	stop(p, rest.Tracked[1].SeriesID)
	if p, rest = r.begin(); len(rest.Tracked) != 4 {
		t.Errorf("%d series after the second time", len(rest.Tracked))
	}
	stop(p, "")
	if p, rest = r.begin(); len(rest.Tracked) != 10 {
		t.Errorf("%d series, though it reached none", len(rest.Tracked))
	}
	stop(p, known.Tracked[8].SeriesID)
	p, _ = r.begin()
	r.end(p, &release.Result{})
	if got := r.value("select concat_ws(' ', covered_at is not null, resume_after) from release_source"); got != "t" {
		t.Errorf("after the last: %s", got)
	}
}

// An ETag of a poll without a series must not hide the feed from it.
func TestETagsOfPollsWithoutASeries(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "maintainer")
	r.fill(2)
	later := "update release_source set covered_at = now() - interval '1 minute', etag = 'old'"
	r.DB.Exec(t, later)
	r.DB.Exec(t, "update series_tracking set created_at = now() - interval '1 hour', updated_at = now() - interval '1 hour'")
	check := func(what string, series int, sent bool) {
		t.Helper()
		p, known := r.begin()
		if _, in := p.Params()["etag"]; len(known.Tracked) != series || in != sent || (known.ETag != nil) != sent {
			t.Errorf("%s: %d series, ETag sent: %v", what, len(known.Tracked), in)
		}
		fresh := "fresh"
		r.end(p, &release.Result{ETag: &fresh, Candidates: []json.RawMessage{r.candidate(what, nil)}})
		if got := r.value("select etag from release_source"); got != "fresh" {
			t.Errorf("%s: the ETag is %s", what, got)
		}
	}
	check("all as before", 3, true)
	check("after a new release", 3, true)
	r.DB.Exec(t, "update series_tracking set poll_interval = 31536000 where series_id = $1", r.series)
	check("one is not due", 2, true)
	r.DB.Exec(t, "update release_source set covered_at = now() - interval '2 years'")
	r.DB.Exec(t, "update series_tracking set created_at = now() - interval '3 years', updated_at = now() - interval '3 years'")
	check("it is due", 3, false)
	c.Do("PATCH", r.path("/tracking"), object{"tracked": false}).Want(200)
	check("it is not tracked", 2, true)
	c.Do("PATCH", r.path("/tracking"), object{"tracked": true}).Want(200)
	check("it is tracked again", 3, false)
	check("it is not due again", 2, true)
}

// What a source announced before a reset is announced again, unless another source announced it, too.
func TestReleasesAfterAReset(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	r.DB.Exec(t, "insert into series_tracking (tenant_id, series_id, tracked) values ($1, $2, true)", r.One, r.series)
	first, second := r.source, uuid.New()
	r.DB.Exec(t, "insert into release_source (tenant_id, id, plugin_id, name, display_name, kind) values ($1, $2, $3, 'second', 'Second', 'api-feed')", r.One, second, r.plugin)
	latest := func() string {
		return r.value("select concat_ws(' ', latest_volume, latest_chapter) from series_tracking")
	}
	all := []json.RawMessage{r.candidate("a", object{"volumes": upTo(9)}), r.candidate("b", object{"chapters": upTo(90)}), r.candidate("c", object{"volumes": upTo(99), "language": "ja"})}
	r.source = second
	r.record(r.candidate("d", object{"volumes": upTo(7)}), r.candidate("e", object{"volumes": upTo(50), "language": "ja"}))
	r.source = first
	if out := r.record(all...); out.Announced != 2 || latest() != "9 90" {
		t.Fatalf("%+v, %s", out, latest())
	}
	c.Do("POST", base+"/release-sources/"+first.String()+"/reset", nil).Want(200)
	if got := latest(); got != "7" {
		t.Errorf("after a reset: %q", got)
	}
	if out := r.record(all...); out.Announced != 2 {
		t.Errorf("%+v", out)
	}
	r.DB.Exec(t, "update series_tracking set latest_volume = 12")
	c.Do("POST", base+"/release-sources/reset-all", nil).Want(200)
	if got := latest(); got != "12" {
		t.Errorf("after a reset of all: %q", got)
	}
	if out := r.record(all...); out.Announced != 1 {
		t.Errorf("%+v", out)
	}
}

// A reset leaves a latest volume and chapter that only ignored releases name: they never raised it, so it is a
// person's.
func TestResetKeepsWhatAPersonHasSet(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	r.DB.Exec(t, "insert into series_tracking (tenant_id, series_id, tracked, latest_volume, latest_chapter) values ($1, $2, true, 12, 90)", r.One, r.series)
	if out := r.record(r.candidate("a", object{"volumes": upTo(12)}), r.candidate("b", object{"chapters": upTo(90)})); out.Ignored != 2 {
		t.Fatalf("%+v", out)
	}
	c.Do("POST", base+"/release-sources/"+r.source.String()+"/reset", nil).Want(200)
	if got := r.value("select concat_ws(' ', latest_volume, latest_chapter) from series_tracking"); got != "12 90" {
		t.Errorf("after a reset: %q", got)
	}
}

// A reset locks the tracking of series before releases, like a poll of another source.
func TestResetWhileAnotherSourceIsPolled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	r.DB.Exec(t, "insert into series_tracking (tenant_id, series_id, tracked) values ($1, $2, true)", r.One, r.series)
	r.record(r.candidate("a", nil))
	r.DB.LockedInOrder(t, "select from series_tracking for no key update", "update release set info = 'x'", func() error {
		c.Do("POST", base+"/release-sources/"+r.source.String()+"/reset", nil).Want(200)
		return nil
	})
}

// The last request to track or untrack a series counts, in whatever order the tasks run.
func TestTheLastRequestToTrackCounts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "maintainer")
	tracker := &release.Tracker{Database: r.DB.App, Publish: r.publish}
	ids, seen := []string{}, map[string]bool{}
	for _, path := range []string{"track", "untrack", "track"} {
		id := c.Do("POST", base+"/series/bulk/"+path+"-for-releases", object{"seriesIds": []string{r.series.String()}}).Want(200).Map()["taskId"].(string)
		ids, seen[id] = append(ids, id), true
	}
	run := func(id string) {
		h := task.Held{Tenant: r.One, ID: uuid.MustParse(id), Params: json.RawMessage(r.value("select params from task where id = $1", id))}
		if _, err := tracker.Track(r.In(r.One), h); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range []int{0, 2, 1} {
		run(ids[i])
		r.DB.Exec(t, "update task set status = 'completed', completed_at = now() where id = $1", ids[i])
	}
	if got := r.value("select tracked from series_tracking"); len(seen) != 3 || got != "true" {
		t.Errorf("%d tasks, tracked: %q", len(seen), got)
	}
	r.DB.Exec(t, "update task set status = 'cancelled', completed_at = now() where id = $1", ids[2])
	if run(ids[1]); r.value("select tracked from series_tracking") != "false" {
		t.Error("a request that was cancelled counts")
	}
}

// An ignored release does not keep others from being announced.
func TestIgnoredReleasesAreNotKnown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.DB.Exec(t, "insert into series_tracking (tenant_id, series_id, tracked, track_volumes) values ($1, $2, true, false)", r.One, r.series)
	r.record(r.candidate("a", object{"volumes": upTo(5)}))
	r.DB.Exec(t, "update series_tracking set track_volumes = true")
	if out := r.record(r.candidate("b", object{"volumes": upTo(5)})); out.Announced != 1 {
		t.Errorf("%+v", out)
	}
}

package release_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/release"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/plug"
)

// People set the threshold, and whether volumes or chapters count, per series; missing books do not count.
func TestWhatPeopleSayOfASeriesCounts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.book(r.series, "9", "90")
	r.DB.Exec(t, "update book set deleted_at = now() where volume = 9")
	sure := func(n float64) object { return object{"seriesId": r.series, "confidence": n} }
	for i, c := range []struct {
		tracking string // columns
		changes  object
		want     release.Outcome
	}{
		{"", object{"seriesMatch": sure(0.7)}, release.Outcome{Announced: 1}},
		{"confidence_threshold = 0.9", object{"seriesMatch": sure(0.89)}, release.Outcome{Refused: 1}},
		{"confidence_threshold = 0.5", object{"seriesMatch": sure(0.5)}, release.Outcome{Announced: 1}},
		{"", object{"volumes": upTo(4)}, release.Outcome{Announced: 1}},
		{"", object{"chapters": upTo(13)}, release.Outcome{Announced: 1}},
		{"track_volumes = false", object{"volumes": upTo(5)}, release.Outcome{Ignored: 1}},
		{"track_volumes = false", object{"volumes": upTo(5), "chapters": upTo(13)}, release.Outcome{Announced: 1}},
		{"track_chapters = false", object{"chapters": upTo(14)}, release.Outcome{Ignored: 1}},
		{"tracked = false", object{"volumes": upTo(6)}, release.Outcome{Refused: 1}},
	} {
		r.DB.Exec(t, "delete from series_tracking")
		r.DB.Exec(t, "insert into series_tracking (tenant_id, series_id, tracked) values ($1, $2, true)", r.One, r.series)
		if c.tracking != "" {
			r.DB.Exec(t, "update series_tracking set "+c.tracking)
		}
		c.want.Candidates = 1
		if out := r.record(r.candidate(fmt.Sprint(i), c.changes)); *out != c.want {
			t.Errorf("%v where %q: %+v", c.changes, c.tracking, out)
		}
	}
	p, err := release.Begin(r.In(r.One), r.DB.App, r.source)
	if err != nil {
		t.Fatal(err)
	}
	r.DB.Exec(t, "update series_tracking set tracked = true, latest_volume = null, latest_chapter = null")
	known, err := p.Known(r.In(r.One), r.DB.App)
	if err != nil || len(known.Releases.Tracked) != 1 || *known.Releases.Tracked[0].LatestKnownVolume != 3 || *known.Releases.Tracked[0].LatestKnownChapter != 12 {
		t.Errorf("%+v, %v", known, err)
	}
}

// A failing source is reported, and polled again with the same data; a disabled one is not polled.
func TestWhatIsNotedOfAPoll(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	status := func(n float64) *float64 { return &n }
	fresh, long := "fresh", strings.Repeat("ü", 1001)
	for _, s := range []struct {
		what   string
		result release.Result
		err    string
		kept   bool // the previous state is kept
	}{
		{"new", release.Result{ETag: &fresh, UpstreamStatus: status(399)}, "", false},
		{"not found", release.Result{ETag: &fresh, UpstreamStatus: status(400)}, "The source answers with status 400", true},
		{"no status", release.Result{ETag: &fresh, UpstreamStatus: status(1e9)}, "The source answers with status 999", true},
		{"no answer", release.Result{ETag: &fresh, Failed: &long}, long[:2000], true},
		{"nothing is said", release.Result{}, "", true},
	} {
		r.DB.Exec(t, "update release_source set etag = 'old', covered_at = null, last_error_at = null")
		p, err := release.Begin(r.In(r.One), r.DB.App, r.source)
		if err != nil {
			t.Fatal(err)
		}
		r.heard()
		if _, err := p.Record(r.In(r.One), r.DB.App, r.publish, &s.result); err != nil {
			t.Fatal(err)
		}
		got := r.value("select concat_ws(' ', etag, covered_at is not null, last_error_at is not null, last_error) from release_source")
		want := strings.TrimSpace(fmt.Sprint(map[bool]string{true: "old", false: "fresh"}[s.kept], " ", map[bool]string{true: "t f ", false: "f t "}[s.err == ""], s.err))
		if got != want || !strings.Contains(r.heard(), fmt.Sprintf(`"had_error":%v`, s.err != "")) {
			t.Errorf("%s: %.100s, want %.100s", s.what, got, want)
		}
	}
	r.DB.Exec(t, "update release_source set resume_after = gen_random_uuid(), last_summary = 'x', next_at = now()")
	at := base + "/release-sources/" + r.source.String()
	c.Do("POST", at+"/reset", nil).Want(200)
	if got := r.value("select concat_ws(' ', etag, covered_at, last_polled_at, last_error, last_error_at, last_summary, resume_after) from release_source"); got != "" {
		t.Errorf("reset: %s", got)
	}
	// The schedule starts over after it was disabled.
	c.Do("PATCH", at, object{"displayName": "x"}).Want(200)
	if r.value("select next_at from release_source") == "" {
		t.Error("another name ends the schedule")
	}
	c.Do("PATCH", at, object{"enabled": false}).Want(200)
	if _, err := release.Begin(r.In(r.One), r.DB.App, r.source); !fault.Is(err, fault.Conflict) {
		t.Errorf("a disabled source: %v", err)
	}
	c.Do("PATCH", at, object{"enabled": true}).Want(200)
	if got := r.value("select next_at from release_source"); got != "" {
		t.Errorf("enabled again it is due at %s", got)
	}
	r.DB.Exec(t, "update plugin set enabled = false")
	c.Do("POST", at+"/poll-now", nil).Want(409)
	if m := c.Do("POST", base+"/release-sources/poll-now-all", nil).Want(200).Map(); m["considered"] != 0.0 || r.value("select count(*) from task") != "0" {
		t.Errorf("of a disabled plugin: %v", m)
	}
	if m := c.Do("GET", base+"/release-sources/applicability", nil).Want(200).Map(); m["applicable"] != false {
		t.Errorf("%v", m)
	}
}

// Future times become the time of the poll, URLs must be valid, and lists are limited.
func TestCandidatesAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "reader")
	r.DB.Exec(t, "insert into series_tracking (tenant_id, series_id, tracked) values ($1, $2, true)", r.One, r.series)
	many := []object{}
	for n := range 101 {
		many = append(many, object{"start": n, "end": n})
	}
	for name, changes := range map[string]object{
		"to come":                object{"observedAt": "2999-01-01T00:00:00Z", "volumes": many, "releasedAt": "2026-01-01T00:00:00Z", "mediaUrl": "https://example.org/x", "mediaUrlKind": "smell"},
		strings.Repeat("ü", 500): {"releasedAt": "2026-01-02T00:00:00Z"},
		strings.Repeat("x", 501): nil, "nowhere": {"payloadUrl": "http:///x"}, "": nil, "too sure": {"seriesMatch": object{"seriesId": r.series, "confidence": 1.01}},
		"not released": nil,
	} {
		r.record(r.candidate(name, changes))
	}
	if got := r.value("select string_agg(left(external_release_id, 20), ',' order by external_release_id) from release"); got != "not released,to come,"+strings.Repeat("ü", 20) {
		t.Errorf("kept: %s", got)
	}
	if got := r.value("select concat_ws(' ', observed_at <= now(), jsonb_array_length(volumes), media_url_kind) from release where external_release_id = 'to come'"); got != "t 100 other" {
		t.Errorf("to come: %s", got)
	}
	var order []string
	for _, e := range c.Do("GET", base+"/releases?sort=released_at,desc", nil).Want(200).Map()["data"].([]any) {
		order = append(order, e.(object)["externalReleaseId"].(string)[:2])
	}
	if got := strings.Join(order, " "); got != "ü to no" {
		t.Errorf("the latest first: %s", got)
	}
}

// A poll with too many releases is cut off, and only some events are published.
func TestMuchAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "maintainer")
	r.DB.Exec(t, "insert into series_tracking (tenant_id, series_id, tracked) values ($1, $2, true)", r.One, r.series)
	var all []json.RawMessage
	for n := range 1001 {
		all = append(all, r.candidate(fmt.Sprint(n), nil))
	}
	if out := r.record(all...); *out != (release.Outcome{Candidates: 1001, Announced: 1000, Refused: 1}) {
		t.Errorf("%+v", out)
	}
	if n := strings.Count(r.heard(), "release_announced {"); n != 200 {
		t.Errorf("told of %d", n)
	}
	// Series with the most releases come first.
	few := r.add("A Few")
	r.DB.Exec(t, "update release set series_id = $1 where external_release_id = '7'", few)
	if f := c.Do("GET", base+"/releases/facets", nil).Want(200).Map()["series"].([]any); len(f) != 2 || f[0].(object)["count"] != 999.0 || f[1].(object)["seriesTitle"] != "A Few" {
		t.Errorf("%v", f)
	}
	var named []json.RawMessage
	for n := range plug.MaxSources + 1 {
		named = append(named, json.RawMessage(fmt.Sprintf(`{"sourceKey":"s%d","kind":"api-feed"}`, n)))
	}
	p, err := release.Begin(r.In(r.One), r.DB.App, r.source)
	if err != nil {
		t.Fatal(err)
	}
	in := &release.Result{}
	in.Take(&plug.Changes{Releases: &plug.ReleaseChanges{Sources: named}})
	if _, err := p.Record(r.In(r.One), r.DB.App, r.publish, in); err != nil {
		t.Fatal(err)
	}
	if got := r.value("select count(*) from release_source where plugin_id is not null"); got != fmt.Sprint(plug.MaxSources) {
		t.Errorf("%s sources", got)
	}
	c.Do("POST", r.path("/aliases"), object{"alias": "x", "source": " "}).Want(400)
}

// Readers change nothing; maintainers of series do not change sources.
func TestWhoChangesReleases(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	reader, maintainer := r.User(t, "one", "reader"), r.User(t, "one", "maintainer")
	some := []string{uuid.NewString()}
	for path, body := range map[string]any{"POST /series/{}/aliases": object{"alias": "x"}, "DELETE /series/{}/aliases/{}": nil, "POST /releases/bulk": object{"action": "delete", "ids": some},
		"PATCH /releases/{}": object{}, "POST /releases/{}/dismiss": nil, "POST /releases/{}/mark-acquired": nil, "DELETE /releases/{}": nil,
		"POST /series/bulk/untrack-for-releases": object{"seriesIds": some}} {
		method, path, _ := strings.Cut(strings.ReplaceAll(path, "{}", r.series.String()), " ")
		reader.Do(method, base+path, body).Want(403)
	}
	for path, body := range map[string]any{"GET ": nil, "PATCH /{}": object{}, "POST /{}/reset": nil, "POST /reset-all": nil, "POST /{}/poll-now": nil, "POST /poll-now-all": nil} {
		method, path, _ := strings.Cut(strings.ReplaceAll(path, "{}", r.source.String()), " ")
		maintainer.Do(method, base+"/release-sources"+path, body).Want(403)
	}
}

// A task that adds titles as aliases may pause after what it has written.
func TestTitlesInSteps(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.DB.Exec(t, "insert into series_tracking (tenant_id, series_id, tracked) values ($1, $2, true)", r.One, r.series)
	tracker := &release.Tracker{Database: r.DB.App, Publish: r.publish}
	pause := make(chan struct{})
	close(pause)
	h := task.Held{Tenant: r.One, Params: json.RawMessage(`{}`)}
	if out, err := tracker.Backfill(task.WithPause(r.In(r.One), pause), h); err == nil || !strings.Contains(err.Error(), "the task is paused") || r.value("select count(*) from series_alias") != "1" {
		t.Errorf("%v, %v", out, err)
	}
}

// A task that tracks series counts what it did before it paused, or before its worker died after the same step.
func TestManyAreTrackedInSteps(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.DB.Exec(t, `insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
		select $1, gen_random_uuid(), $2, n, n, n, n, n from (select n::text from generate_series(1, 250) n) x`, r.One, r.library)
	ids := strings.Split(r.value("select string_agg(id::text, ',') from series"), ",")
	id := r.User(t, "one", "maintainer").Do("POST", base+"/series/bulk/track-for-releases", object{"seriesIds": ids}).Want(200).Map()["taskId"].(string)
	h := task.Held{Tenant: r.One, ID: uuid.MustParse(id), Params: json.RawMessage(r.value("select params from task where id = $1", id))}
	tracker := &release.Tracker{Database: r.DB.App, Publish: r.publish}
	pause := make(chan struct{})
	close(pause)
	if out, err := tracker.Track(task.WithPause(r.In(r.One), pause), h); err == nil || !strings.Contains(err.Error(), "the task is paused") {
		t.Fatalf("%v, %v", out, err)
	}
	h.Place = json.RawMessage(r.value("select place from task where id = $1", id))
	out, err := tracker.Track(r.In(r.One), h)
	if n := r.value("select count(*) from series_alias"); err != nil || out != (release.Done{Series: 251, Aliases: 251}) || n != "251" {
		t.Errorf("%+v, %s aliases, %v", out, n, err)
	}
}

package release_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/release"
	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/plug"
	"github.com/longbox/longbox/shared/testkit"
)

const base = "/api/v1"

type object = map[string]any

// rig is a server with a plugin that has a source, and a series with volume 3 and chapter 12.
type rig struct {
	*testkit.Server
	t                               *testing.T
	plugin, source, library, series uuid.UUID

	mu   sync.Mutex
	told []events.Event
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, plugin: uuid.New(), source: uuid.New(), library: uuid.New()}
	r.Server = testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		release.Routes(a, d, r.publish, nil)
		series.Routes(a, d, nil, nil)
	})
	r.DB.Exec(t, `insert into plugin (tenant_id, id, name, display_name, plugin_type, command, credential_delivery, enabled, use_existing_external_id, manifest)
		values ($1, $2, 'watcher', 'The Watcher', 'system', 'node', 'env', true, true, '{"capabilities":{"releaseSource":{"requiresAliases":true,"requiresExternalIds":["anilist"]}}}')`, r.One, r.plugin)
	r.DB.Exec(t, `insert into release_source (tenant_id, id, plugin_id, name, display_name, kind) values ($1, $2, $3, 'feed', 'Feed', 'api-feed')`, r.One, r.source, r.plugin)
	r.DB.Exec(t, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'Comics', '/c', 'b', '', 'series_volume', 'filename', 'file_order')`, r.One, r.library)
	r.series = r.add("Bleak House")
	r.book(r.series, "3", "null")
	r.book(r.series, "null", "12")
	return r
}

func (r *rig) publish(_ context.Context, tenant uuid.UUID, all ...events.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if tenant != r.One {
		r.t.Errorf("told to the tenant %s", tenant)
	}
	r.told = append(r.told, all...)
}

// heard returns the events since the last call, as JSON.
func (r *rig) heard() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, e := range r.told {
		data, err := json.Marshal(e.Data)
		if err != nil {
			r.t.Fatal(err)
		}
		out = append(out, e.Kind+" "+string(data))
	}
	r.told = nil
	return strings.Join(out, "\n")
}

func (r *rig) add(title string) uuid.UUID {
	r.t.Helper()
	id := uuid.New()
	r.DB.Exec(r.t, "insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) values ($1, $2, $3, $4, $4, $4, $4, $4)", r.One, id, r.library, title)
	return id
}

func (r *rig) book(of uuid.UUID, volume, chapter string) {
	r.t.Helper()
	r.DB.Exec(r.t, fmt.Sprintf(`insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, volume, chapter)
		select $1, gen_random_uuid(), $2, $3, gen_random_uuid()::text, 1, now(), 'cbz', 'b', 'b', 'b', %s, %s`, volume, chapter), r.One, r.library, of)
}

func (r *rig) path(suffix string) string { return base + "/series/" + r.series.String() + suffix }

func (r *rig) value(sql string, args ...any) (out string) {
	r.t.Helper()
	if err := r.DB.Owner.Pool().QueryRow(context.Background(), "select coalesce(("+sql+")::text, '')", args...).Scan(&out); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
	return out
}

// candidate returns a release of the series, with changes.
func (r *rig) candidate(external string, changes object) json.RawMessage {
	r.t.Helper()
	m := object{"seriesMatch": object{"seriesId": r.series, "confidence": 0.9, "reason": "title"}, "externalReleaseId": external, "language": "en",
		"payloadUrl": "https://example.org/" + external, "observedAt": "2026-01-02T03:04:05Z"}
	for k, v := range changes {
		m[k] = v
	}
	data, err := json.Marshal(m)
	if err != nil {
		r.t.Fatal(err)
	}
	return data
}

// record polls the source with the given result.
func (r *rig) record(all ...json.RawMessage) *release.Outcome {
	r.t.Helper()
	p, err := release.Begin(r.In(r.One), r.DB.App, r.source)
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := p.Record(r.In(r.One), r.DB.App, r.publish, &release.Result{Candidates: all})
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

func upTo(end float64) []object { return []object{{"start": 1, "end": end}} }

func TestTracking(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, reader, foreign := r.User(t, "one", "maintainer"), r.User(t, "one", "reader"), r.User(t, "two", "admin")
	got := reader.Do("GET", r.path("/tracking"), nil).Want(200).Map()
	if got["tracked"] != false || got["trackChapters"] != true || got["trackVolumes"] != true || got["languages"] != nil || got["seriesId"] != r.series.String() || got["volumeChapterMap"] != nil {
		t.Errorf("%v", got)
	}
	reader.Do("PATCH", r.path("/tracking"), object{"tracked": true}).Want(403)
	foreign.Do("GET", r.path("/tracking"), nil).Want(404)
	foreign.Do("PATCH", r.path("/tracking"), object{"tracked": true}).Want(404)
	for field, value := range map[string]any{"languages": []string{"English"}, "confidenceThresholdOverride": 1.1, "pollIntervalOverrideS": 1, "latestKnownChapter": -1,
		"volumeChapterMap": []int{1}, "tracked": "yes", "latestKnownVolume": 1.5} {
		c.Do("PATCH", r.path("/tracking"), object{field: value}).Want(400)
	}
	if r.heard() != "" {
		t.Error("told of nothing")
	}
	got = c.Do("PATCH", r.path("/tracking"), object{"tracked": true, "trackVolumes": false, "languages": []string{"en", "fr"}, "latestKnownChapter": 10.5, "confidenceThresholdOverride": 0.5,
		"pollIntervalOverrideS": 3600, "latestKnownVolume": 2, "volumeChapterMap": object{"1": 8, "2": object{"start": 9, "end": 15, "more": "a\x00b"}}}).Want(200).Map()
	if fmt.Sprint(got["volumeChapterMap"], got["latestKnownVolume"]) != "map[1:8 2:map[end:15 start:9]] 2" {
		t.Errorf("%v", got)
	}
	r.DB.Exec(t, "update series_tracking set latest_volume = 2.5") // as it was announced
	if got := reader.Do("GET", r.path("/tracking"), nil).Want(200).Map(); got["latestKnownVolume"] != 2.0 {
		t.Errorf("%v", got)
	}
	if got["tracked"] != true || got["trackVolumes"] != false || fmt.Sprint(got["languages"]) != "[en fr]" || got["latestKnownChapter"] != 10.5 || got["pollIntervalOverrideS"] != 3600.0 {
		t.Errorf("%v", got)
	}
	if h := r.heard(); !strings.Contains(h, `series_updated`) || !strings.Contains(h, `"fields":["tracking"]`) {
		t.Error(h)
	}
	got = c.Do("PATCH", r.path("/tracking"), object{"latestKnownChapter": nil, "languages": nil, "tracked": nil}).Want(200).Map()
	if got["tracked"] != true || got["trackVolumes"] != false || got["languages"] != nil || got["latestKnownChapter"] != nil || got["confidenceThresholdOverride"] != 0.5 {
		t.Errorf("%v", got)
	}
}

func TestAliases(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, foreign := r.User(t, "one", "maintainer"), r.User(t, "two", "admin")
	first := c.Do("POST", r.path("/aliases"), object{"alias": " The Bleak-House! "}).Want(201).Map()
	if first["alias"] != "The Bleak-House!" || first["normalized"] != "the bleak house" || first["source"] != "manual" {
		t.Errorf("%v", first)
	}
	r.heard()
	again := c.Do("POST", r.path("/aliases"), object{"alias": "the bleak house", "source": "me"}).Want(200).Map()
	if again["id"] != first["id"] || again["source"] != "manual" || r.heard() != "" {
		t.Errorf("%v", again)
	}
	c.Do("POST", r.path("/aliases"), object{"alias": "荒涼館"}).Want(201)
	c.Do("POST", r.path("/aliases"), object{"alias": "…!"}).Want(400)
	if list := c.Do("GET", r.path("/aliases"), nil).Want(200).Map(); list["total"] != 2.0 {
		t.Errorf("%v", list)
	}
	at := r.path("/aliases/" + first["id"].(string))
	foreign.Do("DELETE", at, nil).Want(404)
	foreign.Do("GET", r.path("/aliases"), nil).Want(404)
	foreign.Do("POST", r.path("/aliases"), object{"alias": "x"}).Want(404)
	c.Do("DELETE", at, nil).Want(204)
	c.Do("DELETE", at, nil).Want(404)
	r.DB.Exec(t, "insert into series_alias (tenant_id, id, series_id, alias, normalized, source) select $1, gen_random_uuid(), $2, n, n, 'x' from generate_series(1, 199) n", r.One, r.series)
	c.Do("POST", r.path("/aliases"), object{"alias": "one more"}).Want(409)
	c.Do("POST", r.path("/aliases"), object{"alias": "荒涼館"}).Want(200)
}

func TestSeriesTellOfTracking(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "maintainer")
	other := r.add("Another")
	r.DB.Exec(t, "update series set total_chapter_count = 20.25, total_volume_count = 5")
	r.DB.Exec(t, `insert into external_id (tenant_id, id, series_id, source, external_id) values ($1, gen_random_uuid(), $2, 'plugin:watcher', '1'), ($1, gen_random_uuid(), $2, 'anilist', '2')`, r.One, r.series)
	shown := func() string {
		m := c.Do("GET", r.path(""), nil).Want(200).Map()
		return fmt.Sprintf("%v %v %v %v", m["tracked"], m["upstreamChapterGap"], m["upstreamVolumeGap"], m["upstreamGapProvider"])
	}
	steps := []struct {
		change object
		want   string
	}{{object{"trackVolumes": true}, "false <nil> <nil> <nil>"}, {object{"tracked": true}, "true 8.3 2 The Watcher"}, {object{"trackChapters": false}, "true <nil> 2 The Watcher"},
		{object{"trackVolumes": false}, "true <nil> <nil> <nil>"}}
	for _, s := range steps {
		c.Do("PATCH", r.path("/tracking"), s.change).Want(200)
		if got := shown(); got != s.want {
			t.Errorf("after %v: %s, want %s", s.change, got, s.want)
		}
	}
	c.Do("PATCH", r.path("/tracking"), object{"trackVolumes": true, "trackChapters": true}).Want(200)
	r.DB.Exec(t, "update series set total_chapter_count = 12, total_volume_count = 2")
	if got := shown(); got != "true <nil> <nil> <nil>" {
		t.Errorf("nothing is missing: %s", got)
	}
	for operator, want := range map[string]uuid.UUID{"isTrue": r.series, "isFalse": other} {
		m := c.Do("POST", base+"/series/list", object{"condition": object{"isTracked": object{"operator": operator}}}).Want(200).Map()
		if m["total"] != 1.0 || m["data"].([]any)[0].(object)["id"] != want.String() {
			t.Errorf("%s: %v", operator, m)
		}
	}
}

func TestWhatIsAnnounced(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "maintainer")
	if out := r.record(r.candidate("a", nil)); *out != (release.Outcome{Candidates: 1, Refused: 1}) {
		t.Errorf("of a series that is not tracked: %+v", out)
	}
	c.Do("PATCH", r.path("/tracking"), object{"tracked": true, "volumeChapterMap": object{"3": 15, "4": 20}}).Want(200)
	r.heard()
	cases := []struct {
		external string
		changes  object
		state    string // "" if it is rejected
	}{
		{"says nothing", nil, "announced"},
		{"volume 3", object{"volumes": upTo(3)}, "ignored"},
		{"volume 4", object{"volumes": upTo(4)}, "announced"},
		{"chapter in volume 3", object{"chapters": upTo(15)}, "ignored"},
		{"chapter 16", object{"chapters": upTo(16)}, "announced"},
		{"old volume, new chapter", object{"volumes": upTo(1), "chapters": upTo(17)}, "announced"},
		{"other language", object{"volumes": upTo(9), "language": "ja"}, "ignored"},
		{"region", object{"volumes": upTo(5), "language": "en-GB"}, "announced"},
		{"unsure", object{"volumes": upTo(9), "seriesMatch": object{"seriesId": r.series, "confidence": 0.69}}, ""},
		{"nobody's", object{"seriesMatch": object{"seriesId": uuid.New(), "confidence": 1}}, ""},
		{"without address", object{"payloadUrl": "javascript:alert(1)"}, ""},
		{"mistyped", object{"volumes": "many"}, ""},
		{"odd", object{"volumes": []object{{"start": 9, "end": 8}, {"start": -1, "end": 1e9}}, "mediaUrl": "file:///etc/passwd", "metadata": object{"a": "x\x00y"}, "infoHash": "ABC", "language": "not one!"}, "announced"},
	}
	var all []json.RawMessage
	for _, k := range cases {
		all = append(all, r.candidate(k.external, k.changes))
	}
	if out := r.record(all...); *out != (release.Outcome{Candidates: 13, Announced: 6, Ignored: 3, Refused: 4}) {
		t.Errorf("%+v", out)
	}
	for _, k := range cases {
		if got := r.value("select state from release where external_release_id = $1", k.external); got != k.state {
			t.Errorf("%s is %q, want %q", k.external, got, k.state)
		}
	}
	told := r.heard()
	if strings.Count(told, "release_announced {") != 6 || !strings.Contains(told, `"series_title":"Bleak House"`) || !strings.Contains(told, `"plugin_id":"watcher"`) ||
		!strings.Contains(told, `"had_error":false`) {
		t.Error(told)
	}
	if got := r.value("select latest_volume || ' ' || latest_chapter from series_tracking"); got != "5 17" {
		t.Errorf("known of is %s", got)
	}
	if got := r.value("select concat_ws(' ', media_url, metadata, info, volumes, language) from release where external_release_id = 'odd'"); got != `{"a": "xy"} abc` {
		t.Errorf("odd: %s", got)
	}
	// The same releases are known, and so is the same torrent under another name.
	if out := r.record(append(all, r.candidate("copy", object{"infoHash": "abc"}))...); *out != (release.Outcome{Candidates: 14, Known: 10, Refused: 4}) {
		t.Errorf("again: %+v", out)
	}
	if out := r.record(r.candidate("volume 5 again", object{"volumes": upTo(5)}), r.candidate("volume 6", object{"volumes": upTo(6)})); out.Announced != 1 || out.Ignored != 1 {
		t.Errorf("later: %+v", out)
	}
	if got := r.value("select last_summary || coalesce(last_error, '') from release_source"); got != "1 announced, 1 ignored, 0 already known, 0 refused" {
		t.Error(got)
	}
	// Releases that the settings exclude are not published.
	r.heard()
	for i, s := range []object{{"release_tracking.notify_plugins": `["other"]`}, {"release_tracking.notify_plugins": `["watcher"]`, "release_tracking.notify_languages": `["fr"]`},
		{"release_tracking.notify_languages": `["en"]`}} {
		for k, v := range s {
			r.DB.Exec(t, "insert into setting (tenant_id, key, value) values ($1, $2, $3) on conflict (tenant_id, key) do update set value = excluded.value", r.One, k, v)
		}
		r.record(r.candidate(fmt.Sprint("quiet ", i), nil))
		if got := strings.Contains(r.heard(), "release_announced"); got != (i == 2) {
			t.Errorf("with %v: told is %v", s, got)
		}
	}
	// A plugin serves only its libraries.
	r.DB.Exec(t, "update plugin set library_ids = array[gen_random_uuid()]")
	if out := r.record(r.candidate("foreign", nil)); out.Refused != 1 {
		t.Errorf("of another library: %+v", out)
	}
}

// Times and numbers of plugins stay within what can be stored and returned.
func TestOddNumbers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "reader")
	r.DB.Exec(t, "insert into series_tracking (tenant_id, series_id, tracked) values ($1, $2, true)", r.One, r.series)
	numbers := json.RawMessage("[" + strings.Repeat("1e300,", 1000) + "1e-300]")
	small := []object{}
	for range 100 {
		small = append(small, object{"start": 1e-300, "end": 2})
	}
	for name, changes := range map[string]object{
		"zone":       {"observedAt": "2026-01-02T03:04:05+23:59"},
		"far":        {"releasedAt": "9999-12-31T23:59:59-05:00"},
		"long ago":   {"releasedAt": "0001-01-01T00:00:00+15:00"},
		"long lists": {"metadata": numbers, "formatHints": numbers, "volumes": small},
	} {
		if out := r.record(r.candidate(name, changes)); out.Announced != 1 {
			t.Errorf("%s: %+v", name, out)
		}
	}
	res := c.Do("GET", base+"/releases", nil).Want(200)
	if m := res.Map(); m["total"] != 4.0 || len(res.Body) > 10_000 {
		t.Errorf("%.2000s", res.Body)
	}
}

// A source that is reset during a poll starts from the beginning next time.
func TestResetDuringAPoll(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	failed, again := "no network", "y"
	for name, in := range map[string]*release.Result{"not modified": {NotModified: true}, "newer": {ETag: &again}, "failed": {Failed: &failed}} {
		r.DB.Exec(t, "update release_source set etag = 'x', resume_after = gen_random_uuid()")
		p, err := release.Begin(r.In(r.One), r.DB.App, r.source)
		if err != nil {
			t.Fatal(err)
		}
		c.Do("POST", base+"/release-sources/"+r.source.String()+"/reset", nil).Want(200)
		if _, err := p.Record(r.In(r.One), r.DB.App, r.publish, in); err != nil {
			t.Fatal(err)
		}
		if got := r.value("select concat_ws(' ', etag, resume_after) from release_source"); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Deleting a series and recording its releases are serialized.
func TestSeriesIsDeletedDuringAPoll(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.DB.Exec(t, "insert into series_tracking (tenant_id, series_id, tracked) values ($1, $2, true)", r.One, r.series)
	r.DB.Exec(t, "delete from book")
	p, err := release.Begin(r.In(r.One), r.DB.App, r.source)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := r.DB.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	// As a deletion does before it deletes the rows of the series.
	if _, err := tx.Exec(t.Context(), "select from series where id = $1 for update", r.series); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	var out *release.Outcome
	go func() {
		var err error
		out, err = p.Record(r.In(r.One), r.DB.App, r.publish, &release.Result{Candidates: []json.RawMessage{r.candidate("a", nil)}})
		done <- err
	}()
	r.DB.AwaitLock(t)
	_, err = tx.Exec(t.Context(), "delete from series where id = $1", r.series)
	if err == nil {
		err = tx.Commit(t.Context())
	}
	if recorded := <-done; err != nil || recorded != nil || out.Refused != 1 {
		t.Errorf("%v, %v, %+v", err, recorded, out)
	}
}

func TestReleasesAreListedAndChanged(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, reader, foreign := r.User(t, "one", "maintainer"), r.User(t, "one", "reader"), r.User(t, "two", "admin")
	r.DB.Exec(t, "insert into series_tracking (tenant_id, series_id, tracked, languages) values ($1, $2, true, '{}')", r.One, r.series)
	r.record(r.candidate("a", object{"volumes": upTo(4), "observedAt": "2026-01-01T00:00:00Z", "mediaUrl": "magnet:?xt=1", "mediaUrlKind": "magnet"}),
		r.candidate("b", object{"language": "fr", "observedAt": "2026-01-03T00:00:00Z"}), r.candidate("c", object{"volumes": upTo(1), "observedAt": "2026-01-02T00:00:00Z"}))
	list := func(query string) string {
		t.Helper()
		var out []string
		m := reader.Do("GET", base+query, nil).Want(200).Map()
		for _, e := range m["data"].([]any) {
			out = append(out, e.(object)["externalReleaseId"].(string))
		}
		return strings.Join(out, "") + fmt.Sprint(" of ", m["total"])
	}
	for query, want := range map[string]string{
		"/releases":                        "ba of 2",
		"/releases?state=all":              "bca of 3",
		"/releases?state=ignored":          "c of 1",
		"/releases?language=fr":            "b of 1",
		"/releases?sort=observed_at,asc":   "ab of 2",
		"/releases?sort=series&pageSize=1": "",
		"/releases?libraryId=" + r.library.String() + "&seriesId=" + r.series.String() + "&sourceId=" + r.source.String(): "ba of 2",
		"/releases?libraryId=" + uuid.NewString():                 " of 0",
		"/series/" + r.series.String() + "/releases":              "bca of 3",
		"/series/" + r.series.String() + "/releases?state=hidden": " of 0",
	} {
		if got := list(query); got != want && want != "" {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	reader.Do("GET", base+"/releases?sort=colour", nil).Want(400)
	reader.Do("GET", base+"/releases?state=gone", nil).Want(400)
	if got := foreign.Do("GET", base+"/releases?state=all", nil).Want(200).Map()["total"]; got != 0.0 {
		t.Errorf("another tenant sees %v", got)
	}
	foreign.Do("GET", r.path("/releases"), nil).Want(404)
	f := reader.Do("GET", base+"/releases/facets?language=fr&seriesId="+r.series.String(), nil).Want(200).Map()
	if fmt.Sprint(f["languages"]) != "[map[count:1 language:en] map[count:1 language:fr]]" || f["series"].([]any)[0].(object)["seriesTitle"] != "Bleak House" ||
		f["libraries"].([]any)[0].(object)["count"] != 1.0 {
		t.Errorf("%v", f)
	}
	id := func(external string) string {
		return r.value("select id from release where external_release_id = $1", external)
	}
	at := base + "/releases/" + id("a")
	first := reader.Do("GET", base+"/releases?sort=observed_at", nil).Want(200).Map()["data"].([]any)[0].(object)
	if first["mediaUrlKind"] != "magnet" || fmt.Sprint(first["volumes"]) != "[map[end:4 start:1]]" || first["chapters"] != nil || first["seriesTitle"] != "Bleak House" || first["confidence"] != 0.9 {
		t.Errorf("%v", first)
	}
	r.heard()
	reader.Do("POST", at+"/dismiss", nil).Want(403)
	for path, want := range map[string]string{"/dismiss": "dismissed", "/mark-acquired": "marked_acquired"} {
		if m := c.Do("POST", at+path, nil).Want(200).Map(); m["state"] != want {
			t.Errorf("%s: %v", path, m)
		}
		foreign.Do("POST", at+path, nil).Want(404)
	}
	if m := c.Do("PATCH", at, object{"state": "hidden"}).Want(200).Map(); m["state"] != "hidden" {
		t.Errorf("%v", m)
	}
	if m := c.Do("PATCH", at, object{}).Want(200).Map(); m["state"] != "hidden" {
		t.Errorf("%v", m)
	}
	c.Do("PATCH", at, object{"state": "gone"}).Want(400)
	if h := r.heard(); strings.Count(h, `"fields":["releases"]`) != 3 {
		t.Error(h)
	}
	ids := []string{id("a"), id("b"), uuid.NewString()}
	for _, s := range [][2]string{{"ignore", "ignored"}, {"reset", "announced"}, {"mark-acquired", "marked_acquired"}, {"dismiss", "dismissed"}} {
		m := c.Do("POST", base+"/releases/bulk", object{"action": s[0], "ids": ids}).Want(200).Map()
		if m["affected"] != 2.0 || m["action"] != s[0] || id("a") == "" || r.value("select state from release where external_release_id = 'b'") != s[1] {
			t.Errorf("%s: %v", s[0], m)
		}
	}
	if m := foreign.Do("POST", base+"/releases/bulk", object{"action": "delete", "ids": ids}).Want(200).Map(); m["affected"] != 0.0 {
		t.Errorf("another tenant: %v", m)
	}
	c.Do("POST", base+"/releases/bulk", object{"action": "burn", "ids": ids}).Want(400)
	c.Do("POST", base+"/releases/bulk", object{"action": "delete", "ids": []string{}}).Want(400)
	foreign.Do("DELETE", at, nil).Want(404)
	c.Do("DELETE", at, nil).Want(204)
	c.Do("DELETE", at, nil).Want(404)
	if m := c.Do("POST", base+"/releases/bulk", object{"action": "delete", "ids": ids}).Want(200).Map(); m["affected"] != 1.0 || list("/releases?state=all") != "c of 1" {
		t.Errorf("%v", m)
	}
}

func TestSources(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, reader, foreign := r.User(t, "one", "admin"), r.User(t, "one", "reader"), r.User(t, "two", "admin")
	sources := base + "/release-sources"
	at := sources + "/" + r.source.String()
	reader.Do("GET", sources, nil).Want(403)
	one := func() object { return c.Do("GET", sources, nil).Want(200).Map()["data"].([]any)[0].(object) }
	if m := one(); m["pluginId"] != "watcher" || m["sourceKey"] != "feed" || m["effectiveCronSchedule"] != "0 0 * * *" || m["cronSchedule"] != nil || m["config"] != nil {
		t.Errorf("%v", m)
	}
	r.DB.Exec(t, "insert into setting (tenant_id, key, value) values ($1, 'release_tracking.default_cron_schedule', '0 5 * * *')", r.One)
	if m := one(); m["effectiveCronSchedule"] != "0 5 * * *" {
		t.Errorf("%v", m)
	}
	if m := c.Do("PATCH", at, object{"cronSchedule": "*/5 * * * *", "displayName": "Mine"}).Want(200).Map(); m["effectiveCronSchedule"] != "*/5 * * * *" || m["displayName"] != "Mine" || m["enabled"] != true {
		t.Errorf("%v", m)
	}
	c.Do("PATCH", at, object{"cronSchedule": "often"}).Want(400)
	c.Do("PATCH", at, object{"displayName": " "}).Want(400)
	foreign.Do("PATCH", at, object{"enabled": false}).Want(404)
	if m := c.Do("PATCH", at, object{"cronSchedule": nil}).Want(200).Map(); m["cronSchedule"] != nil {
		t.Errorf("%v", m)
	}
	m := c.Do("POST", at+"/poll-now", nil).Want(200).Map()
	if m["status"] != "enqueued" {
		t.Errorf("%v", m)
	}
	if again := c.Do("POST", at+"/poll-now", nil).Want(200).Map(); again["status"] != "already_running" || again["taskId"] != m["taskId"] {
		t.Errorf("%v", again)
	}
	if got := r.value("select type || (params ->> 'sourceId') from task"); got != "poll_release_source"+r.source.String() {
		t.Error(got)
	}
	r.DB.Exec(t, "insert into release_source (tenant_id, id, plugin_id, name, display_name, kind) values ($1, gen_random_uuid(), $2, 'second', 'Second', 'api-feed')", r.One, r.plugin)
	if m := c.Do("POST", sources+"/poll-now-all", nil).Want(200).Map(); fmt.Sprint(m["considered"], m["enqueued"], m["coalesced"], m["failed"]) != "2 1 1 0" {
		t.Errorf("%v", m)
	}
	foreign.Do("POST", at+"/poll-now", nil).Want(404)
	c.Do("PATCH", at, object{"enabled": false}).Want(200)
	c.Do("POST", at+"/poll-now", nil).Want(409)

	r.DB.Exec(t, "insert into series_tracking (tenant_id, series_id, tracked) values ($1, $2, true)", r.One, r.series)
	r.DB.Exec(t, "update release_source set enabled = true, etag = 'x'")
	r.record(r.candidate("a", nil), r.candidate("b", nil))
	foreign.Do("POST", at+"/reset", nil).Want(404)
	if m := c.Do("POST", at+"/reset", nil).Want(200).Map(); m["deletedLedgerEntries"] != 2.0 || r.value("select etag || last_polled_at from release_source where name = 'feed'") != "" {
		t.Errorf("%v", m)
	}
	r.record(r.candidate("a", nil))
	if m := c.Do("POST", sources+"/reset-all", nil).Want(200).Map(); fmt.Sprint(m["considered"], m["reset"], m["failed"], m["deletedLedgerEntries"]) != "2 2 0 1" {
		t.Errorf("%v", m)
	}
	applicable := func(query string) string {
		m := reader.Do("GET", sources+"/applicability"+query, nil).Want(200).Map()
		return fmt.Sprint(m["applicable"], m["pluginDisplayNames"])
	}
	if got := applicable("") + applicable("?libraryId="+r.library.String()); got != "true [The Watcher]true [The Watcher]" {
		t.Error(got)
	}
	reader.Do("GET", sources+"/applicability?libraryId="+uuid.NewString(), nil).Want(404)
	r.DB.Exec(t, "update plugin set library_ids = array[gen_random_uuid()]")
	if got := applicable("") + applicable("?libraryId="+r.library.String()); got != "true [The Watcher]false []" {
		t.Error(got)
	}
	r.DB.Exec(t, `update plugin set library_ids = '{}', manifest = '{"capabilities":{"releaseSource":false}}'`)
	if got := applicable(""); got != "false []" {
		t.Error(got)
	}
	r.DB.Exec(t, "delete from plugin")
	if got := r.value("select count(*) from release_source"); got != "0" {
		t.Errorf("%s sources of no plugin", got)
	}
}

func TestSourcesThatPluginsName(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	name := func(all ...release.Named) {
		t.Helper()
		p, err := release.Begin(r.In(r.One), r.DB.App, r.source)
		if err != nil {
			t.Fatal(err)
		}
		var raw []json.RawMessage
		for _, n := range all {
			data, err := json.Marshal(n)
			if err != nil {
				t.Fatal(err)
			}
			raw = append(raw, data)
		}
		in := &release.Result{}
		in.Take(&plug.Changes{Releases: &plug.ReleaseChanges{Sources: append(raw, json.RawMessage(`"no source"`))}})
		if _, err := p.Record(r.In(r.One), r.DB.App, r.publish, in); err != nil {
			t.Fatal(err)
		}
	}
	name(release.Named{SourceKey: "feed", DisplayName: "Theirs", Kind: "rss-series", Config: json.RawMessage(`{"a":"b\u0000"}`)}, release.Named{SourceKey: "new", Kind: "api-feed"},
		release.Named{SourceKey: "new", Kind: "api-feed"}, release.Named{SourceKey: "odd", Kind: "smell"})
	if got := r.value("select string_agg(concat_ws(' ', name, display_name, kind, config), ',' order by name) from release_source"); got != `feed Feed rss-series {"a": "b"},new The Watcher api-feed` {
		t.Error(got)
	}
	if got := r.value("select id from release_source where name = 'feed'"); got != r.source.String() {
		t.Error("the source is another one")
	}
	p, err := release.Begin(r.In(r.One), r.DB.App, r.source)
	if err != nil {
		t.Fatal(err)
	}
	name(release.Named{SourceKey: "new", Kind: "api-feed"})
	if _, err := p.Record(r.In(r.One), r.DB.App, r.publish, &release.Result{}); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("a source that is gone: %v", err)
	}
}

func TestWhatAPluginIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := r.add("Other")
	r.DB.Exec(t, "insert into series_tracking (tenant_id, series_id, tracked, latest_volume, latest_chapter) values ($1, $2, true, 2, 99), ($1, $3, true, null, null)", r.One, r.series, other)
	r.DB.Exec(t, "insert into alternate_title (tenant_id, id, series_id, label, title) values ($1, gen_random_uuid(), $2, 'ja', '荒涼館')", r.One, r.series)
	r.DB.Exec(t, "insert into series_alias (tenant_id, id, series_id, alias, normalized, source) values ($1, gen_random_uuid(), $2, 'BH', 'bh', 'manual')", r.One, r.series)
	r.DB.Exec(t, `insert into external_id (tenant_id, id, series_id, source, external_id) values ($1, gen_random_uuid(), $2, 'plugin:anilist', '7'), ($1, gen_random_uuid(), $2, 'api:anilist', '6'),
		($1, gen_random_uuid(), $2, 'other', '8'), ($1, gen_random_uuid(), $3, 'api:anilist', '9')`, r.One, r.series, other)
	r.record(r.candidate("a", nil))
	known := func() *plug.Releases {
		t.Helper()
		p, err := release.Begin(r.In(r.One), r.DB.App, r.source)
		if err != nil {
			t.Fatal(err)
		}
		out, err := p.Known(r.In(r.One), r.DB.App)
		if err != nil {
			t.Fatal(err)
		}
		return out.Releases
	}
	got := known()
	i := slices.IndexFunc(got.Tracked, func(s plug.Tracked) bool { return s.SeriesID == r.series.String() })
	if len(got.Tracked) != 2 || i < 0 || got.Source != r.source.String() || len(got.Recorded) != 1 || got.Recorded[plug.Key("a")] == "" || !slices.Equal(got.Sources, []string{"feed"}) {
		t.Fatalf("%+v", got)
	}
	r.record(r.candidate("b", object{"infoHash": "ABC"}))
	_, torrent := plug.TorrentOf(r.candidate("c", object{"infoHash": "abc"}))
	if all := known().Torrents; len(all) != 1 || all[torrent] != r.value("select id::text from release where info = 'abc'") {
		t.Errorf("torrents: %v", all)
	}
	r.DB.Exec(t, `with gone as (insert into release_source (tenant_id, id, name, display_name, kind) values ($1, gen_random_uuid(), 'gone', 'Gone', 'api-feed') returning id)
		update release set source_id = gone.id from gone where info = 'abc'`, r.One)
	if all := known().Torrents; len(all) != 0 {
		t.Errorf("what a source has announced that has gone keeps others out: %v", all)
	}
	r.DB.Exec(t, "delete from release where info = 'abc'")
	s := got.Tracked[i]
	slices.Sort(s.Aliases)
	if fmt.Sprint(s.Aliases, s.ExternalIDs, *s.LatestKnownVolume, *s.LatestKnownChapter) != "[BH Bleak House 荒涼館] map[anilist:7] 3 99" {
		t.Errorf("%+v", s)
	}
	if id := got.Tracked[1-i].ExternalIDs["anilist"]; id != "9" {
		t.Errorf("the id that a metadata plugin gave is %q", id)
	}
	r.DB.Exec(t, `update plugin set manifest = '{"capabilities":{"releaseSource":true}}'`)
	if s := known().Tracked[i]; s.Aliases != nil || s.ExternalIDs != nil {
		t.Errorf("%+v", s)
	}
	// Long release names and many required ids do not prevent a poll.
	r.DB.Exec(t, `insert into release (tenant_id, id, source_id, series_id, external_release_id, payload_url, confidence, state, observed_at)
		select $1, gen_random_uuid(), $2, $3, n || repeat('<', 490), 'https://example.org', 1, 'announced', now() from generate_series(1, 2000) n`, r.One, r.source, r.series)
	var ids []string
	for n := range 100 {
		ids = append(ids, fmt.Sprint(n))
	}
	manifest, err := json.Marshal(object{"capabilities": object{"releaseSource": object{"requiresExternalIds": append(ids, "anilist")}}})
	if err != nil {
		t.Fatal(err)
	}
	r.DB.Exec(t, "update plugin set manifest = $1", string(manifest))
	much := known()
	if data, err := json.Marshal(much); err != nil || len(data) > 2<<20 || len(much.Recorded) < 300 || much.Tracked[i].ExternalIDs != nil {
		t.Errorf("%d bytes, %d releases, %v", len(data), len(much.Recorded), err)
	}
	r.DB.Exec(t, "delete from release where external_release_id <> 'a'")
	r.DB.Exec(t, `update plugin set manifest = '{"capabilities":{"releaseSource":true}}'`)
	// A series with a daily interval is not sent again on the same day.
	r.DB.Exec(t, "update series_tracking set updated_at = now() - interval '3 days'")
	r.DB.Exec(t, "update series_tracking set poll_interval = 86400 where series_id = $1", r.series)
	for at, want := range map[string]int{"date_trunc('day', now(), 'UTC')": 1, "date_trunc('day', now(), 'UTC') - interval '1 second'": 2} {
		r.DB.Exec(t, "update release_source set covered_at = "+at)
		if got := known(); len(got.Tracked) != want {
			t.Errorf("%s: %d series", at, len(got.Tracked))
		}
	}
}

// Several polls share the series that are too many for one: each of these gets the whole feed, and sends none twice.
func TestSeriesOfSeveralPolls(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.DB.Exec(t, `insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
		select $1, gen_random_uuid(), $2, n, n, n, n, n from (select n::text from generate_series(1, 60) n) x`, r.One, r.library)
	r.DB.Exec(t, "insert into series_tracking (tenant_id, series_id, tracked) select tenant_id, id, true from series")
	r.DB.Exec(t, `insert into series_alias (tenant_id, id, series_id, alias, normalized, source)
		select tenant_id, gen_random_uuid(), series_id, n || repeat('x', 200), n, 'manual' from series_tracking, generate_series(1, 300) n`)
	meanwhile := func() {}
	// poll returns the series that it sends. The plugin responds with an ETag, or fails.
	poll := func(fails bool) (ids []string, sent bool) {
		t.Helper()
		p, err := release.Begin(r.In(r.One), r.DB.App, r.source)
		if err != nil {
			t.Fatal(err)
		}
		known, err := p.Known(r.In(r.One), r.DB.App)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range known.Releases.Tracked {
			ids = append(ids, s.SeriesID)
		}
		fresh, why := "fresh", "no network"
		_, sent = p.Params()["etag"]
		if sent != (known.Releases.ETag != nil) {
			t.Errorf("in the request: %v, on demand: %v", sent, known.Releases.ETag)
		}
		result := &release.Result{ETag: &fresh}
		if fails {
			result.Failed = &why
		}
		meanwhile()
		if _, err := p.Record(r.In(r.One), r.DB.App, r.publish, result); err != nil {
			t.Fatal(err)
		}
		return ids, sent
	}
	for _, interval := range []string{"null", "31536000"} {
		r.DB.Exec(t, "update release_source set etag = 'old', covered_at = null, round_at = null, resume_after = null")
		r.DB.Exec(t, "update series_tracking set poll_interval = "+interval)
		before, asked := r.value("select clock_timestamp()::text"), ""
		meanwhile = func() { asked = r.value("select clock_timestamp()::text") }
		first, sentFirst := poll(false)
		meanwhile = func() {}
		failed, sentFailed := poll(true)
		second, sentSecond := poll(false)
		if len(first) < 40 || len(first)+len(second) != 61 || !slices.Equal(failed, second) || slices.Compare(first[len(first)-1:], second[:1]) >= 0 {
			t.Errorf("%s: %d and %d series", interval, len(first), len(second))
		}
		if etag := r.value("select etag from release_source"); sentFirst || sentFailed || sentSecond || etag != "old" {
			t.Errorf("%s: the ETag was sent: %v, %v, %v; it is %s", interval, sentFirst, sentFailed, sentSecond, etag)
		}
		if covered := r.value("select covered_at::text from release_source"); r.value("select ('"+covered+"'::timestamptz between '"+before+"' and '"+asked+"')::text") != "true" {
			t.Errorf("%s: all are covered as of %s, the first poll asked which are due between %s and %s", interval, covered, before, asked)
		}
		if next, _ := poll(false); interval == "null" && !slices.Equal(next, first) || interval != "null" && len(next) > 0 {
			t.Errorf("%s: %d series in the next round", interval, len(next))
		}
	}
	r.DB.Exec(t, "update series_tracking set poll_interval = null")
	r.DB.Exec(t, "update release_source set covered_at = null, round_at = null, resume_after = null")
	poll(false)
	meanwhile = func() {
		r.DB.Exec(t, "update release_source set covered_at = null, round_at = null, resume_after = null")
	} // a reset
	poll(false)
	if got := r.value("select concat_ws(' ', covered_at, round_at, resume_after) from release_source"); got != "" {
		t.Errorf("a source that is reset during its last poll has %q", got)
	}
	meanwhile = func() {}
	r.DB.Exec(t, "delete from series_alias")
	r.DB.Exec(t, "update release_source set resume_after = null, etag = 'old'")
	if all, sent := poll(false); len(all) != 61 || !sent || r.value("select etag from release_source") != "fresh" {
		t.Errorf("with few aliases: %d series, ETag sent: %v", len(all), sent)
	}
}

func TestPollsAreDue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	due := func(at time.Time) int {
		t.Helper()
		var mu sync.Mutex
		var schedulers sync.WaitGroup
		started := 0
		for range 3 {
			schedulers.Go(func() {
				n, err := release.Due(context.Background(), r.DB.System, at)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				started += n
			})
		}
		schedulers.Wait()
		r.DB.Exec(t, "update task set status = 'completed', completed_at = now()")
		return started
	}
	day := 24 * time.Hour
	steps := []struct {
		what, sql string
		at        time.Time
		want      int
	}{
		{"first met", "", now, 0},
		{"not yet", "", now.Add(11 * time.Hour), 0},
		{"midnight", "", now.Add(12 * time.Hour), 1},
		{"the same again", "", now.Add(12 * time.Hour), 0},
		{"another setting", "insert into setting (tenant_id, key, value) select id, 'release_tracking.default_cron_schedule', '0 6 * * *' from tenant", now.Add(day), 0},
		{"its time", "", now.Add(day + 18*time.Hour), 1},
		{"another zone", "insert into setting (tenant_id, key, value) select id, 'scheduler.timezone', 'Asia/Tokyo' from tenant", now.Add(2 * day), 0},
		{"its time there", "", now.Add(2*day + 9*time.Hour), 1}, // six in Tokyo
		{"a schedule of its own", "update release_source set cron_schedule = '* * * * *'", now.Add(3 * day), 0},
		{"a minute later", "", now.Add(3*day + time.Minute), 1},
		{"disabled", "update release_source set enabled = false", now.Add(4 * day), 0},
		{"enabled", "update release_source set enabled = true, next_at = null", now.Add(5 * day), 0},
		{"of a plugin that is disabled", "update plugin set enabled = false", now.Add(6 * day), 0},
		{"enabled again", "update plugin set enabled = true", now.Add(6*day + time.Minute), 1},
		{"of a tenant that is suspended", "update tenant set status = 'suspended'", now.Add(6*day + 2*time.Minute), 0},
		{"and goes on", "update tenant set status = 'active'", now.Add(6*day + 3*time.Minute), 1},
		{"never", "update release_source set cron_schedule = null", now.Add(7 * day), 0},
		{"never by the setting", "update setting set value = '' where key like 'release%'", now.Add(30 * day), 0},
	}
	for _, s := range steps {
		if s.sql != "" {
			r.DB.Exec(t, s.sql)
		}
		if got := due(s.at); got != s.want {
			t.Errorf("%s: %d polls, want %d", s.what, got, s.want)
		}
	}
}

// A scheduler waits for a running poll: both lock in the same order.
func TestDueWhileItIsPolled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for range 2 {
		if _, err := release.Due(t.Context(), r.DB.System, now); err != nil {
			t.Fatal(err)
		}
		now = now.Add(24 * time.Hour)
	}
	r.DB.LockedInOrder(t, "select from task where type = '"+task.PollReleaseSource+"' for share", "update release_source set last_summary = ''", func() error {
		_, err := release.Due(context.Background(), r.DB.System, now)
		return err
	})
}

func TestSeveralSeriesAreTracked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, reader := r.User(t, "one", "maintainer"), r.User(t, "one", "reader")
	other := r.add("Other")
	r.DB.Exec(t, "insert into alternate_title (tenant_id, id, series_id, label, title) values ($1, gen_random_uuid(), $2, 'ja', '荒涼館'), ($1, gen_random_uuid(), $2, 'en', 'BLEAK HOUSE!')", r.One, r.series)
	r.DB.Exec(t, `insert into alternate_title (tenant_id, id, series_id, label, title) values ($1, gen_random_uuid(), $2, 'long', repeat('x', 1001)),
		($1, gen_random_uuid(), $2, 'large', (select string_agg(chr(19968 + (n * 7919) % 20000), '') from generate_series(1, 900) n))`, r.One, r.series)
	tracker := &release.Tracker{Database: r.DB.App, Publish: r.publish}
	ids := []string{r.series.String(), other.String(), uuid.NewString()}
	reader.Do("POST", base+"/series/bulk/track-for-releases", object{"seriesIds": ids}).Want(403)
	c.Do("POST", base+"/series/bulk/track-for-releases", object{"seriesIds": []string{}}).Want(400)
	run := func(path string) release.Done {
		t.Helper()
		id := c.Do("POST", base+"/series/bulk/"+path, object{"seriesIds": ids}).Want(200).Map()["taskId"].(string)
		h := task.Held{Tenant: r.One, ID: uuid.MustParse(id), Params: json.RawMessage(r.value("select params from task where id = $1", id))}
		out, err := tracker.Track(r.In(r.One), h)
		if err != nil {
			t.Fatal(err)
		}
		return out.(release.Done)
	}
	if got := run("track-for-releases"); got != (release.Done{Series: 2, Aliases: 3}) {
		t.Errorf("%+v", got)
	}
	if h := r.heard(); strings.Count(h, `"fields":["tracking"]`) != 2 || strings.Count(h, `"fields":["aliases"]`) != 2 || !strings.Contains(h, "Tracking series") && !strings.Contains(h, "2 of 2") {
		t.Error(h)
	}
	if got := r.value("select string_agg(normalized || ' ' || source, ',' order by normalized) from series_alias where series_id = $1", r.series); got != "bleak house metadata,荒涼館 metadata" {
		t.Error(got)
	}
	r.DB.Exec(t, "update task set status = 'completed', completed_at = now()")
	if got := run("track-for-releases"); got != (release.Done{}) {
		t.Errorf("again: %+v", got)
	}
	if got := run("untrack-for-releases"); got != (release.Done{Series: 2}) || r.value("select bool_or(tracked) from series_tracking") != "false" {
		t.Errorf("untracked: %+v", got)
	}
	backfill := func(params string) string {
		t.Helper()
		out, err := tracker.Backfill(r.In(r.One), task.Held{Tenant: r.One, Params: json.RawMessage(params)})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(*out.(*release.Done))
	}
	r.DB.Exec(t, "update series_tracking set tracked = true where series_id = $1", r.series)
	for _, params := range []string{`{}`, `{"libraryId":"` + r.library.String() + `"}`, `{"seriesIds":["` + r.series.String() + `"]}`} {
		r.DB.Exec(t, "delete from series_alias")
		if got := backfill(params); got != "{1 2}" {
			t.Errorf("%s: %s", params, got)
		}
	}
	if got := backfill(`{"libraryId":"` + uuid.NewString() + `"}`); got != "{0 0}" {
		t.Error(got)
	}
}

// If a series replaces another, it takes over what belongs to its tracking.
func TestHandedOver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.DB.Exec(t, "insert into series_tracking (tenant_id, series_id, tracked) values ($1, $2, true)", r.One, r.series)
	r.DB.Exec(t, "insert into series_alias (tenant_id, id, series_id, alias, normalized, source) values ($1, gen_random_uuid(), $2, 'BH', 'bh', 'manual')", r.One, r.series)
	r.record(r.candidate("a", object{"infoHash": "x"}), r.candidate("b", nil))
	heir := r.add("Heir")
	if _, err := db.Exec(r.In(r.One), r.DB.App, "select app.hand_releases($1, $2)", r.series, heir); err != nil {
		t.Fatal(err)
	}
	if got := r.value(`select (select count(*) from series_tracking where series_id = $1 and tracked) || ' ' || (select count(*) from series_alias where series_id = $1) || ' ' ||
		(select count(*) from release where series_id = $1)`, heir); got != "1 1 2" {
		t.Error(got)
	}
}

// A user from whom a series is hidden neither sees nor changes its releases.
func TestHiddenSeries(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, admin := r.User(t, "one", "maintainer"), r.User(t, "one", "admin")
	r.DB.Exec(t, "insert into series_tracking (tenant_id, series_id, tracked) values ($1, $2, true)", r.One, r.series)
	r.record(r.candidate("a", nil))
	id := r.value("select id from release")
	tag := uuid.New()
	r.DB.Exec(t, "insert into sharing_tag (tenant_id, id, name) values ($1, $2, 'x')", r.One, tag)
	r.DB.Exec(t, "insert into series_sharing_tag (tenant_id, series_id, sharing_tag_id) values ($1, $2, $3)", r.One, r.series, tag)
	for _, who := range []uuid.UUID{c.ID, admin.ID} {
		r.DB.Exec(t, "insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) values ($1, gen_random_uuid(), $2, $3, 'deny')", r.One, tag, who)
	}
	r.heard()
	for path, body := range map[string]any{"GET /series/{s}/tracking": nil, "PATCH /series/{s}/tracking": object{"tracked": false}, "GET /series/{s}/aliases": nil,
		"POST /series/{s}/aliases": object{"alias": "x"}, "GET /series/{s}/releases": nil, "PATCH /releases/{r}": object{"state": "hidden"}, "DELETE /releases/{r}": nil,
		"POST /releases/{r}/dismiss": nil, "POST /releases/{r}/mark-acquired": nil} {
		method, path, _ := strings.Cut(path, " ")
		c.Do(method, base+strings.NewReplacer("{s}", r.series.String(), "{r}", id).Replace(path), body).Want(404)
	}
	if m := c.Do("GET", base+"/releases?state=all", nil).Want(200).Map(); m["total"] != 0.0 {
		t.Errorf("%v", m)
	}
	if m := c.Do("GET", base+"/releases/facets?state=all", nil).Want(200); strings.Contains(string(m.Body), "Bleak") {
		t.Errorf("%s", m.Body)
	}
	for _, action := range []string{"dismiss", "delete"} {
		if m := c.Do("POST", base+"/releases/bulk", object{"action": action, "ids": []string{id}}).Want(200).Map(); m["affected"] != 0.0 {
			t.Errorf("%s: %v", action, m)
		}
	}
	c.Do("POST", base+"/series/bulk/untrack-for-releases", object{"seriesIds": []string{r.series.String()}}).Want(200)
	if got := r.value("select params ->> 'seriesIds' from task"); got != "[]" {
		t.Error(got)
	}
	admin.Do("POST", base+"/release-sources/"+r.source.String()+"/reset", nil).Want(403)
	if got := r.value("select state from release") + r.value("select tracked from series_tracking"); got != "announcedtrue" || r.heard() != "" {
		t.Error(got)
	}
}

// No query scans the rows of others.
func TestPlans(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me := r.User(t, "one", "reader")
	library, id := r.Crowd(t, r.One, me.ID)
	r.DB.Exec(t, "insert into series_tracking (tenant_id, series_id, tracked) select tenant_id, id, true from series where tenant_id = $1 order by id limit 100", r.One)
	r.DB.Exec(t, `insert into release (tenant_id, id, source_id, series_id, external_release_id, payload_url, confidence, state, observed_at)
		select $1, gen_random_uuid(), $2, series_id, n || series_id::text, 'https://example.org', 1, case when n = 1 then 'announced' else 'ignored' end, now() - n * interval '1 hour'
		from series_tracking, generate_series(1, 100) n`, r.One, r.source)
	r.DB.Exec(t, "vacuum analyze")
	check := func(what, sql string, args ...any) {
		t.Helper()
		tables, plan := r.Scans(t, me, sql, args...)
		if what == "of a series" && strings.Contains(plan, "Sort") {
			t.Errorf("%s sorts all releases for a page: %s", what, plan)
		}
		if slices.ContainsFunc(tables, func(table string) bool { return slices.Contains([]string{"book", "series", "release"}, table) }) {
			t.Errorf("%s reads %v: %s", what, tables, plan)
		}
	}
	check("tracked", release.TrackedSQL, []uuid.UUID{}, nil, true, []string{"anilist"}, nil, 10_001, 3<<20)
	check("subjects", release.SubjectsSQL, []uuid.UUID{id}, []uuid.UUID{}, 0.7)
	for name, f := range map[string]release.Filter{"inbox": {State: "announced"}, "of a series": {State: "all", SeriesID: id.String()}, "of a library": {State: "announced", LibraryID: library.String()}} {
		page, total, args := f.ListSQL()
		check(name, page, append(slices.Clone(args), 50, 0)...)
		check("total "+name, total, args...)
	}
}

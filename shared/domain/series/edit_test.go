package series_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
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

// editable serves series that can be edited, without events.
func editable(t *testing.T) *testkit.Server {
	return testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		series.Routes(a, d, func(context.Context, uuid.UUID, ...events.Event) {}, nil)
	})
}

// line joins values with spaces.
func line(values ...any) string { return strings.TrimSpace(fmt.Sprintln(values...)) }

func locked(m map[string]any) (out []string) {
	for name, on := range m {
		if on == true {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func TestPeopleChangeSeries(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	told, covers := 0, 0
	s := testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		series.Routes(a, d, func(_ context.Context, _ uuid.UUID, e ...events.Event) {
			mu.Lock()
			defer mu.Unlock()
			for _, one := range e {
				switch one.Kind {
				case "series_updated":
					told++
				case "cover_updated":
					covers++
				}
			}
		}, nil)
	})
	me, reader, stranger := s.User(t, "one", "maintainer"), s.User(t, "one", "reader"), s.User(t, "two", "admin")
	id, _ := newSeries(t, s, s.One, newLibrary(t, s, s.One, "comics"), "Folder", 1, 2)
	one := "/api/v1/series/" + id.String()
	exec(t, s, "update series set publisher = 'P', summary = 'S', described = '{publisher,summary}' where id = $1", id)

	if m := me.Do("PATCH", one, `{"title":"  Die Ärzte "}`).Want(200).Map(); line(m["id"] == id.String(), m["title"], m["titleSort"], m["publisher"]) != "true Die Ärzte Die Ärzte P" {
		t.Errorf("%v", m)
	}
	m := me.Do("PATCH", one+"/metadata", `{"title_sort":"Ärzte, Die","publisher":"Q","language":"pt_br","status":"ended","ageRating":16,"totalChapterCount":10.5,
		"authors":[{"name":" A","role":"writer","sortName":" "}],"customMetadata":{"a_b":{"c_d":1}},"year":null}`).Want(200).Map()
	if got := line(m["title"], m["titleSort"], m["publisher"], m["summary"], m["language"], m["status"], m["ageRating"], m["totalChapterCount"], m["year"], m["authors"],
		m["customMetadata"], locked(m["locks"].(map[string]any))); got !=
		"Die Ärzte Ärzte, Die Q S pt-BR ended 16 10.5 <nil> [map[name:A role:writer sortName:<nil>]] map[a_b:map[c_d:1]] [title]" {
		t.Errorf("patched: %s", got)
	}
	if full := reader.Do("GET", one+"/metadata", nil).Want(200).Map(); line(full["seriesId"] == id.String(), full["publisher"], full["genres"], full["alternateTitles"]) != "true Q [] []" {
		t.Errorf("%v", full)
	}
	var described []string
	if err := s.DB.Owner.Pool().QueryRow(t.Context(), "select described from series where id = $1", id).Scan(&described); err != nil || !slices.Equal(described, []string{"summary"}) {
		t.Errorf("described %v, %v", described, err)
	}
	if got := locked(me.Do("PUT", one+"/metadata/locks", `{"summary":true,"authorsJsonLock":true,"title":false,"unknown":true,"page":1,"note":"x"}`).Want(200).Map()); !slices.Equal(got, []string{"authorsJsonLock", "summary"}) {
		t.Errorf("locks %v", got)
	}
	if m := me.Do("PUT", one+"/metadata", `{"summary":"Only"}`).Want(200).Map(); line(m["title"], m["titleSort"], m["summary"], m["publisher"], m["authors"], m["status"]) !=
		"Die Ärzte Die Ärzte Only <nil> <nil> <nil>" {
		t.Errorf("replaced: %v", m)
	}
	exec(t, s, "insert into alternate_title (tenant_id, id, series_id, label, title) values ($1, gen_random_uuid(), $2, 'x', 'y')", s.One, id)
	exec(t, s, `with t as (insert into sharing_tag (tenant_id, id, name) values ($1, gen_random_uuid(), 'adults') returning id)
		insert into series_sharing_tag (tenant_id, series_id, sharing_tag_id) select $1, $2, id from t`, s.One, id)
	m = me.Do("DELETE", one+"/metadata", nil).Want(200).Map()
	if got := line(m["title"], m["titleSort"], m["summary"], m["alternateTitles"], locked(m["locks"].(map[string]any))); got != "Folder Folder <nil> [] []" {
		t.Errorf("reset: %s", got)
	}
	var tags int // a reset must not change who may see it
	if err := s.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from series_sharing_tag where series_id = $1", id).Scan(&tags); err != nil || tags != 1 {
		t.Errorf("%d sharing tags after a reset, %v", tags, err)
	}
	var queued int
	if err := s.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from task where series_id = $1 and type = 'analyze_series'", id).Scan(&queued); err != nil || queued != 1 {
		t.Errorf("%d tasks, %v", queued, err)
	}
	before := m["updatedAt"]
	if m := me.Do("PATCH", one+"/metadata", `{}`).Want(200).Map(); m["updatedAt"] != before {
		t.Errorf("an empty change did something: %v", m)
	}
	mu.Lock()
	if told != 4 || covers != 1 { // the reset clears the chosen cover
		t.Errorf("%d events, %d of covers", told, covers)
	}
	mu.Unlock()
	for body, at := range map[string]string{`{"title":null}`: "title", `{"title":" "}`: "title", `{"title":"\ufeff"}`: "title", `{"titleSort":"\u200e"}`: "titleSort", `{"language":"klingonish"}`: "language", `{"status":"paused"}`: "status",
		`{"readingDirection":"up"}`: "readingDirection", `{"year":0}`: "year", `{"customMetadata":"x"}`: "customMetadata", `{"authors":[{"role":"writer"}]}`: "authors", `{"summary":"a\u0000"}`: "summary",
		`{"authors":[{"name":" "}]}`: "authors[0].name", `{"authors":[{"name":"a","sortName":"\u202e"}]}`: "authors[0].sortName",
		`{"customMetadata":{"a":1e-20000}}`: "number 1e-20000, which is out of range", `{"customMetadata":{"a":1e2000}}`: "number 1e2000, which is out of range"} {
		if text := string(me.Do("PATCH", one+"/metadata", body).Want(400).Body); !strings.Contains(text, at) {
			t.Errorf("%s: %s does not name %s", body, text, at)
		}
	}
	for _, c := range []struct{ method, path string }{{"PATCH", one}, {"PATCH", one + "/metadata"}, {"PUT", one + "/metadata"}, {"DELETE", one + "/metadata"}, {"PUT", one + "/metadata/locks"}} {
		var body any = `{}`
		if c.method == "DELETE" {
			body = nil
		}
		reader.Do(c.method, c.path, body).Want(403)
		s.Anonymous(t, "one").Do(c.method, c.path, body).Want(401)
		stranger.Do(c.method, c.path, body).Want(404)
	}
	for _, path := range []string{"/metadata", "/metadata/locks"} {
		stranger.Do("GET", one+path, nil).Want(404)
	}
}

func TestLockedSortTitleIsCleared(t *testing.T) {
	t.Parallel()
	s := editable(t)
	me := s.User(t, "one", "maintainer")
	id, _ := newSeries(t, s, s.One, newLibrary(t, s, s.One, "comics"), "Folder", 1, 1)
	at := "/api/v1/series/" + id.String() + "/metadata"
	me.Do("PUT", at+"/locks", `{"titleSort":true}`).Want(200)
	for _, c := range []struct{ method, body, want string }{
		{"PATCH", `{"titleSort":"Z"}`, "Z"}, {"PATCH", `{"titleSort":null}`, "Folder"},
		{"PATCH", `{"titleSort":"Z"}`, "Z"}, {"PUT", `{"summary":"S"}`, "Folder"},
		{"PATCH", `{"title":"Another"}`, "Folder"}, {"PATCH", `{"title":"A","titleSort":null}`, "A"},
	} {
		if m := me.Do(c.method, at, c.body).Want(200).Map(); m["titleSort"] != c.want {
			t.Errorf("%s %s: %v", c.method, c.body, m["titleSort"])
		}
	}
}

func TestLookingAtLocksWritesNothing(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		series.Routes(a, d, nil, nil)
	})
	id, _ := newSeries(t, s, s.One, newLibrary(t, s, s.One, "comics"), "Folder", 1, 1)
	version := func() (v string) {
		if err := s.DB.Owner.Pool().QueryRow(t.Context(), "select xmin::text || ctid::text from series where id = $1", id).Scan(&v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	before := version()
	s.User(t, "one", "reader").Do("GET", "/api/v1/series/"+id.String()+"/metadata/locks", nil).Want(200)
	if after := version(); after != before {
		t.Errorf("looking wrote the row: %s, then %s", before, after)
	}
}

// An index entry is limited to 2,700 bytes, which fewer than a thousand incompressible characters can exceed.
func TestTitleThatNoIndexHolds(t *testing.T) {
	t.Parallel()
	s := editable(t)
	library := newLibrary(t, s, s.One, "L")
	id, _ := newSeries(t, s, s.One, library, "A", 1, 1)
	title, random := make([]rune, 1000), rand.New(rand.NewPCG(1, 2))
	for i := range title {
		title[i] = '一' + random.Int32N(20_000)
	}
	who := s.User(t, "one", "admin")
	who.Do("PATCH", "/api/v1/series/"+id.String(), map[string]any{"title": string(title)}).Want(400)
	who.Do("PATCH", "/api/v1/series/"+id.String(), map[string]any{"title": string(title[:800])}).Want(200)
}

// A reset series is as at its creation: folders take precedence over books.
func TestResetSeriesIsAsItsFoldersSay(t *testing.T) {
	t.Parallel()
	s := editable(t)
	me := s.User(t, "one", "maintainer")
	var all, wants []string
	for i, c := range []struct{ strategy, config, key, want string }{
		{"series_volume", "null", "DC/Batman  (2011)/1.cbz", "Batman <nil> <nil> <nil> <nil>"},
		{"publisher_hierarchy", "null", "DC/Batman (2011)/1.cbz", "Batman DC <nil> <nil> <nil>"},
		{"publisher_hierarchy", `{"storeSkippedAs": "imprint"}`, "DC/Batman (2011)/1.cbz", "Batman <nil> DC <nil> <nil>"},
		{"publisher_hierarchy", `{"storeSkippedAs": "shelf"}`, "DC/Batman (2011)/1.cbz", "Batman <nil> <nil> <nil> map[shelf:DC]"},
		{"calibre", "null", "Ann Author/Batman (2011)/1.epub", "Batman <nil> <nil> [map[name:Ann Author role:writer sortName:<nil>]] <nil>"},
		{"custom", `{"pattern": "^(?P<publisher>[^/]+)/(?P<series>[^/]+)/"}`, "DC/Batman (2011)/1.cbz", "Batman DC <nil> <nil> <nil>"},
	} {
		library := newLibrary(t, s, s.One, fmt.Sprint("library ", i))
		exec(t, s, `update library set series_strategy = $2, series_config = nullif($3, 'null')::jsonb,
			title_preprocessing_rules = '[{"pattern": "\\s*\\(\\d+\\)$", "replacement": "", "enabled": true}]' where id = $1`, library, c.strategy, c.config)
		id, books := newSeries(t, s, s.One, library, fmt.Sprint("series ", i), 1, 2)
		exec(t, s, "update series set name = 'Batman  (2011)', publisher = 'Mine', imprint = 'Mine', authors = '[]', custom_metadata = '{}' where id = $1", id)
		exec(t, s, "update book set key = $2 where id = $1", books[1], c.key)
		exec(t, s, "update book set key = 'Z/Z/gone.cbz', deleted_at = now() where id = $1", books[0])
		m := me.Do("DELETE", "/api/v1/series/"+id.String()+"/metadata", nil).Want(200).Map()
		all = append(all, id.String())
		wants = append(wants, c.want)
		if got := line(m["title"], m["publisher"], m["imprint"], m["authors"], m["customMetadata"]); got != c.want || m["titleSort"] != "Batman" {
			t.Errorf("%s %s: %s sorted as %v, want %s", c.strategy, c.config, got, m["titleSort"], c.want)
		}
	}
	me.Do("DELETE", "/api/v1/series/"+uuid.NewString()+"/metadata", nil).Want(404)

	// Several at once have the same result.
	const several = "/api/v1/series/bulk/metadata/reset"
	other, stranger, reader := newLibrary(t, s, s.One, "other"), s.User(t, "two", "admin"), s.User(t, "one", "reader")
	kept, _ := newSeries(t, s, s.One, other, "Kept", 1, 1)
	exec(t, s, "update series set title = 'Mine', publisher = 'Mine', imprint = 'Mine', authors = '[]', custom_metadata = '{}', summary = 's', locks = '{title}', cover_source = 'first_book'")
	exec(t, s, "delete from task")
	ids := map[string]any{"seriesIds": append(all, uuid.NewString(), all[0])}
	if m := stranger.Do("POST", several, ids).Want(200).Map(); m["count"] != 0.0 {
		t.Errorf("another tenant: %v", m)
	}
	reader.Do("POST", several, ids).Want(403)
	me.Do("POST", several, map[string]any{"seriesIds": strings.Split(strings.Repeat(all[0]+" ", 100)+all[0], " ")}).Want(400)
	me.Do("POST", several, `{}`).Want(400)
	if m := me.Do("POST", several, ids).Want(200).Map(); m["count"] != float64(len(all)) || m["message"] != fmt.Sprint(len(all), " series were reset") {
		t.Errorf("reset: %v", m)
	}
	for i, id := range all {
		m := me.Do("GET", "/api/v1/series/"+id+"/metadata", nil).Want(200).Map()
		if got := line(m["title"], m["publisher"], m["imprint"], m["authors"], m["customMetadata"]); got != wants[i] || m["titleSort"] != "Batman" || m["summary"] != nil || len(locked(m["locks"].(map[string]any))) > 0 {
			t.Errorf("several, the %dth: %s, want %s", i, got, wants[i])
		}
	}
	if m := me.Do("GET", "/api/v1/series/"+kept.String()+"/metadata", nil).Want(200).Map(); m["title"] != "Mine" {
		t.Errorf("another: %v", m)
	}
	var tasks int
	if err := s.DB.Owner.Pool().QueryRow(t.Context(), "select count(distinct series_id) from task where type = 'analyze_series' and status = 'pending'").Scan(&tasks); err != nil || tasks != len(all) {
		t.Errorf("%d tasks, %v", tasks, err)
	}
}

func TestSeriesAreSortedBySingleSpaces(t *testing.T) {
	t.Parallel()
	s := editable(t)
	me, library := s.User(t, "one", "maintainer"), newLibrary(t, s, s.One, "comics")
	newSeries(t, s, s.One, library, "A B", 1, 1)
	id, _ := newSeries(t, s, s.One, library, "Folder", 2, 1)
	for _, c := range []struct{ path, body, want string }{
		{"", `{"title":"A  Z"}`, "A B,A  Z"}, {"/metadata", `{"titleSort":"0"}`, "A  Z,A B"}, {"/metadata", `{"titleSort":null}`, "A B,A  Z"},
		{"/metadata", `{"title":"A  Y","titleSort":null}`, "A B,A  Y"},
	} {
		me.Do("PATCH", "/api/v1/series/"+id.String()+c.path, c.body).Want(200)
		if got, _ := titles(t, me.Do("GET", "/api/v1/series", nil)); got != c.want {
			t.Errorf("%s: %s, want %s", c.body, got, c.want)
		}
	}
}

// Books named after their series (series_name) are renamed with it.
func TestRenamedSeriesRenamesItsBooks(t *testing.T) {
	t.Parallel()
	s := editable(t)
	me, library := s.User(t, "one", "maintainer"), newLibrary(t, s, s.One, "comics")
	id, _ := newSeries(t, s, s.One, library, "A", 1, 2)
	for i, c := range []struct {
		strategy, path, body string
		tasks                int // in total
	}{{"filename", "", `{"title":"B"}`, 0}, {"series_name", "", `{"title":"B"}`, 0}, {"series_name", "", `{"title":"C"}`, 1},
		{"series_name", "/metadata", `{"summary":"S"}`, 1}, {"series_name", "/metadata", `{"title":"D"}`, 2}} {
		exec(t, s, "update library set book_strategy = $1", c.strategy)
		me.Do("PATCH", "/api/v1/series/"+id.String()+c.path, c.body).Want(200)
		var n int
		if err := s.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from task where type = 'renumber_series' and series_id = $1", id).Scan(&n); err != nil || n != c.tasks {
			t.Errorf("%d %s: %d tasks, want %d; %v", i, c.body, n, c.tasks, err)
		}
	}
}

// Search text is normalized to NFC, as scans store titles.
func TestTypedTitlesAreComposed(t *testing.T) {
	t.Parallel()
	s := editable(t)
	me := s.User(t, "one", "maintainer")
	id, _ := newSeries(t, s, s.One, newLibrary(t, s, s.One, "comics"), "A", 1, 1)
	me.Do("PATCH", "/api/v1/series/"+id.String(), `{"title":"A\u0308rger"}`).Want(200)
	if got, _ := titles(t, me.Do("POST", "/api/v1/series/list", `{"condition":{"title":{"operator":"is","value":"Ärger"}}}`)); got != "Ärger" {
		t.Errorf("found %q", got)
	}
}

// A client may send back the whole record that it received: the sort title still derives from the title.
func TestRecordSentBackIsTheSame(t *testing.T) {
	t.Parallel()
	s := editable(t)
	me := s.User(t, "one", "maintainer")
	id, _ := newSeries(t, s, s.One, newLibrary(t, s, s.One, "comics"), "A", 1, 1)
	one := "/api/v1/series/" + id.String()
	exec(t, s, `update series set title = 'A  B', title_sort = 'A B', authors = '[{"name": "N", "role": "writer"}]', custom_metadata = '{"a_b": 1}', status = 'ended' where id = $1`, id)
	for _, method := range []string{"PUT", "PATCH"} {
		before := me.Do("GET", one+"/metadata", nil).Want(200).Map()
		after := me.Do(method, one+"/metadata", before).Want(200).Map()
		for name, now := range after {
			if was := before[name]; name != "id" && name != "locks" && name != "updatedAt" && line(now) != line(was) {
				t.Errorf("%s: %s is %v, was %v", method, name, now, was)
			}
		}
	}
	for _, c := range [][2]string{{`{"title":"C"}`, "C"}, {`{"title":"D","titleSort":"C"}`, "C"}, {`{"title":"E"}`, "C"}, {`{"title":"F","titleSort":"F"}`, "F"}, {`{"title":"G"}`, "G"}} {
		if m := me.Do("PATCH", one+"/metadata", c[0]).Want(200).Map(); m["titleSort"] != c[1] {
			t.Errorf("%s is sorted as %v, want %s", c[0], m["titleSort"], c[1])
		}
	}
}

// A running analysis has written metadata of the books to the series that the reset cleared.
func TestResetDoesNotCountOnAnAnalysisUnderWay(t *testing.T) {
	t.Parallel()
	s := editable(t)
	me := s.User(t, "one", "maintainer")
	id, _ := newSeries(t, s, s.One, newLibrary(t, s, s.One, "comics"), "A", 1, 1)
	one := "/api/v1/series/" + id.String()
	me.Do("POST", one+"/analyze", nil).Want(200)
	exec(t, s, "update task set status = 'running'")
	me.Do("DELETE", one+"/metadata", nil).Want(200)
	var waiting int
	if err := s.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from task where series_id = $1 and type = 'analyze_series' and status = 'pending'", id).Scan(&waiting); err != nil || waiting != 1 {
		t.Errorf("%d tasks wait, %v", waiting, err)
	}
}

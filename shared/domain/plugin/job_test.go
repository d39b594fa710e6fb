package plugin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/plugin"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/testkit"
)

// another adds a series with one book to a library, with the plugin's ids of the series and the book, "" for none.
func (r *rig) another(library uuid.UUID, title, id, bookID string) (series, book uuid.UUID) {
	r.t.Helper()
	series, book = uuid.New(), uuid.New()
	r.DB.Exec(r.t, `insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) values ($1, $2, $3, $4, $4, $4, $4, lower($4))`, r.One, series, library, title)
	r.DB.Exec(r.t, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title)
		values ($1, $2, $3, $4, $5 || '.cbz', 10, now(), 'cbz', $5, $5, $5)`, r.One, book, library, series, title)
	for _, x := range []struct {
		of    string
		owner uuid.UUID
		id    string
	}{{"series_id", series, id}, {"book_id", book, bookID}} {
		if x.id != "" {
			r.DB.Exec(r.t, "insert into external_id (tenant_id, id, "+x.of+", source, external_id) values ($1, gen_random_uuid(), $2, 'plugin:test', $3)", r.One, x.owner, x.id)
		}
	}
	return series, book
}

// job adds a job with a config to a library, and returns its path.
func (r *rig) job(c *testkit.Client, library uuid.UUID, config object) string {
	r.t.Helper()
	whole := object{"type": "metadata_refresh", "provider": "test"}
	for k, v := range config {
		whole[k] = v
	}
	at := base + "/libraries/" + library.String() + "/jobs"
	return at + "/" + c.Do("POST", at, object{"cronSchedule": "0 3 * * *", "config": whole}).Want(201).Map()["id"].(string)
}

// start starts a job, and returns the task as a worker holds it.
func (r *rig) start(c *testkit.Client, job string) task.Held {
	r.t.Helper()
	h := task.Held{Tenant: r.One, Type: task.RefreshLibrary, Allowed: 3, Attempts: 1}
	h.ID = uuid.MustParse(c.Do("POST", job+"/run-now", nil).Want(200).Map()["taskId"].(string))
	r.DB.Exec(r.t, "update task set status = 'running', started_at = now() where id = $1", h.ID)
	return r.again(h)
}

// again returns the task with its current checkpoint.
func (r *rig) again(h task.Held) task.Held {
	r.t.Helper()
	if err := r.DB.Owner.Pool().QueryRow(r.t.Context(), "select params, place from task where id = $1", h.ID).Scan(&h.Params, &h.Place); err != nil {
		r.t.Fatal(err)
	}
	return h
}

// waits reports whether a task continues later.
func waits(err error) bool { return err != nil && strings.Contains(err.Error(), "continues later") }

// counted decodes a result.
func counted(t *testing.T, result any) map[string]int {
	t.Helper()
	data, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]int
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	for k, n := range out {
		if n == 0 {
			delete(out, k)
		}
	}
	return out
}

// Two people add the last job of a library at the same moment: one of them is refused.
func TestLastJobIsAddedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	r.add(c, nil)
	library, _, _ := r.series("A")
	other, err := r.DB.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Rollback(context.WithoutCancel(t.Context())) }()
	for _, sql := range []string{"select from library where id = $1 for no key update",
		`insert into library_job (tenant_id, id, library_id, name, enabled, cron_schedule, config)
			select tenant_id, gen_random_uuid(), id, 'J', true, '0 0 3 * * *', '{"provider":"plugin:test"}' from library, generate_series(1, 20) where id = $1`} {
		if _, err := other.Exec(t.Context(), sql, library); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan *testkit.Response, 1)
	go func() {
		done <- c.Do("POST", base+"/libraries/"+library.String()+"/jobs", object{"name": "K", "cronSchedule": "0 3 * * *", "config": object{"type": "metadata_refresh", "provider": "plugin:test"}})
	}()
	r.DB.AwaitLock(t)
	if err := other.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	(<-done).Want(409)
}

func TestJobsAreKept(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	r.add(c, nil)
	r.add(c, object{"name": "elsewhere", "libraryIds": []string{uuid.NewString()}})
	library, _, _ := r.series("A")
	at := base + "/libraries/" + library.String() + "/jobs"
	config := object{"type": "metadata_refresh", "provider": "plugin:test", "fieldGroups": []string{"ratings"}, "extra_fields": []string{"status"}, "max_concurrency": 2}
	got := c.Do("POST", at, object{"name": " Nightly ", "cron_schedule": "0 3 * * *", "timezone": "Asia/Tokyo", "config": config}).Want(201)
	m := got.Map()
	if m["name"] != "Nightly" || m["enabled"] != true || m["timezone"] != "Asia/Tokyo" || m["libraryId"] != library.String() || m["lastRunAt"] != nil || m["lastRunStatus"] != nil ||
		m["lastRunMessage"] != nil || fmt.Sprint(m["config"]) != "map[bookExtraFields:[] bookFieldGroups:[] existingSourceIdsOnly:false extraFields:[status] fieldGroups:[ratings] maxConcurrency:2"+
		" provider:plugin:test scope:series_only skipRecentlySyncedWithinS:0 type:metadata_refresh]" {
		t.Errorf("%s", got.Body)
	}
	job := at + "/" + m["id"].(string)
	second := r.job(c, library, object{"scope": "series_and_books"})
	if m := c.Do("GET", second, nil).Want(200).Map(); m["name"] != "Metadata of test" || m["config"].(object)["maxConcurrency"] != 4.0 {
		t.Errorf("%v", m)
	}
	if m := c.Do("GET", at+"?pageSize=1", nil).Want(200).Map(); m["total"] != 2.0 || m["data"].([]any)[0].(object)["name"] != "Nightly" {
		t.Errorf("%v", m)
	}
	m = c.Do("PATCH", job, object{"enabled": false, "timezone": nil, "name": nil, "cronSchedule": "0 0 4 * * *", "config": object{"type": "metadata_refresh", "provider": "test"}}).Want(200).Map()
	if m["enabled"] != false || m["timezone"] != nil || m["name"] != "Metadata of test" || m["cronSchedule"] != "0 0 4 * * *" || len(m["config"].(object)["fieldGroups"].([]any)) != 0 {
		t.Errorf("%v", m)
	}
	if m := c.Do("PATCH", job, object{"config": nil, "enabled": nil, "cronSchedule": nil}).Want(200).Map(); m["cronSchedule"] != "0 0 4 * * *" || m["enabled"] != false {
		t.Errorf("%v", m)
	}
	for want, body := range map[string]object{
		"cronSchedule":                     {"cronSchedule": "0 3 * *"},
		"timezone":                         {"timezone": "Mars/Base"},
		"name":                             {"name": "a\x00b"},
		"config.provider":                  {"config": object{"provider": "nobody"}},
		"body.config.type":                 {"config": object{"type": "dance"}},
		"body.config.scope":                {"config": object{"scope": "covers"}},
		"config.fieldGroups[1]":            {"config": object{"fieldGroups": []string{"titles", "nothing"}}},
		"config.extraFields[0]":            {"config": object{"extraFields": []string{"subtitle"}}},
		"config.bookExtraFields[0]":        {"config": object{"bookExtraFields": []string{"status"}}},
		"body.config.maxConcurrency":       {"config": object{"maxConcurrency": 17}},
		"config.maxConcurrency":            {"config": object{"max_concurrency": 17}},
		"config.skipRecentlySyncedWithinS": {"config": object{"skip_recently_synced_within_s": -1}},
	} {
		if given, ok := body["config"].(object); ok {
			for k, v := range map[string]any{"type": "metadata_refresh", "provider": "test"} {
				if given[k] == nil {
					given[k] = v
				}
			}
		}
		if got := c.Do("PATCH", job, body).Want(400); !strings.Contains(string(got.Body), `"`+strings.TrimPrefix(want, "body.")+`"`) {
			t.Errorf("%s: %s", want, got.Body)
		}
		whole := object{"cronSchedule": "0 3 * * *", "config": object{"type": "metadata_refresh", "provider": "test"}}
		for k, v := range body {
			whole[k] = v
		}
		c.Do("POST", at, whole).Want(400)
	}
	for _, config := range []any{5, "x", []int{1}, object{"type": "metadata_refresh", "provider": "test", "field_groups": 5}, object{"type": "metadata_refresh"}, nil} {
		c.Do("POST", at, object{"cronSchedule": "0 3 * * *", "config": config}).Want(400)
	}
	if got := c.Do("POST", at, object{"cronSchedule": "0 3 * * *", "config": object{"type": "metadata_refresh", "provider": "elsewhere"}}).Want(400); !strings.Contains(string(got.Body), "does not serve this library") {
		t.Errorf("%s", got.Body)
	}
	c.Do("PATCH", job, object{"config": object{"type": "metadata_refresh", "provider": "elsewhere"}}).Want(400)
	for range 18 {
		r.job(c, library, nil)
	}
	c.Do("POST", at, object{"cronSchedule": "0 3 * * *", "config": object{"type": "metadata_refresh", "provider": "test"}}).Want(409)

	// Other users, and missing ids.
	theirs, reader := r.User(t, "two", "admin"), r.User(t, "one", "reader")
	nobody, wrong := at+"/"+uuid.NewString(), strings.Replace(job, library.String(), uuid.NewString(), 1)
	for _, path := range []string{nobody, wrong} {
		c.Do("GET", path, nil).Want(404)
	}
	theirs.Do("GET", job, nil).Want(404)
	theirs.Do("GET", at, nil).Want(404)
	for _, call := range []struct {
		method, path string
		body         any
	}{{"PATCH", "", object{"enabled": true}}, {"DELETE", "", nil}, {"POST", "/run-now", nil}, {"POST", "/dry-run", object{}}} {
		for _, path := range []string{nobody, wrong} {
			c.Do(call.method, path+call.path, call.body).Want(404)
		}
		theirs.Do(call.method, job+call.path, call.body).Want(404)
		reader.Do(call.method, job+call.path, call.body).Want(403)
	}
	reader.Do("GET", job, nil).Want(200)
	c.Do("DELETE", job, nil).Want(204)
	c.Do("GET", job, nil).Want(404)
}

// Each field of a preview is in exactly one group, and every group has fields.
func TestFieldGroups(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "reader")
	m := c.Do("GET", base+"/library-jobs/metadata-refresh/field-groups", nil).Want(200).Map()
	var grouped []string
	for _, g := range m["data"].([]any) {
		for _, f := range g.(object)["fields"].([]any) {
			if slices.Contains(grouped, f.(string)) {
				t.Errorf("%s is in two groups", f)
			}
			grouped = append(grouped, f.(string))
		}
	}
	for _, kind := range []string{"series", "book"} {
		for _, f := range plugin.FieldsOf(kind) {
			if !slices.Contains(grouped, f) {
				t.Errorf("%s of a %s is in no group", f, kind)
			}
		}
	}
	for _, f := range grouped {
		if !slices.Contains(plugin.FieldsOf("series"), f) && !slices.Contains(plugin.FieldsOf("book"), f) {
			t.Errorf("there is no field %s", f)
		}
	}
}

func TestJobRefreshesSeries(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	r.add(c, object{"permissions": []string{"metadata:write:year", "metadata:write:status", "metadata:write:summary", "metadata:write:genres"}})
	library, without, _ := r.series("Without")
	known, _ := r.another(library, "Known", "1", "")
	locked, _ := r.another(library, "Locked", "1", "")
	recent, _ := r.another(library, "Recent", "1", "")
	lost, _ := r.another(library, "Lost", "77", "")
	c.Do("PUT", base+"/series/"+locked.String()+"/metadata/locks", object{"year": true, "status": true}).Want(200)
	r.DB.Exec(t, "update external_id set last_synced_at = now() - interval '10 minutes' where series_id = $1", recent)
	job := r.job(c, library, object{"existingSourceIdsOnly": true, "skipRecentlySyncedWithinS": 3600, "fieldGroups": []string{"status"}, "extraFields": []string{"year", "publisher"}})
	h := r.start(c, job)
	c.Do("POST", job+"/run-now", nil).Want(409)
	r.heard()
	got, err := r.runner.Refresh(r.In(r.One), h)
	if err != nil {
		t.Fatal(err)
	}
	if n := counted(t, got); fmt.Sprint(n) != "map[notFound:1 skippedNoId:1 skippedRecentlySynced:1 total:5 unchanged:1 updated:1]" {
		t.Errorf("%v", n)
	}
	if told := r.heard(); strings.Count(told, "series_metadata_updated") != 1 || !strings.Contains(told, "task_progress") {
		t.Errorf("told %s", told)
	}
	m := c.Do("GET", job, nil).Want(200).Map()
	if m["lastRunStatus"] != "completed" || m["lastRunMessage"] != "1 of 5 updated, 1 unchanged, 1 not found, 1 without an id from the plugin, 1 recently synced" || m["lastRunAt"] == nil {
		t.Errorf("%v", m)
	}
	year := func(id uuid.UUID) any {
		return c.Do("GET", base+"/series/"+id.String(), nil).Want(200).Map()["metadata"].(object)["year"]
	}
	s := c.Do("GET", base+"/series/"+known.String(), nil).Want(200).Map()["metadata"].(object)
	if s["year"] != 1999.0 || s["status"] != "ended" || s["summary"] != nil || s["publisher"] != nil || s["title"] != "Known" {
		t.Errorf("%v", s)
	}
	for _, id := range []uuid.UUID{without, locked, recent, lost} {
		if y := year(id); y != nil {
			t.Errorf("%s has the year %v", id, y)
		}
	}
	var synced int
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from external_id where last_synced_at > now() - interval '1 minute' and source = 'plugin:test'").Scan(&synced); err != nil || synced != 2 {
		t.Errorf("%d looked at, %v", synced, err)
	}

	// With matching, and nothing skipped: items whose id the plugin does not know stay as they are.
	r.DB.Exec(t, "update task set status = 'completed'")
	c.Do("PATCH", job, object{"config": object{"type": "metadata_refresh", "provider": "test"}}).Want(200)
	got, err = r.runner.Refresh(r.In(r.One), r.start(c, job))
	if n := counted(t, got); err != nil || fmt.Sprint(n) != "map[notFound:1 total:5 updated:4]" {
		t.Errorf("%v, %v", n, err)
	}
	if year(without) != 1999.0 || year(locked) != nil {
		t.Errorf("years %v, %v", year(without), year(locked))
	}
	// The conditions of matching apply to items without an id.
	r.DB.Exec(t, "update task set status = 'completed'")
	r.DB.Exec(t, "delete from external_id where series_id = $1", without)
	r.DB.Exec(t, `update library set auto_match_conditions = '{"rules":[{"field":"book_count","operator":"gt","value":5}]}'`)
	got, err = r.runner.Refresh(r.In(r.One), r.start(c, job))
	if n := counted(t, got); err != nil || fmt.Sprint(n) != "map[notFound:2 total:5 unchanged:3]" {
		t.Errorf("%v, %v", n, err)
	}
}

func TestJobRefreshesBooks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	r.add(c, nil)
	library, _, plain := r.series("Plain")
	_, known := r.another(library, "Known", "1", "1")
	gone, _ := r.another(library, "Gone", "", "1")
	r.DB.Exec(t, "update book set deleted_at = now() where series_id = $1", gone)
	job := r.job(c, library, object{"scope": "books_only", "existingSourceIdsOnly": true, "bookExtraFields": []string{"subtitle", "externalIds", "externalLinks"}})
	run := func(want string) {
		t.Helper()
		got, err := r.runner.Refresh(r.In(r.One), r.start(c, job))
		if n := counted(t, got); err != nil || fmt.Sprint(n) != want {
			t.Errorf("%v, want %s: %v", n, want, err)
		}
		r.DB.Exec(t, "update task set status = 'completed'")
	}
	run("map[skippedNoId:1 total:2 updated:1]")
	run("map[skippedNoId:1 total:2 unchanged:1]")
	book := func(id uuid.UUID) object {
		return c.Do("GET", base+"/books/"+id.String(), nil).Want(200).Map()["metadata"].(object)
	}
	if m := book(known); m["subtitle"] != "A subtitle" || m["publisher"] != nil {
		t.Errorf("%v", m)
	}
	c.Do("PATCH", job, object{"config": object{"type": "metadata_refresh", "provider": "test", "scope": "series_and_books", "fieldGroups": []string{"publication"}, "bookFieldGroups": []string{"publication"}}}).Want(200)
	run("map[total:5 updated:5]")
	if m := book(plain); m["publisher"] != "Tower" || m["subtitle"] != nil {
		t.Errorf("%v", m)
	}
	r.DB.Set(t, r.One, "plugins.auto_match_confidence_threshold", "0.95")
	r.DB.Exec(t, "delete from external_id where book_id = $1", plain)
	run("map[total:5 unchanged:5]") // by the ISBN that it was given
	r.DB.Exec(t, "delete from external_id where book_id = $1", plain)
	r.DB.Exec(t, "update book_metadata set metadata = metadata - 'isbns' where book_id = $1", plain)
	run("map[notFound:1 total:5 unchanged:4]")
}

// The conditions of automatic matching see the fields of a book and those of its series.
func TestConditionsOfBooks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	r.add(c, nil)
	library, _, _ := r.series("Comic")
	novel, epub := r.another(library, "Novel", "", "")
	r.DB.Exec(t, "update book set format = 'epub' where id = $1", epub)
	r.DB.Exec(t, "update series set status = 'ended' where id = $1", novel)
	job := r.job(c, library, object{"scope": "books_only", "bookExtraFields": []string{"subtitle"}})
	for field, value := range map[string]string{"fileFormat": "epub", "metadata.title": "Novel", "series.metadata.title": "Novel", "metadata.status": "ended"} {
		rule := object{"field": field, "operator": "equals", "value": value}
		r.DB.Exec(t, "update library set auto_match_conditions = $1", object{"rules": []any{rule}})
		if m := c.Do("POST", job+"/dry-run", nil).Want(200).Map(); m["totalEligible"] != 1.0 || m["estSkippedConditions"] != 1.0 || m["sample"].([]any)[0].(object)["bookId"] != epub.String() {
			t.Errorf("%s: %v", field, m)
		}
		got, err := r.runner.Refresh(r.In(r.One), r.start(c, job))
		if n := counted(t, got); err != nil || n["notFound"] != 1 || n["updated"]+n["unchanged"] != 1 {
			t.Errorf("%s: %v, %v", field, n, err)
		}
		if asked := r.text("select string_agg(book_id::text, ' ') from external_id where source = 'plugin:test' and book_id is not null"); asked != epub.String() {
			t.Errorf("%s: it was asked about %s", field, asked)
		}
		r.DB.Exec(t, "update task set status = 'completed'")
		r.DB.Exec(t, "delete from external_id")
	}
}

// A run continues where it stopped: after a pause, a crash, or the plugin's rate limit.
func TestJobGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	id, _ := r.add(c, nil)
	library, _, _ := r.series("S")
	for i := range 149 {
		r.another(library, fmt.Sprintf("S %03d", i), "1", "")
	}
	job := r.job(c, library, object{"extraFields": []string{"year"}, "maxConcurrency": 3})
	h := r.start(c, job)
	// Every run but the last is stopped after some requests: by a pause, or by a crash of its worker, which saves
	// nothing.
	var requests atomic.Int64
	runs := 0
	var got any
	var err error
	for ; runs < 100; runs++ {
		ctx, kill := context.WithCancel(r.In(r.One))
		pause := make(chan struct{})
		before := requests.Load()
		r.onTold = func(kind string) {
			if kind == "series_metadata_updated" && requests.Add(1)-before == 20 {
				if runs%2 == 0 {
					close(pause)
				} else {
					kill()
				}
			}
		}
		got, err = r.runner.Refresh(task.WithPause(ctx, pause), h)
		kill()
		if err == nil {
			break
		}
		if runs%2 == 0 && !waits(err) || runs%2 == 1 && !errors.Is(err, context.Canceled) && !fault.Is(err, fault.Unavailable) {
			t.Fatalf("run %d: %v", runs, err)
		}
		h = r.again(h)
	}
	if n := counted(t, got); err != nil || n["total"] != 150 || n["updated"]+n["unchanged"] != 150 || runs < 3 {
		t.Errorf("%v after %d runs, %v", n, runs, err)
	}
	var missing int
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from series where year is distinct from 1999").Scan(&missing); err != nil || missing != 0 {
		t.Errorf("%d series were left out, %v", missing, err)
	}

	// The run waits for the plugin's rate limit, without losing anything.
	r.onTold = nil
	r.DB.Exec(t, "update task set status = 'completed'")
	c.Do("PATCH", admin+"/"+id, object{"rateLimitRequestsPerMinute": 100}).Want(200)
	h = r.start(c, job)
	done := 0
	for range 5 {
		got, err = r.runner.Refresh(r.In(r.One), h)
		if err == nil {
			break
		}
		if !waits(err) {
			t.Fatal(err)
		}
		h = r.again(h)
		done++
		r.DB.Exec(t, "update plugin set tokens_at = now() - interval '1 minute'")
	}
	if n := counted(t, got); err != nil || done != 1 || n["unchanged"] != 150 {
		t.Errorf("%v after %d waits, %v", n, done, err)
	}
}

// A run that the rate limit stops between the search and the metadata does not search again.
func TestJobKeepsWhatItFound(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	r.add(c, object{"rateLimitRequestsPerMinute": 1})
	library, _, _ := r.series("A")
	h := r.start(c, r.job(c, library, nil))
	run := func() (any, error) {
		r.DB.Exec(t, "update plugin set tokens = 1, tokens_at = now()")
		return r.runner.Refresh(r.In(r.One), h)
	}
	_, err := run()
	if found := r.text("select place -> 'left' -> 0 ->> 'externalId' from task where id = $1", h.ID); !waits(err) || found != "1" {
		t.Errorf("found %q, %v", found, err)
	}
	h = r.again(h)
	got, err := run()
	if n := counted(t, got); err != nil || fmt.Sprint(n) != "map[total:1 updated:1]" {
		t.Errorf("%v, %v", n, err)
	}
}

func TestJobFails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	id, _ := r.add(c, nil)
	library, _, _ := r.series("A")
	for i := range 10 {
		r.another(library, fmt.Sprintf("B %d", i), "secret", "") // the plugin returns an error
	}
	job := r.job(c, library, object{"maxConcurrency": 1, "existingSourceIdsOnly": true})
	h := r.start(c, job)
	_, err := r.runner.Refresh(r.In(r.One), h)
	if !fault.Is(err, fault.BadRequest) || !strings.Contains(err.Error(), "is disabled") {
		t.Errorf("%v", err)
	}
	last := func(status, message string) {
		t.Helper()
		if m := c.Do("GET", job, nil).Want(200).Map(); m["lastRunStatus"] != status || !strings.Contains(fmt.Sprint(m["lastRunMessage"]), message) {
			t.Errorf("%v %v, want %s %s", m["lastRunStatus"], m["lastRunMessage"], status, message)
		}
	}
	last("failed", "The plugin test is disabled")
	// The message of a run may name series: users who do not see everything do not get it.
	limited, tag := r.User(t, "one", "reader"), uuid.New()
	r.DB.Exec(t, "insert into sharing_tag (tenant_id, id, name) values ($1, $2, 'Kids')", r.One, tag)
	r.DB.Exec(t, "insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) values ($1, gen_random_uuid(), $2, $3, 'deny')", r.One, tag, limited.ID)
	if m := limited.Do("GET", job, nil).Want(200).Map(); m["lastRunStatus"] != "failed" || m["lastRunMessage"] != nil {
		t.Errorf("%v", m)
	}
	var failures int
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from plugin_failure").Scan(&failures); err != nil || failures != 3 {
		t.Errorf("%d failures, %v", failures, err)
	}
	// The rest is left for the next run.
	if got := r.text("select concat_ws(' ', place -> 'counts' -> 'failed', jsonb_array_length(place -> 'left')) from task where id = $1", h.ID); got != "5 5" {
		t.Errorf("%s have failed and are left", got)
	}
	// A rate-limited plugin is waited for; that is no failure yet.
	r.DB.Exec(t, "update task set status = 'failed'")
	c.Do("POST", admin+"/"+id+"/enable", nil).Want(200)
	r.DB.Exec(t, "update series set title = 'slow down' where title = 'A'")
	c.Do("PATCH", job, object{"config": object{"type": "metadata_refresh", "provider": "test", "maxConcurrency": 1}}).Want(200)
	h = r.start(c, job)
	if _, err = r.runner.Refresh(r.In(r.One), h); !waits(err) {
		t.Errorf("%v", err)
	}
	last("running", "")
	// A run waits for an earlier run of the same plugin.
	other := r.job(c, library, nil)
	if _, err := r.runner.Refresh(r.In(r.One), r.start(c, other)); !waits(err) {
		t.Errorf("%v", err)
	}
	// If a run is cancelled, or its worker dies, the task says so, and the scheduler records it.
	r.DB.Exec(t, "update task set status = 'cancelled', completed_at = now() where id = $1", h.ID)
	last("cancelled", "")
	if _, err := plugin.JobsDue(t.Context(), r.DB.System, time.Now()); err != nil {
		t.Fatal(err)
	}
	r.DB.Exec(t, "delete from task where id = $1", h.ID)
	last("cancelled", "")
	// A run ends when its job is deleted.
	h = r.start(c, job)
	c.Do("DELETE", job, nil).Want(204)
	if _, err := r.runner.Refresh(r.In(r.One), h); !fault.Is(err, fault.NotFound) {
		t.Errorf("%v", err)
	}
	var status string
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select status from task where id = $1", h.ID).Scan(&status); err != nil || status != "cancelled" {
		t.Errorf("%s, %v", status, err)
	}
	// The plugin was deleted.
	c.Do("DELETE", admin+"/"+id, nil).Want(204)
	if _, err := r.runner.Refresh(r.In(r.One), r.again(task.Held{Tenant: r.One, Allowed: 3, ID: r.task(other)})); !fault.Is(err, fault.BadRequest) {
		t.Errorf("%v", err)
	}
	job = other
	last("failed", `There is no plugin "test"`)
}

// Failures end a run only if they follow each other.
func TestJobGoesOnAfterSingleFailures(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	r.add(c, nil)
	library, _, _ := r.series("A")
	for i := range 6 {
		r.another(library, fmt.Sprintf("B %d", i), "secret", "") // the plugin returns an error
		r.another(library, fmt.Sprintf("B %d then", i), "1", "")
	}
	h := r.start(c, r.job(c, library, object{"maxConcurrency": 1, "existingSourceIdsOnly": true}))
	r.onCall = func(string) { r.DB.Exec(t, "delete from plugin_failure") } // so that the plugin is not disabled
	got, err := r.runner.Refresh(r.In(r.One), h)
	if n := counted(t, got); err != nil || fmt.Sprint(n) != "map[failed:6 skippedNoId:1 total:13 updated:6]" {
		t.Errorf("%v, %v", n, err)
	}
}

// An item that changes during every request is retried some times, and then fails.
func TestJobGivesUpWhatAlwaysChanges(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	r.add(c, nil)
	library, series, _ := r.series("A")
	h := r.start(c, r.job(c, library, nil))
	asked := 0
	r.onCall = func(method string) {
		if method != "metadata/series/get" {
			return
		}
		if asked++; asked <= 20 {
			r.DB.Exec(t, "update series set locks = locks || $2::text where id = $1", series, fmt.Sprintf("custom %d", asked))
		}
	}
	got, err := r.runner.Refresh(r.In(r.One), h)
	if n := counted(t, got); err != nil || n["failed"] != 1 || n["updated"] != 0 || asked != 11 {
		t.Errorf("%v after it was asked for %d times, %v", n, asked, err)
	}
}

// task returns the last run of a job.
func (r *rig) task(job string) (id uuid.UUID) {
	r.t.Helper()
	if err := r.DB.Owner.Pool().QueryRow(r.t.Context(), "select task_id from library_job where id = $1", job[strings.LastIndex(job, "/")+1:]).Scan(&id); err != nil {
		r.t.Fatal(err)
	}
	return id
}

func TestJobIsTried(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	id, _ := r.add(c, object{"permissions": []string{"metadata:write:year", "metadata:write:summary", "metadata:write:subtitle"}})
	library, _, _ := r.series("Nothing, nothing")
	locked, _ := r.another(library, "Locked", "1", "1")
	r.another(library, "Lost", "77", "")
	recent, _ := r.another(library, "Recent", "1", "")
	c.Do("PUT", base+"/series/"+locked.String()+"/metadata/locks", object{"summary": true}).Want(200)
	r.DB.Exec(t, "update external_id set last_synced_at = now() where series_id = $1", recent)
	job := r.job(c, library, object{"skipRecentlySyncedWithinS": 60, "existingSourceIdsOnly": true})
	before := r.snapshot()
	m := c.Do("POST", job+"/dry-run", nil).Want(200).Map()
	if m["totalEligible"] != 2.0 || m["estSkippedNoId"] != 1.0 || m["estSkippedRecentlySynced"] != 1.0 || m["planFailure"] != nil || len(m["sample"].([]any)) != 2 {
		t.Errorf("%v", m)
	}
	first := m["sample"].([]any)[0].(object)
	if first["seriesId"] != locked.String() || first["seriesName"] != "Locked" || first["bookId"] != nil || fmt.Sprint(first["changes"]) != "map[year:map[after:1999 before:<nil>]]" ||
		!strings.Contains(fmt.Sprint(first["skipped"]), "map[field:summary reason:The field is locked]") ||
		!strings.Contains(fmt.Sprint(first["skipped"]), "map[field:publisher reason:The plugin does not have the permission metadata:write:publisher]") {
		t.Errorf("%v", first)
	}
	if lost := m["sample"].([]any)[1].(object); lost["seriesName"] != "Lost" || !strings.Contains(fmt.Sprint(lost["skipped"]), "map[field:* reason:The plugin does not know this entry") {
		t.Errorf("%v", lost)
	}
	override := object{"type": "metadata_refresh", "provider": "plugin:test", "scope": "series_and_books", "extraFields": []string{"year"}, "book_extra_fields": []string{"subtitle", "publisher"}}
	m = c.Do("POST", job+"/dry-run", object{"sampleSize": 4, "configOverride": override}).Want(200).Map()
	if m["totalEligible"] != 8.0 || m["estSkippedNoId"] != 0.0 || len(m["sample"].([]any)) != 4 {
		t.Errorf("%v", m)
	}
	byBook := m["sample"].([]any)[1].(object)
	if byBook["bookTitle"] != "Locked" || byBook["bookId"] == nil || fmt.Sprint(byBook["changes"]) != "map[subtitle:map[after:A subtitle before:<nil>]]" ||
		fmt.Sprint(byBook["skipped"]) != "[map[field:publisher reason:The plugin does not have the permission metadata:write:publisher]]" {
		t.Errorf("%v", byBook)
	}
	if r.snapshot() != before {
		t.Error("a dry run has written something")
	}
	for _, body := range []object{{"sampleSize": 0}, {"sampleSize": 21}, {"configOverride": object{"type": "metadata_refresh", "provider": "test", "extraFields": []string{"x"}}}} {
		c.Do("POST", job+"/dry-run", body).Want(400)
	}
	c.Do("POST", admin+"/"+id+"/disable", nil).Want(200)
	if m := c.Do("POST", job+"/dry-run", object{}).Want(200).Map(); m["planFailure"] != "The plugin test is disabled" || len(m["sample"].([]any)) != 0 {
		t.Errorf("%v", m)
	}
}

// snapshot returns a fingerprint of series and books.
func (r *rig) snapshot() (out string) {
	r.t.Helper()
	if err := r.DB.Owner.Pool().QueryRow(r.t.Context(), `select md5(coalesce((select string_agg(s::text, '' order by s.id) from series s), '') || coalesce((select string_agg(b::text, '' order by b.id) from book b), '') ||
		coalesce((select string_agg(m::text, '' order by m.book_id) from book_metadata m), '') || coalesce((select string_agg(x::text, '' order by x.id) from external_id x), ''))`).Scan(&out); err != nil {
		r.t.Fatal(err)
	}
	return out
}

// Jobs run by their schedules, in the time zone of the job or the tenant, once for several schedulers.
func TestJobsAreDue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	r.add(c, nil)
	library, _, _ := r.series("A")
	tenants, own := r.job(c, library, nil), r.job(c, library, nil)
	off := r.job(c, library, nil)
	c.Do("PATCH", own, object{"timezone": "UTC"}).Want(200)
	c.Do("PATCH", off, object{"enabled": false}).Want(200)
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for n, step := range []struct {
		zone string
		now  time.Time
		want string // jobs that are started
	}{
		{"", noon, ""}, // the scheduler sees them for the first time
		{"", noon.Add(15 * time.Hour), "own tenants"},
		{"", noon.Add(16 * time.Hour), ""},
		{"Asia/Tokyo", noon.Add(17 * time.Hour), ""}, // three o'clock there was 18:00 UTC
		{"Asia/Tokyo", noon.Add(30 * time.Hour), "tenants"},
		{"Asia/Tokyo", noon.Add(39 * time.Hour), "own"},
		{"Asia/Tokyo", noon.Add(200 * time.Hour), "own tenants"}, // once, however often it was missed
	} {
		if step.zone != "" {
			r.DB.Set(t, r.One, "scheduler.timezone", step.zone)
		}
		var schedulers sync.WaitGroup
		var started atomic.Int64
		for range 4 {
			schedulers.Go(func() {
				k, err := plugin.JobsDue(context.Background(), r.DB.System, step.now)
				if err != nil {
					t.Error(err)
				}
				started.Add(int64(k))
			})
		}
		schedulers.Wait()
		got := ""
		for name, job := range map[string]string{"own": own, "tenants": tenants, "off": off} {
			if m := c.Do("GET", job, nil).Want(200).Map(); m["lastRunStatus"] == "pending" {
				got += " " + name
			}
		}
		fields := strings.Fields(got)
		slices.Sort(fields)
		if strings.Join(fields, " ") != step.want || int(started.Load()) != len(fields) {
			t.Errorf("step %d: %v started, want %q; %d counted", n, fields, step.want, started.Load())
		}
		r.DB.Exec(t, "update task set status = 'completed', completed_at = now()")
	}
	// A new job that becomes due before a scheduler first sees it is not missed.
	r.DB.Exec(t, "update library_job set enabled = false")
	late := r.job(c, library, nil)
	c.Do("PATCH", late, object{"cronSchedule": "0 * * * * *", "timezone": "UTC"}).Want(200)
	for _, want := range []int{0, 1} {
		if k, err := plugin.JobsDue(t.Context(), r.DB.System, time.Now().Add(time.Hour)); err != nil || k != want {
			t.Errorf("%d started, want %d, %v", k, want, err)
		}
	}
	c.Do("DELETE", late, nil).Want(204)
	c.Do("PATCH", own, object{"enabled": true}).Want(200)
	// A running job is not started again, nor one of an inactive library or tenant.
	h := r.start(c, own)
	c.Do("DELETE", tenants, nil).Want(204)
	r.DB.Exec(t, "update library_job set next_run_at = now() - interval '1 hour' where enabled")
	if k, err := plugin.JobsDue(t.Context(), r.DB.System, time.Now()); err != nil || k != 0 {
		t.Errorf("%d, %v", k, err)
	}
	r.DB.Exec(t, "update task set status = 'completed' where id = $1", h.ID)
	for _, inactive := range []string{"update library set is_active = false", "update tenant set status = 'suspended'"} {
		r.DB.Exec(t, inactive)
		r.DB.Exec(t, "update library_job set next_run_at = now() - interval '1 hour' where enabled")
		if k, err := plugin.JobsDue(t.Context(), r.DB.System, time.Now()); err != nil || k != 0 {
			t.Errorf("%s: %d, %v", inactive, k, err)
		}
		r.DB.Exec(t, "update library set is_active = true")
	}
}

// However many series and books others have, a job reads those of its library by an index.
func TestJobPlans(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me := r.User(t, "one", "admin")
	library, _ := r.Crowd(t, r.One, me.ID)
	r.DB.Exec(t, "insert into external_id (tenant_id, id, series_id, source, external_id) select tenant_id, gen_random_uuid(), id, 'plugin:test', '1' from series")
	r.DB.Exec(t, "insert into external_id (tenant_id, id, book_id, source, external_id) select tenant_id, gen_random_uuid(), id, 'plugin:test', '1' from book")
	r.DB.Exec(t, "vacuum analyze external_id")
	for sql, args := range plugin.JobStatements(library) {
		scanned, plan := r.Scans(t, me, sql, args...)
		for _, table := range []string{"book", "series", "external_id"} {
			if slices.Contains(scanned, table) && (table != "external_id" || strings.Contains(sql, "limit $7")) {
				t.Errorf("%s reads all of %s: %s", sql, table, plan)
			}
		}
	}
}

package starter_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/cover"
	"github.com/longbox/longbox/shared/domain/duplicate"
	"github.com/longbox/longbox/shared/domain/orphan"
	"github.com/longbox/longbox/shared/domain/pack/pdfcache"
	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/domain/starter"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

const base = "/api/v1"

type object = map[string]any

// rig has a library with a series of one book in each tenant, and a plugin in the first.
type rig struct {
	*testkit.Server
	library, series, book, plugin uuid.UUID
	foreign                       uuid.UUID // a series of the other tenant
	events                        int
}

func newRig(t *testing.T) *rig {
	r := &rig{plugin: uuid.New()}
	publish := func(ctx context.Context, tenant uuid.UUID, e ...events.Event) { r.events += len(e) }
	r.Server = testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		starter.Routes(a, d, publish, nil)
		series.Routes(a, d, nil, nil)
		book.Routes(a, d, nil, nil)
		scan.Routes(a, d, publish, nil)
		cover.Routes(a, d, nil, nil)
		duplicate.Routes(a, d, nil)
		orphan.Routes(a, d, nil)
		pdfcache.Routes(a, d, pdfcache.Config{}, nil)
		task.Routes(a, d, publish, nil)
	})
	for _, tenant := range []uuid.UUID{r.Two, r.One} {
		r.foreign = r.series
		r.library, r.series, r.book = uuid.New(), uuid.New(), uuid.New()
		r.DB.Exec(t, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
			values ($1, $2, 'Comics', 's3://b/c', 'b', 'c', 'series_volume', 'filename', 'file_order')`, tenant, r.library)
		r.DB.Exec(t, "insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) values ($1, $2, $3, 's', 'S', 'S', 'S', 's')", tenant, r.series, r.library)
		r.DB.Exec(t, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title)
			values ($1, $2, $3, $4, 's/1.cbz', 100, now(), 'cbz', 'B', 'B', 'b')`, tenant, r.book, r.library, r.series)
	}
	r.DB.Exec(t, `insert into plugin (tenant_id, id, name, display_name, plugin_type, command, credential_delivery, enabled, use_existing_external_id)
		values ($1, $2, 'p', 'P', 'system', 'p', 'env', true, true)`, r.One, r.plugin)
	return r
}

func (r *rig) tasks(t *testing.T, where string) (n int) {
	t.Helper()
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from task where "+where).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A task started by type is the same as through its own operation, and is not started twice.
func TestSameTaskAsItsOwnOperation(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me := r.User(t, "one", "admin")
	for _, c := range []struct{ typ, more, method, path, body string }{
		{"scan_library", `"libraryId":"{l}","mode":"deep"`, "", "", ""},
		{"analyze_book", `"bookId":"{b}","force":true`, "POST", "/books/{b}/analyze", ""},
		{"analyze_book", `"bookId":"{b}"`, "POST", "/books/{b}/analyze-unanalyzed", ""},
		{"analyze_book", `"bookId":"{b}","force":false`, "POST", "/books/{b}/analyze-unanalyzed", ""},
		{"analyze_series", `"series_id":"{s}"`, "POST", "/series/{s}/analyze", ""},
		{"analyze_library", `"libraryId":"{l}"`, "POST", "/libraries/{l}/analyze", ""},
		{"renumber_series", `"seriesId":"{s}"`, "POST", "/series/{s}/renumber", ""},
		{"renumber_series_batch", `"seriesIds":["{s}"]`, "POST", "/series/bulk/renumber", `{"seriesIds":["{s}"]}`},
		{"generate_thumbnail", `"bookId":"{b}"`, "POST", "/books/{b}/thumbnail/generate", ""},
		{"generate_thumbnails", `"libraryId":"{l}","force":true`, "POST", "/libraries/{l}/books/thumbnails/generate", `{"force":true}`},
		{"generate_thumbnails", `"bookIds":["{b}"]`, "POST", "/books/bulk/thumbnails/generate", `{"bookIds":["{b}"]}`},
		{"generate_thumbnails", `"bookIds":["{b}"],"force":false`, "POST", "/books/bulk/thumbnails/generate", `{"bookIds":["{b}"]}`},
		{"generate_thumbnails", ``, "POST", "/books/thumbnails/generate", ""},
		{"generate_series_thumbnail", `"seriesId":"{s}"`, "POST", "/series/{s}/thumbnail/generate", ""},
		{"generate_series_thumbnails", `"seriesIds":["{s}"]`, "POST", "/series/bulk/thumbnails/generate", `{"seriesIds":["{s}"]}`},
		{"cleanup_orphaned_files", ``, "POST", "/admin/cleanup-orphans", ""},
		{"cleanup_pdf_cache", ``, "POST", "/admin/pdf-cache/pages/cleanup", ""},
		{"plugin_auto_match", `"pluginId":"{p}","seriesId":"{s}","sourceScope":null`, "", "", ""},
		{"purge_deleted", `"libraryId":"{l}"`, "DELETE", "/libraries/{l}/purge-deleted", ""},
		{"reprocess_series_title", `"seriesId":"{s}"`, "POST", "/series/{s}/title/reprocess", ""},
		{"reprocess_series_title", `"seriesId":"{s}","dryRun":true`, "POST", "/series/{s}/title/reprocess", `{"dryRun":true}`},
		{"reprocess_series_titles", `"seriesIds":["{s}"]`, "POST", "/series/bulk/titles/reprocess", `{"seriesIds":["{s}"]}`},
		{"reprocess_series_titles", `"seriesIds":["{s}"],"dryRun":false`, "POST", "/series/titles/reprocess", `{"seriesIds":["{s}"]}`},
		{"reprocess_series_titles", `"libraryId":"{l}"`, "POST", "/libraries/{l}/series/titles/reprocess", ""},
		{"reprocess_series_titles", `"libraryId":"{l}"`, "POST", "/series/titles/reprocess", `{"libraryId":"{l}"}`},
	} {
		r.DB.Exec(t, "delete from task where type = 'scan_library'") // nothing is purged while a scan is unfinished
		fill := strings.NewReplacer("{l}", r.library.String(), "{s}", r.series.String(), "{b}", r.book.String(), "{p}", r.plugin.String())
		body := `{"task_type":{"type":"` + c.typ + `"`
		if c.more != "" {
			body += "," + fill.Replace(c.more)
		}
		body += "}}"
		first := me.Do("POST", base+"/tasks", body).Want(200).Map()["taskId"]
		if again := me.Do("POST", base+"/tasks", body).Want(200).Map()["taskId"]; again != first {
			t.Errorf("%s: a second task", body)
		}
		if c.path == "" {
			continue
		}
		var sent any
		if c.body != "" {
			sent = fill.Replace(c.body)
		}
		if own := me.Do(c.method, base+fill.Replace(c.path), sent).Want(200).Map()["taskId"]; own != first {
			t.Errorf("%s is not what %s starts", body, c.path)
		}
	}
	if got := me.Do("POST", base+"/tasks", `{"taskType":{"type":"find_duplicates"}}`).Want(200).Map()["taskId"].(string); !strings.Contains(string(me.Do("POST", base+"/duplicates/scan", nil).Want(409).Body), got) {
		t.Errorf("the operation does not know of %s", got)
	}
	if r.events != 1 { // for the scan, once
		t.Errorf("told of %d", r.events)
	}
	// A series, a list of series and a library are different targets, and a dry run is another task.
	if n, dry := r.tasks(t, "type = 'reprocess_series_titles'"), r.tasks(t, "params ->> 'dryRun' = 'true'"); n != 4 || dry != 1 {
		t.Errorf("%d tasks name series, %d of them change nothing", n, dry)
	}
}

// A task is listed under the type that started it. Some types are stored under the name of a wider one.
func TestListedByItsType(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me := r.User(t, "one", "admin")
	for typ, more := range map[string]string{"generate_thumbnail": `"bookId":"{b}"`, "generate_series_thumbnail": `"seriesId":"{s}"`,
		"reprocess_series_title": `"seriesId":"{s}"`, "renumber_series_batch": `"seriesIds":["{s}"]`, "analyze_series": `"seriesId":"{s}"`} {
		more = strings.NewReplacer("{s}", r.series.String(), "{b}", r.book.String()).Replace(more)
		id := me.Do("POST", base+"/tasks", `{"taskType":{"type":"`+typ+`",`+more+`}}`).Want(200).Map()["taskId"]
		got := me.Do("GET", base+"/tasks?taskType="+typ, nil).Want(200).Map()["data"].([]any)
		if len(got) != 1 || got[0].(object)["id"] != id {
			t.Errorf("%s: listed as %v", typ, got)
		}
	}
}

func TestScanHasItsStatus(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me := r.User(t, "one", "maintainer")
	id := me.Do("POST", base+"/tasks", object{"taskType": object{"type": "scan_library", "libraryId": r.library, "mode": "deep"}, "priority": 7}).Want(200).Map()["taskId"]
	if m := me.Do("GET", base+"/libraries/"+r.library.String()+"/scan-status", nil).Want(200).Map(); m["taskId"] != id || m["mode"] != "deep" || m["status"] != "pending" {
		t.Errorf("the scan: %v", m)
	}
	if r.tasks(t, "priority = 7") != 1 {
		t.Error("it has another priority")
	}
	me.Do("POST", base+"/libraries/"+r.library.String()+"/scan", nil).Want(409)
	m := me.Do("POST", base+"/tasks", object{"taskType": object{"type": "purge_deleted", "libraryId": r.library}}).Want(409).Map()
	if !strings.Contains(m["message"].(string), "scan") {
		t.Errorf("purged while it waits: %v", m)
	}
}

func TestWhenAndHowUrgently(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me := r.User(t, "one", "maintainer")
	for _, typ := range []object{{"type": "analyze_series", "seriesId": r.series}, {"type": "plugin_auto_match", "seriesId": r.series, "pluginId": r.plugin}} {
		r.DB.Exec(t, "delete from task")
		at := time.Now().Add(48 * time.Hour).UTC().Truncate(time.Second)
		start := func(priority any, at any) any {
			return me.Do("POST", base+"/tasks", object{"taskType": typ, "priority": priority, "scheduledFor": at}).Want(200).Map()["taskId"]
		}
		later := start(3, at)
		if start(nil, at) != later {
			t.Errorf("%v: at one time twice", typ)
		}
		var due time.Time
		var priority int
		if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select scheduled_for, priority from task where id = $1", later).Scan(&due, &priority); err != nil || !due.Equal(at) {
			t.Errorf("%v: due at %v, %v", typ, due, err)
		}
		if typ["type"] == "analyze_series" && priority != 490 || typ["type"] != "analyze_series" && priority != 3 {
			t.Errorf("%v: its priority is %d", typ, priority)
		}
		if m := me.Do("POST", base+"/tasks", object{"taskType": typ, "scheduledFor": at.Add(time.Hour)}).Want(200).Map(); m["taskId"] == later {
			t.Errorf("%v: at another time it is the same", typ)
		}
		now := start(nil, time.Now().Add(-time.Hour))
		want := map[any]int{"analyze_series": 900, "plugin_auto_match": 340}[typ["type"]]
		if now == later || start(900, nil) != now || r.tasks(t, fmt.Sprintf("id = '%s' and scheduled_for <= now() and priority = %d", now, want)) != 1 {
			t.Errorf("%v: one that waits for its time keeps it from running now", typ)
		}
	}
	// The number of scheduled tasks is limited, that of immediate ones is not.
	r.DB.Exec(t, "insert into task (tenant_id, id, type, priority, scheduled_for) select $1, gen_random_uuid(), 'analyze_series', 1000, now() + interval '1 hour' from generate_series(1, 1000)", r.One)
	body := object{"taskType": object{"type": "analyze_library", "libraryId": r.library}, "scheduledFor": time.Now().Add(time.Hour)}
	me.Do("POST", base+"/tasks", body).Want(409)
	delete(body, "scheduledFor")
	me.Do("POST", base+"/tasks", body).Want(200)
}

// A job and the aliases of tracked series apply to all series, unless some are given.
func TestJobAndAliases(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me, limited, tag := r.User(t, "one", "admin"), r.User(t, "one", "admin"), uuid.New()
	r.DB.Exec(t, "insert into sharing_tag (tenant_id, id, name) values ($1, $2, 'for some')", r.One, tag)
	r.DB.Exec(t, "insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) values ($1, gen_random_uuid(), $2, $3, 'allow')", r.One, tag, limited.ID)
	job := uuid.New()
	r.DB.Exec(t, "insert into library_job (tenant_id, id, library_id, name, enabled, cron_schedule, config) values ($1, $2, $3, 'J', false, '0 3 * * *', '{}')", r.One, job, r.library)
	refresh := object{"taskType": object{"type": "refresh_library_metadata", "jobId": job}, "priority": 7}
	first := me.Do("POST", base+"/tasks", refresh).Want(200).Map()["taskId"]
	if again := me.Do("POST", base+"/tasks", refresh).Want(200).Map()["taskId"]; again != first || r.tasks(t, fmt.Sprintf("priority = 7 and id = (select task_id from library_job where id = '%s')", job)) != 1 {
		t.Errorf("the job runs as %v and %v", first, again)
	}
	limited.Do("POST", base+"/tasks", refresh).Want(403)
	refresh["scheduledFor"] = time.Now().Add(time.Hour)
	me.Do("POST", base+"/tasks", refresh).Want(400)
	me.Do("POST", base+"/tasks", object{"taskType": object{"type": "refresh_library_metadata", "jobId": uuid.New()}}).Want(400)
	r.User(t, "two", "admin").Do("POST", base+"/tasks", object{"taskType": object{"type": "refresh_library_metadata", "jobId": job}}).Want(400)
	for body, where := range map[string]string{``: "library_id is null and params = '{}'", `,"libraryId":"` + r.library.String() + `"`: "library_id is not null"} {
		whole := `{"taskType":{"type":"backfill_tracking_from_metadata"` + body + `}}`
		limited.Do("POST", base+"/tasks", whole).Want(403)
		me.Do("POST", base+"/tasks", whole).Want(200)
		if r.tasks(t, "type = 'backfill_tracking_from_metadata' and "+where) != 1 {
			t.Errorf("no task for %s", whole)
		}
	}
	// Hidden series are ignored.
	limited.Do("POST", base+"/tasks", `{"taskType":{"type":"backfill_tracking_from_metadata","seriesIds":["`+r.series.String()+`"]}}`).Want(200)
	if r.tasks(t, "type = 'backfill_tracking_from_metadata' and params = '{\"seriesIds\": []}'") != 1 {
		t.Error("a hidden series is named")
	}
}

func TestRefusedTasks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me, key := r.User(t, "one", "admin"), r.Key(t, r.User(t, "one", "admin"), auth.TasksWrite)
	r.DB.Exec(t, "update book set analyzed = true")
	for body, field := range map[string]string{
		`{}`:                                     "taskType",
		`{"taskType":{"type":"analyze_series"}}`: "taskType.seriesId",
		`{"taskType":{"type":"analyze_series","seriesId":"` + uuid.NewString() + `"}}`:                                                                          "taskType.seriesId",
		`{"taskType":{"type":"analyze_series","seriesId":"` + r.foreign.String() + `"}}`:                                                                        "taskType.seriesId",
		`{"taskType":{"type":"analyze_series","seriesId":"x"}}`:                                                                                                 "taskType.seriesId",
		`{"taskType":{"type":"analyze_series","seriesId":"` + r.series.String() + `","force":true}}`:                                                            "taskType.force",
		`{"taskType":{"type":"scan_library","libraryId":"` + uuid.NewString() + `"}}`:                                                                           "taskType.libraryId",
		`{"taskType":{"type":"scan_library","libraryId":"` + r.library.String() + `","mode":"fast"}}`:                                                           "taskType.mode",
		`{"taskType":{"type":"scan_library","libraryId":"` + r.library.String() + `"},"scheduledFor":"` + time.Now().Add(time.Hour).Format(time.RFC3339) + `"}`: "scheduledFor",
		`{"taskType":{"type":"purge_deleted","libraryId":"` + uuid.NewString() + `"}}`:                                                                          "taskType.libraryId",
		`{"taskType":{"type":"analyze_book","bookId":"` + r.book.String() + `"}}`:                                                                               "taskType.bookId",
		`{"taskType":{"type":"analyze_book","force":false,"bookId":"` + r.book.String() + `"}}`:                                                                 "taskType.bookId",
		`{"taskType":{"type":"analyze_book","force":true,"bookId":"` + uuid.NewString() + `"}}`:                                                                 "taskType.bookId",
		`{"taskType":{"type":"plugin_auto_match","pluginId":"` + uuid.NewString() + `","seriesId":"` + r.series.String() + `"}}`:                                "taskType.pluginId",
		`{"taskType":{"type":"plugin_auto_match","pluginId":"` + r.plugin.String() + `","seriesId":"` + r.foreign.String() + `"}}`:                              "taskType.seriesId",
		`{"taskType":{"type":"reprocess_series_titles"}}`:                                                                                                       "taskType.seriesIds",
		`{"taskType":{"type":"renumber_series_batch","seriesIds":[]}}`:                                                                                          "taskType.seriesIds",
		`{"taskType":{"type":"generate_thumbnails","bookIds":["` + strings.Repeat(uuid.NewString()+`","`, 500) + uuid.NewString() + `"]}}`:                      "taskType.bookIds",
		`{"taskType":{"type":"pack_book","bookId":"` + r.book.String() + `"}}`:                                                                                  "taskType.type",
		`{"taskType":{"type":"find_duplicates"},"priority":1001}`:                                                                                               "priority",
		`{"taskType":{"type":"find_duplicates"},"priority":-1}`:                                                                                                 "priority",
		`{"taskType":{"type":"find_duplicates"},"scheduledFor":"2199-01-01T00:00:00Z"}`:                                                                         "scheduledFor",
		`{"taskType":{"type":"find_duplicates"},"scheduledFor":"` + time.Now().Add(367*24*time.Hour).Format(time.RFC3339) + `"}`:                                "scheduledFor",
		`{"taskType":{"type":"reprocess_series_titles","seriesIds":["` + r.series.String() + `"],"force":true}}`:                                                "taskType.force",
		`{"taskType":{"type":"find_duplicates"},"scheduledFor":"soon"}`:                                                                                         "scheduledFor",
	} {
		m := me.Do("POST", base+"/tasks", body).Want(400).Map()
		if details, _ := m["details"].([]any); len(details) == 0 || details[0].(object)["field"] != field {
			t.Errorf("%.150s: %v", body, m)
		}
	}
	for _, c := range [][2]string{{`"analyze_series","seriesId":"` + r.series.String() + `"`, "SeriesWrite"}, {`"scan_library","libraryId":"` + r.library.String() + `"`, "LibrariesWrite"},
		{`"purge_deleted","libraryId":"` + r.library.String() + `"`, "LibrariesWrite"}, {`"find_duplicates"`, "BooksWrite"}, {`"cleanup_orphaned_files"`, "SystemAdmin"}, {`"cleanup_pdf_cache"`, "SystemAdmin"}, {`"analyze_book","force":true,"bookId":"` + r.book.String() + `"`, "BooksWrite"},
		{`"analyze_library","libraryId":"` + r.library.String() + `"`, "LibrariesWrite"}, {`"reprocess_series_title","seriesId":"` + r.series.String() + `"`, "SeriesWrite"},
		{`"reprocess_series_titles","seriesIds":["` + r.series.String() + `"]`, "SeriesWrite"}, {`"renumber_series","seriesId":"` + r.series.String() + `"`, "SeriesWrite"},
		{`"renumber_series_batch","seriesIds":["` + r.series.String() + `"]`, "SeriesWrite"}, {`"backfill_tracking_from_metadata"`, "SeriesWrite"},
		{`"refresh_library_metadata","jobId":"` + uuid.NewString() + `"`, "LibrariesWrite"},
		{`"plugin_auto_match","pluginId":"` + r.plugin.String() + `","seriesId":"` + r.series.String() + `"`, "SeriesWrite"}, {`"analyze_series","seriesId":"` + uuid.NewString() + `"`, "SeriesWrite"}} {
		if m := key.Do("POST", base+"/tasks", `{"taskType":{"type":`+c[0]+`}}`).Want(403).Map(); !strings.Contains(m["message"].(string), c[1]) {
			t.Errorf("%s: %v", c[0], m)
		}
	}
	if n := r.tasks(t, "true"); n != 0 {
		t.Errorf("%d tasks were started", n)
	}
	// Its own operation needs no further permission.
	key.Do("POST", base+"/tasks", `{"taskType":{"type":"generate_thumbnails"}}`).Want(200)
	r.Key(t, me, auth.SeriesWrite).Do("POST", base+"/tasks", `{"taskType":{"type":"analyze_series","seriesId":"`+r.series.String()+`"}}`).Want(403)

	// A user who does not see every series cannot start tasks for a whole library.
	limited, tag := r.User(t, "one", "admin"), uuid.New()
	r.DB.Exec(t, "insert into sharing_tag (tenant_id, id, name) values ($1, $2, 'for some')", r.One, tag)
	r.DB.Exec(t, "insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) values ($1, gen_random_uuid(), $2, $3, 'allow')", r.One, tag, limited.ID)
	for body, want := range map[string]int{`"purge_deleted","libraryId":"` + r.library.String() + `"`: 403, `"reprocess_series_titles","libraryId":"` + r.library.String() + `"`: 403,
		`"cleanup_orphaned_files"`: 403, `"cleanup_pdf_cache"`: 403,
		`"analyze_series","seriesId":"` + r.series.String() + `"`: 400, `"scan_library","libraryId":"` + r.library.String() + `"`: 200} {
		limited.Do("POST", base+"/tasks", `{"taskType":{"type":`+body+`}}`).Want(want)
	}
}

package export_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/export"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/testkit"
)

// The life of an export; nobody else finds it, not even administrators.
func TestExports(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.addSeries(r.library, "Saga", 2)
	me, admin, foreign := r.User(t, "one", "reader"), r.User(t, "one", "admin"), r.User(t, "two", "admin")
	id := r.ask(me, `{"format":"csv","libraryIds":["`+r.library.String()+`"],"fields":["summary","summary","title"]}`)
	one := at + "/" + id.String()
	e := me.Do("GET", one, nil).Want(200).Map()
	if fmt.Sprintln(e["exportType"], e["fields"], e["bookFields"], e["libraryIds"], e["completedAt"], e["startedAt"], e["error"], e["rowCount"]) !=
		"series [summary title] [] ["+r.library.String()+"] <nil> <nil> <nil> <nil>\n" {
		t.Errorf("asked for: %v", e)
	}
	me.Do("GET", one+"/download", nil).Want(409)
	h := r.claim(id)
	if e := me.Do("GET", one, nil).Want(200).Map(); e["status"] != "running" {
		t.Errorf("running: %v", e)
	}
	me.Do("GET", one+"/download", nil).Want(409)
	for range 2 { // the second worker did not learn that the first was done
		out, err := r.maker.Make(db.In(t.Context(), h.Scope()), h)
		if err != nil || fmt.Sprint(out) != fmt.Sprintf("{1 %d}", r.number("select file_size from series_export where id = $1", id)) {
			t.Errorf("%v, %v", out, err)
		}
	}
	r.exec("update task set status = 'completed', completed_at = now() where id = $1", id)
	r.exec("delete from task where id = $1", id) // as after some days
	e = me.Do("GET", one, nil).Want(200).Map()
	if e["status"] != "completed" || e["rowCount"] != 1.0 || e["error"] != nil || e["completedAt"] == nil || e["startedAt"] == nil {
		t.Errorf("completed: %v", e)
	}
	file := me.Do("GET", one+"/download", nil).Want(200)
	if fmt.Sprint(e["fileSizeBytes"]) != fmt.Sprint(len(file.Body)) || file.Header.Get("Content-Type") != "text/csv; charset=utf-8" || file.Header.Get("Cache-Control") != "private, no-store" ||
		!strings.HasPrefix(file.Header.Get("Content-Disposition"), `attachment; filename="longbox-series-20`) || !strings.HasSuffix(file.Header.Get("Content-Disposition"), `.csv"`) {
		t.Errorf("%v: %v", e, file.Header)
	}
	r.s3.Counter.Reset()
	if head := me.Do("HEAD", one+"/download", nil).Want(200); len(head.Body) != 0 || head.Header.Get("Content-Length") != fmt.Sprint(len(file.Body)) || len(r.s3.Counter.Reset()) != 0 {
		t.Errorf("HEAD: %v", head.Header)
	}
	for _, c := range []*testkit.Client{admin, foreign} {
		c.Do("GET", one, nil).Want(404)
		c.Do("GET", one+"/download", nil).Want(404)
		c.Do("DELETE", one, nil).Want(404)
		if page := c.Do("GET", at, nil).Want(200).Map(); page["total"] != 0.0 || len(page["data"].([]any)) != 0 {
			t.Errorf("another's list: %v", page)
		}
	}
	second := r.ask(me, body("md", "both", "", ""))
	page := me.Do("GET", at+"?pageSize=1", nil).Want(200).Map()
	if data := page["data"].([]any); page["total"] != 2.0 || len(data) != 1 || data[0].(map[string]any)["id"] != second.String() {
		t.Errorf("my list: %v", page)
	}
	// The store lost the file.
	if err := r.s3.Config.Media().Delete(t.Context(), r.s3.Config.MediaBucket, r.object(id)); err != nil {
		t.Fatal(err)
	}
	me.Do("GET", one+"/download", nil).Want(404)
	r.s3.Counter.Meddle(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(500) })
	me.Do("GET", one+"/download", nil).Want(503)
	r.s3.Counter.Meddle(nil)
	// Cancelled, and expired.
	r.exec("update task set status = 'cancelled' where id = $1", second)
	if e := me.Do("GET", at+"/"+second.String(), nil).Want(200).Map(); e["status"] != "failed" || e["error"] == nil {
		t.Errorf("cancelled: %v", e)
	}
	me.Do("GET", at+"/"+second.String()+"/download", nil).Want(409)
	r.exec("update series_export set expires_at = now() where id = $1", second)
	me.Do("GET", at+"/"+second.String(), nil).Want(404)
	me.Do("GET", at+"/"+second.String()+"/download", nil).Want(404)
	me.Do("DELETE", at+"/"+second.String(), nil).Want(404)
	me.Do("DELETE", one, nil).Want(204)
	me.Do("DELETE", one, nil).Want(404)
	if page := me.Do("GET", at, nil).Want(200).Map(); page["total"] != 0.0 {
		t.Errorf("left: %v", page)
	}
}

// object is the key of the file of an export.
func (r *rig) object(id uuid.UUID) (key string) {
	r.t.Helper()
	if err := r.DB.Owner.Pool().QueryRow(r.t.Context(), "select object from series_export where id = $1", id).Scan(&key); err != nil {
		r.t.Fatal(err)
	}
	return key
}

func TestRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me := r.User(t, "one", "reader")
	theirs := uuid.New()
	r.exec(`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'Theirs', '/t', 'books', '', 'series_volume', 'metadata_first', 'smart')`, r.Two, theirs)
	many := strings.TrimSuffix(strings.Repeat(`"title",`, 101), ",")
	for in, field := range map[string]string{`{}`: "format", `{"format":"xml"}`: "format", `{"format":"csv","exportType":"films"}`: "exportType", `{"format":"csv","exportType":"both"}`: "exportType",
		`{"format":"csv","fields":["what"]}`: "fields", `{"format":"csv","fields":["number"]}`: "fields", `{"format":"csv","bookFields":["userRating"]}`: "bookFields",
		`{"format":"csv","fields":[` + many + `]}`: "fields", `{"format":"csv","bookFields":[` + many + `]}`: "bookFields", `{"format":"csv","fields":["a\u0000"]}`: "fields",
		`{"format":"csv","libraryIds":["x"]}`: "libraryIds[0]", `{"format":"csv","libraryIds":["` + theirs.String() + `"]}`: "libraryIds",
		`{"format":"csv","libraryIds":["` + r.library.String() + `","` + uuid.NewString() + `"]}`: "libraryIds"} {
		m := me.Do("POST", at, in).Want(400).Map()
		if details, _ := m["details"].([]any); len(details) == 0 || details[0].(map[string]any)["field"] != field {
			t.Errorf("%.80s: %v", in, m)
		}
	}
	me.Do("GET", at+"/x/download", nil).Want(400)
	// A key gets only what it may read otherwise.
	r.Key(t, me).Do("POST", at, `{"format":"csv"}`).Want(403)
	r.Key(t, me, auth.SeriesRead).Do("POST", at, `{"format":"csv","exportType":"books"}`).Want(403)
	r.Key(t, me, auth.BooksRead).Do("POST", at, `{"format":"csv","exportType":"books"}`).Want(403)
	if n := r.number("select (select count(*) from series_export) + (select count(*) from task)"); n != 0 {
		t.Fatalf("%d rows of what was refused", n)
	}
	series := r.ask(r.Key(t, me, auth.SeriesRead), `{"format":"csv"}`)
	books := r.ask(r.Key(t, me, auth.SeriesRead, auth.BooksRead), `{"format":"csv","exportType":"books"}`)
	for _, id := range []uuid.UUID{series, books} {
		if err := r.run(id); err != nil {
			t.Fatal(err)
		}
		r.Key(t, me, auth.BooksRead).Do("GET", at+"/"+id.String()+"/download", nil).Want(403)
	}
	r.Key(t, me, auth.SeriesRead).Do("GET", at+"/"+series.String()+"/download", nil).Want(200)
	r.Key(t, me, auth.SeriesRead).Do("GET", at+"/"+books.String()+"/download", nil).Want(403)
}

// A limit may be free again before the reason for the refusal is looked up.
func TestRefusedForAMoment(t *testing.T) {
	t.Parallel()
	if err := export.Refusal(); !fault.Is(err, fault.Conflict) {
		t.Errorf("%v", err)
	}
}

// If expired files take all the room, a request for an export makes the scheduler delete them, even if the schedule is
// off.
func TestExpiredFilesMakeRoom(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me, other := r.User(t, "one", "reader"), r.User(t, "one", "reader")
	r.DB.Set(t, r.One, "exports.cleanup_cron", "")
	now := time.Now()
	due := func() int {
		t.Helper()
		now = now.Add(time.Hour)
		n, err := export.Due(t.Context(), r.DB.System, now)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := r.ask(other, `{"format":"csv"}`)
	if err := r.run(first); err != nil {
		t.Fatal(err)
	}
	unfinished := r.ask(me, `{"format":"csv"}`)
	r.exec("update series_export set expires_at = now() where id = $1", first)
	r.DB.Set(t, r.One, "exports.max_concurrent_per_user", "1")
	if me.Do("POST", at, `{"format":"csv"}`).Want(409); due() != 0 {
		t.Error("a refusal for another reason deletes expired files")
	}
	r.DB.Set(t, r.One, "exports.max_concurrent_per_user", "3")
	r.exec("update series_export set file_size = 2147483648, expires_at = now() + interval '1 day' where id = $1", first)
	if got := string(me.Do("POST", at, `{"format":"csv"}`).Want(409).Body); !strings.Contains(got, "Wait until some expire") || due() != 0 {
		t.Errorf("full: %s", got)
	}
	r.exec("update series_export set expires_at = now() where id = $1", first)
	for range 2 {
		if got := string(me.Do("POST", at, `{"format":"csv"}`).Want(409).Body); !strings.Contains(got, "have expired and are deleted") {
			t.Errorf("full of expired files: %s", got)
		}
	}
	if n := due(); n != 1 {
		t.Errorf("%d clean-ups of expired files", n)
	}
	r.exec("update task set status = 'completed' where type = $1", task.CleanUpExports)
	r.exec("update export_cleanup set cleaned = deletions")
	if n := due(); n != 0 {
		t.Errorf("%d more clean-ups", n)
	}
	if err := r.run(unfinished); err == nil || due() != 1 {
		t.Errorf("the export that has failed for want of room has requested no clean-up: %v", err)
	}
	if got, err := r.clean(); err != nil || got.Expired != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	r.ask(me, `{"format":"csv"}`)
}

// Whoever creates and deletes exports again and again leaves no work behind.
func TestDeletedExportIsNotMade(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me := r.User(t, "one", "reader")
	other := r.ask(r.User(t, "one", "reader"), `{"format":"csv"}`)
	me.Do("DELETE", at+"/"+other.String(), nil).Want(404)
	me.Do("DELETE", at+"/"+r.ask(me, `{"format":"csv"}`).String(), nil).Want(204)
	if n := r.number("select count(*) from task where type = $1 and status = 'pending'", task.ExportSeries); n != 1 {
		t.Errorf("%d exports are waiting, want that of the other user", n)
	}
}

// The settings limit the number of exports per user, even with concurrent requests, and their total size.
func TestLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me, other := r.User(t, "one", "reader"), r.User(t, "one", "reader")
	r.addSeries(r.library, "Saga", 2)
	burst := func() (created int) {
		t.Helper()
		var all sync.WaitGroup
		var mu sync.Mutex
		for range 8 {
			all.Go(func() {
				got := me.Do("POST", at, `{"format":"csv"}`)
				mu.Lock()
				defer mu.Unlock()
				switch got.Status {
				case 201:
					created++
				case 409:
				default:
					t.Errorf("status %d: %s", got.Status, got.Body)
				}
			})
		}
		all.Wait()
		return created
	}
	if n := burst(); n != 3 {
		t.Errorf("%d exports at once", n)
	}
	r.ask(other, `{"format":"csv"}`) // not affected
	r.exec("update task set status = 'cancelled' where type = $1", task.ExportSeries)
	r.DB.Set(t, r.One, "exports.max_per_user", "5")
	if n := burst(); n != 2 {
		t.Errorf("%d more exports, want 5 in all", n)
	}
	r.exec("update series_export set expires_at = now()")
	r.DB.Set(t, r.One, "exports.max_concurrent_per_user", "1")
	r.DB.Set(t, r.One, "exports.retention_days", "2")
	r.exec("update task set status = 'cancelled' where type = $1", task.ExportSeries)
	if n := burst(); n != 1 {
		t.Errorf("%d exports at once, want 1", n)
	}
	if n := r.number("select round(extract(epoch from max(expires_at) - now()) / 86400)::bigint from series_export"); n != 2 {
		t.Errorf("kept for %d days", n)
	}
	// All together.
	id := uuid.UUID{}
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select id from series_export where expires_at > now()").Scan(&id); err != nil {
		t.Fatal(err)
	}
	r.exec(`insert into series_export (tenant_id, id, account_id, format, export_type, library_ids, fields, book_fields, object, sight, file_size, row_count, completed_at, expires_at)
		values ($1, gen_random_uuid(), $2, 'csv', 'series', '{}', '{}', '{}', 'x', '', 2147483640, 1, now(), now() + interval '1 day')`, r.One, other.ID)
	if err := r.run(id); err == nil || !strings.Contains(err.Error(), "no room") || len(r.objects()) != 0 {
		t.Errorf("%v, %v", err, r.objects())
	}
	if e := me.Do("GET", at+"/"+id.String(), nil).Want(200).Map(); e["status"] != "failed" || !strings.Contains(e["error"].(string), "no room") {
		t.Errorf("%v", e)
	}
	r.exec("update series_export set file_size = 2147483648 where object = 'x'")
	me.Do("POST", at, `{"format":"csv"}`).Want(409)
	r.exec("delete from series_export where object = 'x'")
	// The limit of the tenant.
	r.exec("update tenant set max_rendition_bytes = 10 where id = $1", r.One)
	if err := r.run(r.ask(me, `{"format":"csv"}`)); err == nil || !strings.Contains(err.Error(), "has reached its storage limit") || len(r.objects()) != 0 {
		t.Errorf("%v, %v", err, r.objects())
	}
}

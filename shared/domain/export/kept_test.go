package export_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/export"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// If sharing tags hide something between two batches, the file is not kept.
func TestHiddenBetweenBatches(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.maker.PartBytes = 20_000 // about one part per batch
	me := r.User(t, "one", "reader")
	hidden := r.addSeries(r.library, "A", 0)
	r.exec(`insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title, summary)
		select $1, gen_random_uuid(), $2, 's' || n, 's', 'B' || n, 'B' || n, 's', repeat('x', 100) from generate_series(1, $3::integer) n`, r.One, r.library, 2*export.Batch)
	hide := func() { r.hide(me.ID, "deny", hidden) }
	r.s3.Counter.Meddle(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		switch {
		case q.Method == http.MethodPut && q.URL.Query().Get("partNumber") == "1":
			hide()
		case q.Method == http.MethodPost && q.URL.Query().Has("uploadId"): // joining the parts, which are too small
			w.Header().Set("Content-Type", "application/xml")
			fmt.Fprint(w, `<CompleteMultipartUploadResult><ETag>"x"</ETag></CompleteMultipartUploadResult>`)
			return
		}
		next.ServeHTTP(w, q)
	})
	id := r.ask(me, body("json", "series", `"summary"`, ""))
	if err := r.run(id); err == nil {
		t.Error("the file was kept")
	}
	r.s3.Counter.Meddle(nil)
	if e := me.Do("GET", at+"/"+id.String(), nil).Want(200).Map(); e["status"] != "failed" || !strings.Contains(fmt.Sprint(e["error"]), "changed while") {
		t.Errorf("%v", e)
	}
}

// A user who sees everything again still gets a file that was made with less.
func TestNothingIsHiddenAnyMore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	hidden := r.addSeries(r.library, "Verborgen", 0)
	r.addSeries(r.library, "Offen", 0)
	me := r.User(t, "one", "reader")
	r.hide(me.ID, "deny", hidden)
	id := r.ask(me, body("csv", "series", "", ""))
	if err := r.run(id); err != nil {
		t.Fatal(err)
	}
	r.exec("delete from sharing_grant")
	if text := string(me.Do("GET", at+"/"+id.String()+"/download", nil).Want(200).Body); strings.Contains(text, "Verborgen") || !strings.Contains(text, "Offen") {
		t.Error(text)
	}
}

// A file is kept for its full time from its completion, however long it waited; and added is called.
func TestKeptFromCompletion(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	told := 0
	server := r.Beside(t, func(a *httpapi.API, d *db.DB) { export.Routes(a, d, func(context.Context, uuid.UUID) { told++ }) })
	me := r.User(t, "one", "reader")
	id := r.ask(me.At(server), body("csv", "series", "", ""))
	if me.At(server).Do("POST", at, `{"format":"xml"}`).Want(400); told != 1 {
		t.Errorf("told %d times of one task", told)
	}
	r.exec("update series_export set expires_at = now() + interval '1 minute'")
	if err := r.run(id); err != nil {
		t.Fatal(err)
	}
	if n := r.number("select count(*) from series_export where expires_at > now() + interval '23 hours'"); n != 1 {
		t.Error("it expires as if it had been completed when it was asked for")
	}
}

// Internal errors stay in the log; the failure is shown with the last attempt, and stored parts are aborted.
func TestFailuresAreTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.maker.PartBytes = 1
	r.addSeries(r.library, "A", 0)
	r.addSeries(r.library, "B", 0)
	me := r.User(t, "one", "reader")
	id := r.ask(me, body("csv", "series", "", ""))
	parts, given := 0, 0
	r.s3.Counter.Meddle(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		switch {
		case q.Method == http.MethodPut && q.URL.Query().Has("partNumber"):
			if parts++; q.URL.Query().Get("partNumber") == "2" {
				w.WriteHeader(http.StatusForbidden)
				return
			}
		case q.Method == http.MethodDelete && q.URL.Query().Has("uploadId"):
			given++
		}
		next.ServeHTTP(w, q)
	})
	h := r.claim(id)
	if _, err := r.maker.Make(db.In(t.Context(), h.Scope()), h); err == nil {
		t.Fatal("it was made")
	}
	if e := me.Do("GET", at+"/"+id.String(), nil).Want(200).Map(); e["status"] != "running" || e["error"] != nil || given != 0 {
		t.Errorf("with more attempts to come: %v, parts of %d uploads given back", e, given)
	}
	r.exec("update task set status = 'pending' where id = $1", id)
	h = r.claim(id)
	h.Attempts = h.Allowed
	if _, err := r.maker.Make(db.In(t.Context(), h.Scope()), h); err == nil {
		t.Fatal("it was made")
	}
	r.s3.Counter.Meddle(nil)
	e := me.Do("GET", at+"/"+id.String(), nil).Want(200).Map()
	if e["status"] != "failed" || !strings.HasPrefix(fmt.Sprint(e["error"]), "An unexpected error occurred") || parts != 3 || given != 1 {
		t.Errorf("after the last attempt: %v, %d parts, %d uploads given back", e, parts, given)
	}
	// If an export is deleted, the parts of the run that stops are aborted, too.
	id = r.ask(me, body("csv", "series", "", ""))
	given = 0
	r.s3.Counter.Meddle(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		if q.Method == http.MethodPut && q.URL.Query().Get("partNumber") == "1" {
			me.Do("DELETE", at+"/"+id.String(), nil)
		}
		if q.Method == http.MethodDelete && q.URL.Query().Has("uploadId") {
			given++
		}
		if q.Method == http.MethodPost && q.URL.Query().Has("uploadId") {
			w.Header().Set("Content-Type", "application/xml")
			fmt.Fprint(w, `<CompleteMultipartUploadResult><ETag>"x"</ETag></CompleteMultipartUploadResult>`)
			return
		}
		next.ServeHTTP(w, q)
	})
	r.exec(`insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
		select $1, gen_random_uuid(), $2, 's' || n, 's', 'B' || n, 'B' || n, 's' from generate_series(1, $3::integer) n`, r.One, r.library, export.Batch)
	h = r.claim(id)
	if out, err := r.maker.Make(db.In(t.Context(), h.Scope()), h); err != nil || out != (export.Result{}) || given != 1 {
		t.Errorf("deleted meanwhile: %v, %v, %d uploads given back", out, err, given)
	}
}

// If the row was written and only the response was lost, the file stays.
func TestFileThatIsNamedStays(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.addSeries(r.library, "A", 0)
	me := r.User(t, "one", "reader")
	id := r.ask(me, body("csv", "series", "", ""))
	r.s3.Counter.Meddle(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		next.ServeHTTP(w, q)
		if q.Method == http.MethodPut {
			r.exec(`update series_export set object = $2, sight = '', file_size = 10, row_count = 1, completed_at = now() where id = $1 and completed_at is null`, id, export.Folder(r.One)+id.String()+"/1")
		}
	})
	if err := r.run(id); err != nil {
		t.Errorf("%v", err)
	}
	r.s3.Counter.Meddle(nil)
	if got := r.objects(); len(got) != 1 || got[0] != id.String()+"/1" {
		t.Errorf("stored: %v", got)
	}
}

// A file beyond the limit is not stored at all; and concurrent writers are serialized.
func TestRoomIsSharedOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.addSeries(r.library, "A", 0)
	me, other := r.User(t, "one", "reader"), r.User(t, "one", "reader")
	full := func(bytes int64) string {
		return fmt.Sprintf(`insert into series_export (tenant_id, id, account_id, format, export_type, library_ids, fields, book_fields, object, sight, file_size, row_count, completed_at, expires_at)
			select tenant_id, gen_random_uuid(), id, 'csv', 'series', '{}', '{}', '{}', 'x', '', %d, 1, now(), now() + interval '1 day' from account where id = '%s'`, bytes, other.ID)
	}
	const most = 2 << 30
	id := r.ask(me, body("json", "series", "", ""))
	r.exec(full(most - 5))
	r.s3.Counter.Reset()
	if err := r.run(id); err == nil || !strings.Contains(err.Error(), "no room") || len(r.s3.Counter.Reset()) != 0 {
		t.Errorf("with 5 bytes left: %v", err)
	}
	r.exec("delete from series_export")
	// A file of exactly the remaining size is kept.
	size := int64(len(r.made(me, body("csv", "series", "", ""))))
	r.exec("delete from series_export")
	id = r.ask(me, body("csv", "series", "", ""))
	r.exec(full(most - size))
	if err := r.run(id); err != nil {
		t.Errorf("with just the room for it: %v", err)
	}
	// One user's exports may take half of the room, and the others the rest.
	r.exec("delete from series_export")
	id, theirs := r.ask(me, body("csv", "series", "", "")), r.ask(other, body("csv", "series", "", ""))
	r.exec(full(most/2 - 1))
	if err := r.run(theirs); err == nil || !strings.Contains(err.Error(), "your exports") {
		t.Errorf("with one byte left of the own half: %v", err)
	}
	if err := r.run(id); err != nil {
		t.Errorf("another user has taken a half: %v", err)
	}
	other.Do("POST", at, body("csv", "series", "", "")).Want(201)
	r.exec(full(1))
	if got := string(other.Do("POST", at, body("csv", "series", "", "")).Want(409).Body); !strings.Contains(got, "Your exports") {
		t.Errorf("the own half is full: %s", got)
	}
	r.ask(me, body("csv", "series", "", ""))
	r.exec("delete from series_export")

	id = r.ask(me, body("csv", "series", "", ""))
	ctx := context.Background()
	tx, err := r.DB.Owner.Pool().Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx)
	if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock(hashtextextended('longbox exports ' || $1::uuid, 0))", r.One); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- r.run(id) }()
	r.DB.AwaitLock(t)
	if _, err := tx.Exec(ctx, full(most-5)); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("another was faster: %v", err)
	}
}

// File and record contain what exists.
func TestWhatIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me := r.User(t, "one", "reader")
	for title, path := range map[string]string{"<b>&": "", "B": "/below.cbz", "C": "a/b"} {
		id := r.addSeries(r.library, title, 1)
		r.exec("update series set path = $2 where id = $1", id, path)
		for i, rating := range []int{10, 20, 20} {
			r.exec("insert into external_rating (tenant_id, id, series_id, source_name, rating) values ($1, gen_random_uuid(), $2, $3, $4)", r.One, id, fmt.Sprint(i), rating)
		}
	}
	first := r.ask(me, `{"format":"json","exportType":"both","fields":["path","externalRating"],"bookFields":[]}`)
	r.exec("update series_export set started_at = '2020-01-02T03:04:05Z'") // by a worker that died
	told := 0
	r.maker.Publish = func(_ context.Context, tenant uuid.UUID, e ...events.Event) {
		if told += len(e); tenant != r.One {
			t.Errorf("told to %s", tenant)
		}
	}
	if err := r.run(first); err != nil || told == 0 {
		t.Fatalf("%v, told %d times", err, told)
	}
	file := me.Do("GET", at+"/"+first.String()+"/download", nil).Want(200)
	for _, want := range []string{`"title":"<b>&","path":"/Comics","externalRating":16.7}`, `"title":"B","path":"/Comics","externalRating":16.7}`, `"title":"C","path":"/Comics/a/b"`} {
		if !strings.Contains(string(file.Body), want) {
			t.Errorf("no %s in %s", want, file.Body)
		}
	}
	if got := file.Header.Get("Content-Disposition"); !strings.Contains(got, `"longbox-library-`) {
		t.Error(got)
	}
	r.ask(me, body("csv", "series", "", ""))
	page := me.Do("GET", at+"?pageSize=1&page=2", nil).Want(200).Map()
	if one := page["data"].([]any)[0].(map[string]any); one["id"] != first.String() || one["startedAt"] != "2020-01-02T03:04:05Z" {
		t.Errorf("the second of two: %v", page)
	}
}

// Parts of a failed export are deleted, and a clean-up requested meanwhile stays due.
func TestCleanBehindFailures(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me := r.User(t, "one", "reader")
	id := r.ask(me, body("csv", "series", "", ""))
	if err := r.s3.Config.Media().Put(t.Context(), r.s3.Config.MediaBucket, export.Folder(r.One)+id.String()+"/1", "text/csv", []byte("12345")); err != nil {
		t.Fatal(err)
	}
	if got, err := r.clean(); err != nil || got.Objects != 0 {
		t.Errorf("of one that is made: %+v, %v", got, err)
	}
	r.exec("update series_export set error = 'no'")
	if got, err := r.clean(); err != nil || got.Objects != 1 || got.Bytes != 5 {
		t.Errorf("of one that has failed: %+v, %v", got, err)
	}
	r.exec("delete from series_export")
	for column, want := range map[string]int64{"requests": 1, "deletions": 1, "asked": 0} {
		r.s3.Counter.Meddle(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
			r.exec("update export_cleanup set " + column + " = " + column + " + 1")
			next.ServeHTTP(w, q)
		})
		if _, err := r.clean(); err != nil {
			t.Fatal(err)
		}
		if n := r.number("select count(*) from export_cleanup"); n != want {
			t.Errorf("after more %s: %d", column, n)
		}
		r.s3.Counter.Meddle(nil)
		r.exec("insert into export_cleanup (tenant_id, requests) values ($1, 1) on conflict do nothing", r.One)
	}
}

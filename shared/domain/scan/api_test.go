package scan_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

// rig is a library with a series of three books, one of which is gone.
type rig struct {
	*testkit.Server
	t                       *testing.T
	tenant, library, series uuid.UUID
	admin, maintainer       *testkit.Client
}

func newRig(t *testing.T) *rig {
	t.Helper()
	s := testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		scan.Routes(a, d, func(context.Context, uuid.UUID, ...events.Event) {}, nil)
	})
	r := &rig{Server: s, t: t, library: uuid.New(), series: uuid.New()}
	r.admin, r.maintainer = s.User(t, "one", auth.Admin), s.User(t, "one", auth.Maintainer)
	r.tenant = r.admin.Tenant
	r.exec(`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'L', 's3://b', 'b', '', 'series_volume', 'filename', 'file_order')`, r.tenant, r.library)
	r.exec(`insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) values ($1, $2, $3, 'S', 'S', 'S', 'S', 's')`, r.tenant, r.series, r.library)
	r.exec(`insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, deleted_at)
		select $1, gen_random_uuid(), $2, $3, k, 100, now(), 'cbz', k, k, k, case when k like '%3' then now() end
		from unnest('{Marvel/Daredevil/1,Marvel/Daredevil 2/2,Marvel/Daredevil/3}'::text[]) k`, r.tenant, r.library, r.series)
	return r
}

func (r *rig) exec(sql string, args ...any) {
	r.t.Helper()
	r.DB.Exec(r.t, sql, args...)
}

func (r *rig) end(status string, held int) {
	r.t.Helper()
	r.exec("update task set status = $1, completed_at = now() where status = 'pending'", status)
	r.exec("update scan set removals_held = $1", held)
}

// A user who does not see every series cannot find out folders of hidden ones by scanning guessed names.
func TestFoldersAreNotGuessed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	tag := uuid.New()
	r.exec("insert into sharing_tag (tenant_id, id, name) values ($1, $2, 'hidden')", r.tenant, tag)
	r.exec("insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) values ($1, gen_random_uuid(), $2, $3, 'deny')", r.tenant, tag, r.maintainer.ID)
	path := "/api/v1/libraries/" + r.library.String() + "/scan"
	r.maintainer.Do("POST", path+"?path=Marvel", nil).Want(403)
	r.maintainer.Do("POST", path+"?path=../etc", nil).Want(403) // before the path is looked at
	r.maintainer.Do("POST", "/api/v1/libraries/"+uuid.NewString()+"/scan?path=Marvel", nil).Want(403)
	r.maintainer.Do("GET", path+"-status", nil).Want(404)
	r.maintainer.Do("POST", path, nil).Want(200)
}

func TestScanOfAFolder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	path := "/api/v1/libraries/" + r.library.String() + "/scan"
	if got := r.maintainer.Do("POST", path+"?path=Marvel/Daredevil&mode=deep", nil).Want(200).Map(); got["path"] != "Marvel/Daredevil" || got["mode"] != "deep" {
		t.Errorf("%v", got)
	}
	r.maintainer.Do("POST", "/api/v1/series/"+r.series.String()+"/scan", nil).Want(409) // one at a time
	r.end("completed", 0)
	if got := r.maintainer.Do("POST", "/api/v1/series/"+r.series.String()+"/scan", nil).Want(200).Map(); got["path"] != "Marvel" {
		t.Errorf("the series lies in Marvel: %v", got)
	}
	r.end("completed", 0)
	deep := strings.Repeat("a", 250) + "/"
	deep = strings.TrimSuffix(strings.Repeat(deep, 10), "/") // longer than a key of Amazon S3
	r.exec("update book set key = $1 || '/' || id || '.cbz'", deep)
	if got := r.maintainer.Do("POST", "/api/v1/series/"+r.series.String()+"/scan", nil).Want(200).Map(); got["path"] != deep {
		t.Errorf("the series lies in %v", got)
	}
	r.end("completed", 0)
	r.exec("update book set key = id || '.cbz'")
	r.maintainer.Do("POST", "/api/v1/series/"+r.series.String()+"/scan?mode=deep", nil).Want(409)
	if got := r.maintainer.Do("POST", "/api/v1/series/"+r.series.String()+"/scan", nil).Want(200).Map(); got["path"] != "" {
		t.Errorf("the series lies in no folder of its own: %v", got)
	}
	r.maintainer.Do("POST", path+"?path=../etc", nil).Want(400)
	r.maintainer.Do("POST", "/api/v1/series/"+uuid.NewString()+"/scan", nil).Want(404)
}

func TestConfirmation(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	path := "/api/v1/libraries/" + r.library.String() + "/scan"
	r.admin.Do("POST", path+"/confirm", nil).Want(404) // never scanned
	r.admin.Do("POST", path, nil).Want(200)
	r.end("failed", 21)
	r.admin.Do("POST", path+"/confirm", nil).Want(409) // it found nothing at all, which never removes anything
	r.admin.Do("POST", path+"?path=Marvel&mode=deep", nil).Want(200)
	r.admin.Do("POST", path+"/confirm", nil).Want(409) // nothing to confirm
	r.end("failed", 21)
	if got := r.admin.Do("GET", path+"-status", nil).Want(200).Map(); got["removalsHeld"] != 21.0 || got["status"] != "failed" {
		t.Errorf("%v", got)
	}
	r.maintainer.Do("POST", path+"/confirm", nil).Want(403)
	if got := r.admin.Do("POST", path+"/confirm", nil).Want(200).Map(); got["path"] != "Marvel" || got["mode"] != "deep" || got["removalsHeld"] != 0.0 {
		t.Errorf("%v", got)
	}
	var params string
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select params::text from task where status = 'pending'").Scan(&params); err != nil {
		t.Fatal(err)
	}
	if want := `{"mode": "deep", "path": "Marvel", "removals": 21}`; params != want {
		t.Errorf("the scan may remove %s, want %s", params, want)
	}
	r.admin.Do("POST", path+"/confirm", nil).Want(409) // it is running
}

// The error that ended a scan is one of its errors, and is counted.
func TestErrorsAreCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	path := "/api/v1/libraries/" + r.library.String()
	r.maintainer.Do("POST", path+"/scan", nil).Want(200)
	for i, c := range []string{"update scan set errors = '{a,b}', error_count = 70", "update task set last_error = 'c'"} {
		r.exec(c)
		if got := r.maintainer.Do("GET", path+"/scan-status", nil).Want(200).Map(); got["errorCount"] != float64(70+i) || len(got["errors"].([]any)) != 2+i {
			t.Errorf("%v", got)
		}
	}
}

// A library that is deleted between two statements of a request is NotFound, as if it had been deleted before.
func TestScanOfALibraryThatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	tx, err := r.DB.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), "delete from library where id = $1", r.library); err != nil {
		t.Fatal(err)
	}
	answer := make(chan *testkit.Response)
	go func() { answer <- r.maintainer.Do("POST", "/api/v1/libraries/"+r.library.String()+"/scan", nil) }()
	r.DB.AwaitLock(t)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	(<-answer).Want(404)
}

func TestPurgeByRequest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	library, series := "/api/v1/libraries/"+r.library.String(), "/api/v1/series/"+r.series.String()
	for _, path := range []string{library, series} {
		first := r.maintainer.Do("DELETE", path+"/purge-deleted", nil).Want(200).Map()
		if first["message"] != "Books whose files are gone (1) will be deleted permanently" {
			t.Errorf("%v", first)
		}
		if again := r.maintainer.Do("DELETE", path+"/purge-deleted", nil).Want(200).Map(); again["taskId"] != first["taskId"] {
			t.Error("two purges at once")
		}
	}
	r.maintainer.Do("DELETE", "/api/v1/libraries/"+uuid.NewString()+"/purge-deleted", nil).Want(404)
	r.maintainer.Do("DELETE", "/api/v1/series/"+uuid.NewString()+"/purge-deleted", nil).Want(404)
	r.maintainer.Do("POST", library+"/scan", nil).Want(200)
	r.maintainer.Do("DELETE", library+"/purge-deleted", nil).Want(409)
	r.maintainer.Do("DELETE", series+"/purge-deleted", nil).Want(409)
	r.exec("update task set status = 'completed'")
	for _, c := range []struct{ is, says string }{
		{"files_refused = 0", ""},
		{"files_refused = 1", "The limit of books kept files out"},
		{"files_refused = 0, unlisted = 1", "Folders of the library L could not be listed"},
	} {
		r.exec("update scan set " + c.is)
		for _, path := range []string{library, series} {
			answer := r.maintainer.Do("DELETE", path+"/purge-deleted", nil)
			if c.says == "" {
				answer.Want(200)
			} else if got := string(answer.Want(409).Body); !strings.Contains(got, c.says) {
				t.Error(got)
			}
			r.exec("update task set status = 'completed'")
		}
	}
	// What is so of another library keeps some of the books: the answer tells.
	other := uuid.New()
	r.exec(`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'M', 's3://c', 'c', '', 'series_volume', 'filename', 'file_order')`, r.tenant, other)
	r.exec("update scan set library_id = $1", other)
	for _, path := range []string{library, series} {
		if got := string(r.maintainer.Do("DELETE", path+"/purge-deleted", nil).Want(200).Body); !strings.Contains(got, "(1) will be deleted permanently, except books that people have read, edited or chosen") {
			t.Error(got)
		}
	}
}

package scanner_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/testkit"
)

// closing makes the store fail for each listing that includes one of the folders, like a gateway without permission.
func (r *rig) closing(folders ...string) {
	r.s3.Counter.Meddle(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		q := req.URL.Query()
		for _, folder := range folders {
			within := strings.HasPrefix(q.Get("prefix"), folder)
			above := strings.HasPrefix(folder, q.Get("prefix")) && q.Get("delimiter") == "" && q.Get("start-after") <= folder
			if q.Get("list-type") != "" && (within || above) {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
		}
		next.ServeHTTP(w, req)
	})
}

func (r *rig) lookedAt() time.Time {
	at := values[*time.Time](r, "select looked_at from library where tenant_id = app.tenant()")
	if at[0] == nil {
		return time.Time{}
	}
	return *at[0]
}

// A folder that cannot be listed keeps its books and does not block other folders; missing books are not purged then,
// since their files may be there.
func TestFolderThatCannotBeListed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i, key := range []string{"A/01.cbz", "A/Locked/01.cbz", "A/Locked/02.cbz", "B/01.cbz", "C/01.cbz", "C/02.cbz", "Whole/01.cbz"} {
		testkit.WriteFile(t, r.folder, key, testkit.Comic(t, i, 1, ""))
	}
	testkit.WriteFile(t, r.folder, "Whole/cover.jpg", testkit.JPEG(t, 10, 15, 1))
	r.exec("update library set purge_deleted_on_scan = true")
	if res := r.scan("normal"); res.Status != "completed" || res.Created != 7 || res.Errors != 0 {
		t.Fatalf("%+v", res)
	}
	before := r.lookedAt()
	if before.IsZero() {
		t.Fatal("the library was not looked at")
	}

	r.closing("A/Locked/", "Whole/", "Other/.hidden/")
	testkit.WriteFile(t, r.folder, "B/02.cbz", testkit.Comic(t, 20, 1, ""))
	testkit.WriteFile(t, r.folder, "Other/.hidden/01.cbz", testkit.Comic(t, 21, 1, ""))
	if err := os.Remove(filepath.Join(r.folder, "C/02.cbz")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		res := r.scan("normal")
		want := []string{"A/Locked/ cannot be listed; check its permissions. Its books stay unchanged", "Whole/ cannot be listed; check its permissions. Its books stay unchanged"}
		if res.Status != "completed" || res.Errors != 2 || !slices.Equal(res.Texts, want) {
			t.Errorf("%+v", res)
		}
		deleted := values[string](r, "select key from book where tenant_id = app.tenant() and deleted_at is not null")
		there := values[string](r, "select key from book where tenant_id = app.tenant() and deleted_at is null order by key")
		if strings.Join(deleted, " ") != "C/02.cbz" || strings.Join(there, " ") != "A/01.cbz A/Locked/01.cbz A/Locked/02.cbz B/01.cbz B/02.cbz C/01.cbz Whole/01.cbz" {
			t.Errorf("deleted %q, there %q", deleted, there)
		}
		if covers := values[string](r, "select key from sidecar where tenant_id = app.tenant()"); len(covers) != 1 {
			t.Errorf("sidecars %q", covers)
		}
		if purges := values[string](r, "select status from task where tenant_id = app.tenant() and type = 'purge_deleted'"); len(purges) > 0 {
			t.Errorf("purges %q", purges)
		}
		if at := r.lookedAt(); !at.Equal(before) {
			t.Errorf("looked at %v, although not all of it could be", at)
		}
	}

	r.s3.Counter.Meddle(nil)
	if res := r.scan("normal"); res.Status != "completed" || res.Errors != 0 || res.Created+res.Updated+res.Deleted+res.Restored != 0 {
		t.Errorf("%+v", res)
	}
	if at := r.lookedAt(); !at.After(before) {
		t.Error("the library does not count as looked at")
	}
}

// A folder with a name that is not UTF-8 cannot be requested.
func TestFolderWithAnUnclearName(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i, key := range []string{"A/01.cbz", "Ast\xe9rix/01.cbz", "Ast\xe9rix/02.cbz", "B/\xff\xfe/01.cbz", "B/z/01.cbz", "Z/01.cbz"} {
		testkit.WriteFile(t, r.folder, key, testkit.Comic(t, i, 1, ""))
	}
	res := r.scan("normal")
	want := []string{"Ast\uFFFDrix/", "B/\uFFFD\uFFFD/"}
	for i := range want {
		want[i] += " cannot be listed: its name is not UTF-8 or contains control characters. Rename it"
	}
	if keys := values[string](r, "select key from book where tenant_id = app.tenant() order by key"); res.Status != "completed" || !slices.Equal(res.Texts, want) ||
		strings.Join(keys, " ") != "A/01.cbz B/z/01.cbz Z/01.cbz" {
		t.Errorf("%q, %+v", keys, res)
	}
}

// With too many folders that cannot be listed the scan fails, and names some of them.
func TestTooManyFoldersWithUnclearNames(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec("alter table task alter max_attempts set default 1")
	for i := range 101 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("Ast\xe9rix %03d/01.cbz", i), []byte("x"))
	}
	res := r.scan("normal")
	const want = "More than 100 folders of /books cannot be listed, among them Ast\uFFFDrix 000/, Ast\uFFFDrix 001/, "
	if res.Status != "failed" || res.Failure == nil || !strings.HasPrefix(*res.Failure, want) {
		t.Errorf("%+v", res)
	}
	if purgable := values[bool](r, "select not "+scan.UnlistedSQL("$1"), r.library); purgable[0] {
		t.Error("its books may be purged, although their files may be in those folders")
	}
}

// Folders that hold no books of the library, since they are excluded, do not count among those that cannot be listed.
func TestManyExcludedFoldersWithUnclearNames(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec("update library set excluded_patterns = 'Old/**'")
	r.exec("alter table task alter max_attempts set default 1")
	testkit.WriteFile(t, r.folder, "A/01.cbz", testkit.Comic(t, 1, 1, ""))
	for i := range 101 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("Old/Ast\xe9rix %03d/01.cbz", i), []byte("x"))
	}
	testkit.WriteFile(t, r.folder, "Z/01.cbz", testkit.Comic(t, 2, 1, ""))
	if res := r.scan("normal"); res.Status != "completed" || res.Created != 2 || res.Errors != 0 {
		t.Errorf("%+v", res)
	}
}

// A path that no index can hold keeps no other file from being scanned.
func TestPathsThatAreTooLong(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	deep := ""
	for len(deep) < 3000 { // random, since Postgres compresses repetitions
		deep += rand.Text() + rand.Text() + rand.Text() + rand.Text() + "/"
	}
	testkit.WriteFile(t, r.folder, "A/01.cbz", testkit.Comic(t, 1, 1, ""))
	for i, key := range []string{deep + "01.cbz", deep + "cover.jpg", strings.ToLower(deep) + "notes.txt"} {
		testkit.WriteFile(t, r.folder, key, testkit.Comic(t, i, 1, ""))
	}
	for range 2 {
		res := r.scan("normal")
		if res.Status != "completed" || res.Errors != 1 || len(res.Texts) != 1 || !strings.HasSuffix(res.Texts[0], ": the path is longer than 2600 bytes. Shorten the names of its folders; the file is skipped until then") {
			t.Errorf("%+v", res)
		}
		if keys := values[string](r, "select key from book where tenant_id = app.tenant()"); !slices.Equal(keys, []string{"A/01.cbz"}) {
			t.Errorf("%q", keys)
		}
	}
}

// What a scan writes about folders makes no book chosen; what people have added to it does.
func TestNamesOfFoldersAreNotChosen(t *testing.T) {
	t.Parallel()
	r := newTwo(t)
	r.exec(`update library set series_strategy = 'publisher_hierarchy', series_config = '{"storeSkippedAs": "shelf"}' where id = $1`, r.a)
	for i, name := range []string{"One", "Two", "Three"} {
		testkit.WriteFile(t, r.folder, "a/Marvel/"+name+"/1.cbz", testkit.Comic(t, 100+i, 1, ""))
	}
	testkit.WriteFile(t, r.folder, "b/Closed/1.cbz", testkit.Comic(t, 9200, 1, ""))
	r.scans(r.a, r.b)
	r.exec(`update series set custom_metadata = custom_metadata || '{"mine": 1}' where path = 'Marvel/Two'`)
	r.exec(`update series set custom_metadata = '{"shelf": "Mine"}' where path = 'Marvel/Three'`)
	r.closing("b/Closed/")
	r.library = r.b
	r.scan("normal")
	r.remove("a/Marvel/One/1.cbz", "a/Marvel/Two/1.cbz", "a/Marvel/Three/1.cbz")
	r.scans(r.a)
	r.purged(r.a)
	same(t, "kept", r.gone(), []string{"Marvel/Three/1.cbz", "Marvel/Two/1.cbz"})
}

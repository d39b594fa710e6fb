package scanner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/scan/scanner"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/testkit"
)

// At the tenant's limit a scan adds no more and says so; existing books are still changed, and files are added when
// there is room.
func TestBookQuota(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	limit := func(n int) {
		if _, err := r.db.Owner.Pool().Exec(context.Background(), "update tenant set max_books = $2 where id = $1", r.tenant, n); err != nil {
			t.Fatal(err)
		}
	}
	books := func() int64 {
		return values[int64](r, "select count(*) from book where tenant_id = app.tenant() and deleted_at is null")[0]
	}
	for i := range 5 {
		testkit.WriteFile(t, r.folder, "S"+string(rune('0'+i))+"/a.cbz", testkit.Comic(t, i, 1, ""))
	}
	limit(3)
	res := r.scan("normal")
	if res.Status != "completed" || books() != 3 || res.Created != 3 || res.Series != 3 || res.Errors != 2 || len(res.Texts) != 1 ||
		!strings.Contains(res.Texts[0], "The limit of 3 books") {
		t.Errorf("at the limit: %d books, %+v", books(), res)
	}
	// The limit removes nothing, and changes are still possible.
	limit(1)
	added := values[string](r, "select key from book where tenant_id = app.tenant() limit 1")[0] // any three
	testkit.WriteFile(t, r.folder, added, testkit.Comic(t, 9, 2, ""))
	if res = r.scan("normal"); res.Status != "completed" || books() != 3 || res.Updated != 1 || res.Created != 0 {
		t.Errorf("below: %d books, %+v", books(), res)
	}
	limit(5)
	if res = r.scan("normal"); res.Status != "completed" || books() != 5 || res.Errors != 0 {
		t.Errorf("with room: %d books, %+v", books(), res)
	}
}

// A scan that kept files out and then made room is followed by another one that adds them: otherwise a renamed book
// would be missing until the next scan. No scan follows if there is no room.
func TestScanGoesOnWithRoom(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 3 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("S/%d.cbz", i), testkit.Comic(t, i, 1, ""))
	}
	if _, err := r.db.Owner.Pool().Exec(context.Background(), "update tenant set max_books = 3 where id = $1", r.tenant); err != nil {
		t.Fatal(err)
	}
	r.scan("normal")
	was := values[uuid.UUID](r, "select id from book where tenant_id = app.tenant() and key = 'S/1.cbz'")
	if err := os.Rename(filepath.Join(r.folder, "S/1.cbz"), filepath.Join(r.folder, "S/9.cbz")); err != nil {
		t.Fatal(err)
	}
	if res := r.scan("normal"); res.Deleted != 1 || res.Errors != 1 {
		t.Errorf("at the limit: %+v", res)
	}
	ctx, cancel := context.WithCancel(t.Context())
	wait := r.work(ctx)
	defer wait()
	defer cancel()
	r.until("(select count(*) = 3 from book where tenant_id = app.tenant() and deleted_at is null and analyzed)")
	r.until("not exists (select from task where tenant_id = app.tenant() and status in ('pending', 'running'))")
	if is := values[uuid.UUID](r, "select id from book where tenant_id = app.tenant() and key = 'S/9.cbz' and deleted_at is null"); !slices.Equal(is, was) {
		t.Errorf("the renamed book is %v, want %v", is, was)
	}
	scans := func() int {
		return values[int](r, "select count(*)::integer from scan where tenant_id = app.tenant()")[0]
	}
	if n := scans(); n != 3 {
		t.Errorf("%d scans, want the two asked for and one more", n)
	}
	testkit.WriteFile(t, r.folder, "S/4.cbz", testkit.Comic(t, 4, 1, ""))
	if r.scan("normal"); scans() != 4 {
		t.Errorf("%d scans, want 4: there is no room for another file", scans())
	}
}

// At the limit a notification adds no book and is redelivered, but other changes and deletions happen.
func TestLookAtTheLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 3 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("S/%d.cbz", i), testkit.Comic(t, i, 1, ""))
	}
	r.scan("normal")
	r.exec("update tenant set max_books = 3")
	testkit.WriteFile(t, r.folder, "S/1.cbz", testkit.Comic(t, 7, 2, ""))
	if err := os.Rename(filepath.Join(r.folder, "S/2.cbz"), filepath.Join(r.folder, "S/0a.cbz")); err != nil {
		t.Fatal(err)
	}
	testkit.WriteFile(t, r.folder, "S/3.cbz", testkit.Comic(t, 3, 1, ""))
	s := &scanner.Scanner{Database: r.db.App, Library: r.s3.Store, Publish: r.publish, Parallel: 1}
	look := func(want string) {
		t.Helper()
		err := s.Look(r.ctx(), r.tenant, r.library, []string{"S/0a.cbz", "S/1.cbz", "S/2.cbz", "S/3.cbz"})
		if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "The limit of 3 books") {
			t.Errorf("looked: %v", err)
		}
		got := values[string](r, "select key || case when analyzed then '' else ' changed' end from book where tenant_id = app.tenant() and deleted_at is null order by key")
		if strings.Join(got, ", ") != want {
			t.Errorf("books: %q, want %s", got, want)
		}
	}
	look("S/0.cbz, S/1.cbz changed")
	look("S/0.cbz, S/0a.cbz changed, S/1.cbz changed")
}

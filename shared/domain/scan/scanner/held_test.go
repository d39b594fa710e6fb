package scanner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/scan/scanner"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/testkit"
)

// While the guard holds, files of a renamed folder are separate books. One that is deleted before the old ones are
// found gone, and comes back, is the book that people have read.
func TestFileOfAHeldScanGoesAndComesBack(t *testing.T) {
	t.Parallel()
	whole, part := scan.Params{Mode: "normal", Removals: 100}, scan.Params{Mode: "normal", Path: "New"}
	for name, c := range map[string]struct {
		back string // where the file returns
		gone func(r *rig)
	}{
		"found gone with the old one":   {"New/1.cbz", func(r *rig) { r.scanWith(whole) }},
		"found gone before the old one": {"New/1.cbz", func(r *rig) { r.scanWith(part); r.scanWith(whole) }},
		"announced before the old one":  {"New/1.cbz", func(r *rig) { r.noticed("New/1.cbz"); r.scanWith(whole) }},
		"the others are back": {"New/1.cbz", func(r *rig) {
			r.scanWith(part)
			r.rename("../away", "X")
			r.scanned("normal")
		}},
		"under another name": {"New/other.cbz", func(r *rig) { r.scanWith(whole) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			for i := range 12 {
				testkit.WriteFile(t, r.folder, fmt.Sprintf("X/%d.cbz", i), testkit.Comic(t, 10+i, 1, ""))
			}
			for i := range 3 {
				testkit.WriteFile(t, r.folder, fmt.Sprintf("Old/%d.cbz", i), testkit.Comic(t, i, 3, ""))
			}
			r.scanned("normal")
			r.read("ann", "Old/1.cbz", 2)
			state := "select b.id || ' ' || p.current_page from book b join progress p on p.book_id = b.id where b.tenant_id = app.tenant() and b.deleted_at is null"
			before := values[string](r, state)
			r.rename("X", "../away")
			r.rename("Old", "New")
			if res := r.scan("normal"); res.Status != "failed" || res.Held != 12 {
				t.Fatalf("%+v", res)
			}
			r.until("not exists (select from task where tenant_id = app.tenant() and status in ('pending', 'running'))")
			file := filepath.Join(t.TempDir(), "1.cbz")
			if err := os.Rename(filepath.Join(r.folder, "New/1.cbz"), file); err != nil {
				t.Fatal(err)
			}
			c.gone(r)
			if n := len(values[string](r, state)); n != 0 {
				t.Fatalf("%d read books are there", n)
			}
			if err := os.Rename(file, filepath.Join(r.folder, c.back)); err != nil {
				t.Fatal(err)
			}
			r.scanned("normal")
			after := values[string](r, state)
			if len(after) != 1 || after[0] != before[0] {
				t.Errorf("read books %q, before %q", after, before)
			}
			(&run{rig: r}).counted()
		})
	}
}

// A copy that a complete scan has found beside the original stays a separate book if both are deleted and it alone
// returns.
func TestCopyComesBackAsItself(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 4 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("S/%d.cbz", i), testkit.Comic(t, i, 2, ""))
	}
	r.scanned("normal")
	r.read("ann", "S/0.cbz", 1)
	testkit.WriteFile(t, r.folder, "T/copy.cbz", testkit.Comic(t, 0, 2, ""))
	r.scanned("normal")
	copies := "select id::text from book where tenant_id = app.tenant() and key = 'T/copy.cbz' and deleted_at is null"
	before := values[string](r, copies)
	r.rename("T/copy.cbz", "../copy")
	r.removeAll("S/0.cbz")
	if res := r.scanned("normal"); res.Deleted != 2 {
		t.Fatalf("%+v", res)
	}
	r.rename("../copy", "T/copy.cbz")
	if res := r.scanned("normal"); res.Restored != 1 || res.Moved != 0 || !slices.Equal(before, values[string](r, copies)) {
		t.Errorf("the copy took the place of the original: %+v", res)
	}
}

// A worker that dies after it has marked the books of a series deleted leaves the renaming to the next attempt.
func TestSeriesIsRenamedAfterAWorkerDied(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 3 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("Old/%d.cbz", i), []byte(fmt.Sprintf("unreadable %d", i)))
	}
	r.scan("normal")
	r.exec("update series set summary = 'Mine', locks = '{summary}' where path = 'Old'")
	state := "select concat_ws('|', id, summary, locks) from series where tenant_id = app.tenant() and book_count = 3"
	before := values[string](r, state)
	r.rename("Old", "New")
	id := r.start("normal")
	died := make(chan struct{})
	s := &scanner.Scanner{Database: r.db.App, Library: r.s3.Store, Parallel: 2}
	runner := &task.Runner{System: r.db.System, Publish: r.publish, Worker: "dies", Slots: 1, Poll: 50 * time.Millisecond,
		Handlers: map[string]task.Handler{task.ScanLibrary: func(ctx context.Context, h task.Held) (any, error) {
			ctx, die := context.WithCancel(ctx)
			s.Publish = func(context.Context, uuid.UUID, ...events.Event) {
				if values[bool](r, "select count(*) = 3 from book where tenant_id = app.tenant() and deleted_at is not null")[0] {
					die()
				}
			}
			defer close(died)
			return s.Scan(ctx, h)
		}}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	<-died
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if values[bool](r, "select exists (select from series where tenant_id = app.tenant() and path = 'New' and summary = 'Mine')")[0] {
		t.Fatal("the worker has not died before")
	}
	r.exec("update task set status = 'pending', scheduled_for = now(), completed_at = null, last_error = null where id = $1", id)
	r.until("status = 'completed' from task where tenant_id = app.tenant() and id = $1", id)
	if after := values[string](r, state); !slices.Equal(before, after) {
		t.Errorf("series %q, before %q", after, before)
	}
}

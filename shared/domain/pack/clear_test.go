package pack_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/pack/pdfcache"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
)

// clear runs a clean-up of PDF documents, as a worker does.
func (r *rig) clear(all bool) (pdfcache.Result, error) {
	r.t.Helper()
	return r.clearIn(context.Background(), all)
}

func (r *rig) clearIn(ctx context.Context, all bool) (pdfcache.Result, error) {
	r.t.Helper()
	r.maker.Publish = func(context.Context, uuid.UUID, ...events.Event) { r.told++ }
	var b pgx.Batch
	var id uuid.UUID
	s := pdfcache.Making(all)
	if err := task.Add(&b, s, &id); err != nil {
		r.t.Fatal(err)
	}
	if err := r.db.App.Run(db.In(context.Background(), db.Tenant(r.tenant)), &b); err != nil {
		r.t.Fatal(err)
	}
	r.exec("update task set status = 'running', lease_epoch = 1 where id = $1", id)
	params, err := json.Marshal(s.Params)
	if err != nil {
		r.t.Fatal(err)
	}
	h := task.Held{Tenant: r.tenant, ID: id, Type: task.CleanUpPDF, Epoch: 1, Params: params}
	out, err := r.maker.Clear(db.In(ctx, h.Scope()), h)
	r.exec("update task set status = 'completed' where id = $1", id)
	got, _ := out.(pdfcache.Result)
	return got, err
}

func (r *rig) rows() (n int) {
	r.t.Helper()
	if err := r.db.Owner.Pool().QueryRow(r.t.Context(), "select count(*) from page_pack").Scan(&n); err != nil {
		r.t.Fatal(err)
	}
	return n
}

// Packs of PDF documents are deleted by age, or all; those of other books stay.
func TestClear(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	made, err := r.pack()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what, before string
		all          bool
		want         int64
	}{
		{"another book", "", true, 0},
		{"a PDF made today", "update book set format = 'pdf'", false, 0},
		{"made long ago, kept for ever", "update page_pack set created_at = now() - interval '31 days'; insert into setting (tenant_id, key, value) select id, 'pdf_cache.max_age_days', '0' from tenant", false, 0},
		{"kept for longer", "update setting set value = '32' where key = 'pdf_cache.max_age_days'", false, 0},
		{"made long ago", "update setting set value = '30' where key = 'pdf_cache.max_age_days'", false, 1},
	} {
		if c.before != "" {
			r.exec(c.before)
		}
		got, err := r.clear(c.all)
		if err != nil || got.FilesDeleted != c.want || got.BytesReclaimed != c.want*made.Bytes || len(r.objects()) != int(1-c.want) || r.rows() != int(1-c.want) {
			t.Errorf("%s: %+v, %v; %d objects, %d rows", c.what, got, err, len(r.objects()), r.rows())
		}
	}
	if _, err := r.pack(); err != nil || r.rows() != 1 {
		t.Fatal("it is not made again", err)
	}
	r.s3.Keep("/pack/")
	if got, err := r.clear(true); err == nil || strings.Contains(err.Error(), "s3://") || got.FilesDeleted != 0 || r.rows() != 1 || len(r.objects()) != 1 {
		t.Errorf("what the store keeps: %+v, %v", got, err)
	}
	var place struct{ After uuid.UUID }
	var data []byte
	if err := r.db.Owner.Pool().QueryRow(t.Context(), "select place from task where type = $1 order by created_at desc limit 1", task.CleanUpPDF).Scan(&data); err != nil || json.Unmarshal(data, &place) != nil || place.After != uuid.Nil {
		t.Errorf("the next try leaves out what the store kept: %s, %v", data, err)
	}
	r.s3.Counter.Meddle(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(http.StatusForbidden) })
	if got, err := r.clear(true); err == nil || r.rows() != 1 {
		t.Errorf("the store refuses everything: %+v, %v, %d rows", got, err, r.rows())
	}
	r.s3.Counter.Meddle(nil)
	if got, err := r.clear(true); err != nil || got.FilesDeleted != 1 || r.rows() != 0 || len(r.objects()) != 0 {
		t.Errorf("all: %+v, %v", got, err)
	}
}

// A clean-up reports its progress, may pause after what it has deleted, and keeps the row of a pack that was made again
// meanwhile.
func TestClearMeanwhile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec("update book set format = 'pdf'")
	if _, err := r.pack(); err != nil {
		t.Fatal(err)
	}
	r.s3.Counter.Meddle(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		next.ServeHTTP(w, q)
		r.exec("update page_pack set created_at = now()")
	})
	if got, err := r.clear(true); err != nil || got.FilesDeleted != 1 || r.rows() != 1 || r.told != 1 {
		t.Errorf("made anew meanwhile: %+v, %v, %d rows, told %d times", got, err, r.rows(), r.told)
	}
	r.s3.Counter.Meddle(nil)
	pause := make(chan struct{})
	close(pause)
	if got, err := r.clearIn(task.WithPause(t.Context(), pause), true); err == nil || !strings.Contains(err.Error(), "the task is paused") || r.rows() != 0 {
		t.Errorf("to be paused: %+v, %v, %d rows", got, err, r.rows())
	}
}

// Objects that could not be deleted before a pause are reported at the end, and retried.
func TestClearRefusedBeforeAPause(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec("update book set format = 'pdf'")
	if _, err := r.pack(); err != nil {
		t.Fatal(err)
	}
	r.maker.Publish = func(context.Context, uuid.UUID, ...events.Event) {}
	h := task.Held{Tenant: r.tenant, ID: uuid.New(), Type: task.CleanUpPDF, Epoch: 1, Params: json.RawMessage(`{"all":true}`)}
	r.exec("insert into task (tenant_id, id, type, status, lease_epoch) values ($1, $2, $3, 'running', 1)", h.Tenant, h.ID, h.Type)
	pause := make(chan struct{})
	close(pause)
	run := func() error {
		t.Helper()
		_, err := r.maker.Clear(task.WithPause(db.In(t.Context(), h.Scope()), pause), h)
		if err := r.db.Owner.Pool().QueryRow(t.Context(), "select place from task where id = $1", h.ID).Scan(&h.Place); err != nil {
			t.Fatal(err)
		}
		return err
	}
	r.s3.Keep("/pack/")
	if err := run(); err == nil || !strings.Contains(err.Error(), "the task is paused") {
		t.Errorf("the first run: %v", err)
	}
	// A task shows only such an error.
	if err := run(); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "the object is locked") || r.rows() != 1 {
		t.Errorf("the second run: %v, %d rows", err, r.rows())
	}
	r.s3.Counter.Meddle(nil)
	for range 2 {
		if err := run(); err != nil && !strings.Contains(err.Error(), "the task is paused") {
			t.Errorf("tried again: %v", err)
		}
	}
	if r.rows() != 0 || len(r.objects()) != 0 {
		t.Errorf("left are %d rows and %v", r.rows(), r.objects())
	}
}

// Clean-ups run by the schedule in the settings; without one they do not run.
func TestClearDue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	now := time.Date(2026, 5, 1, 11, 59, 0, 0, time.UTC)
	due := func() int {
		t.Helper()
		n, err := pdfcache.Due(t.Context(), r.db.System, now)
		if err != nil {
			t.Error(err)
		}
		return n
	}
	if due() != 0 {
		t.Error("without a schedule")
	}
	r.db.Set(t, r.tenant, "pdf_cache.cron_schedule", "0 12 * * *")
	if due() != 0 { // the schedule is seen for the first time
		t.Error("before noon")
	}
	now = now.Add(2 * time.Minute)
	if n := due(); n != 1 {
		t.Errorf("at noon: %d", n)
	}
	if due() != 0 {
		t.Error("twice")
	}
}

// A clean-up of everything also deletes the smaller pages of PDF documents, which may be drawn with other fonts; those
// of other books stay.
func TestClearSmallerPages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	below := blob.Expiring + r.tenant.String() + "/"
	ours := below + r.book.String() + "/mac/1/100x.jpeg"
	for _, key := range []string{ours, below + uuid.NewString() + "/mac/1/100x.jpeg", below + "no book"} {
		if err := r.media.Put(t.Context(), "media", key, "image/jpeg", []byte("12345")); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what string, all bool, deleted int64, wrong string) {
		t.Helper()
		got, err := r.clear(all)
		if (err != nil) != (wrong != "") || err != nil && !strings.Contains(err.Error(), wrong) || got.FilesDeleted != deleted || got.BytesReclaimed != 5*deleted {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	check("another book", true, 0, "")
	r.exec("update book set format = 'pdf'")
	check("by age", false, 0, "")
	r.s3.Keep(ours)
	check("what the store keeps", true, 0, "the object is locked")
	r.s3.Counter.Meddle(nil)
	check("all", true, 1, "")
	var left []string
	for list, err := range r.media.List(t.Context(), "media", below, "") {
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list {
			left = append(left, o.Key)
		}
	}
	if len(left) != 2 || slices.Contains(left, ours) {
		t.Errorf("left are %v", left)
	}
	if err := r.media.Put(t.Context(), "media", ours, "image/jpeg", []byte("12345")); err != nil {
		t.Fatal(err)
	}
	pause := make(chan struct{})
	close(pause)
	if _, err := r.clearIn(task.WithPause(t.Context(), pause), true); err == nil || !strings.Contains(err.Error(), "the task is paused") {
		t.Errorf("to be paused: %v", err)
	}
	var place string
	const last = "select place ->> 'smaller' from task where type = $1 order by created_at desc limit 1"
	if err := r.db.Owner.Pool().QueryRow(t.Context(), last, task.CleanUpPDF).Scan(&place); err != nil || place != below+"no book" {
		t.Errorf("it goes on after %q, %v", place, err)
	}
}

package task

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/testkit"
)

// Every event of a task has progress and a message, from the first to the last, also when a run continues another one.
func TestEveryEventTellsProgress(t *testing.T) {
	t.Parallel()
	d, ctx := testkit.DB(t), context.Background()
	tenant := d.Tenant(t, "one")
	var told []string
	run := func(id uuid.UUID, work Handler) []string {
		t.Helper()
		told = nil
		r := worker(d, work)
		r.Handlers[BookCovers], r.Handlers[AnalyzeBook] = work, work
		r.Publish = func(_ context.Context, _ uuid.UUID, all ...events.Event) {
			for _, e := range all {
				text, err := json.Marshal(e.Data)
				must(t, err)
				var p struct{ Progress json.RawMessage }
				must(t, json.Unmarshal(text, &p))
				told = append(told, string(p.Progress))
			}
		}
		must(t, r.Take(ctx, message{tenant, id}.String()))
		return told
	}
	add := func(typ string) (id uuid.UUID) {
		t.Helper()
		var b pgx.Batch
		must(t, Add(&b, Spec{Type: typ}, &id))
		must(t, d.App.Run(db.In(ctx, db.Tenant(tenant)), &b))
		return id
	}
	expect := func(what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", what, got, want)
		}
	}

	covers := add(BookCovers)
	expect("a run that fails", run(covers, func(ctx context.Context, h Held) (any, error) {
		var b pgx.Batch
		must(t, QueueProgress(&b, h, 3, 9, nil))
		must(t, d.App.Run(ctx, &b))
		return nil, errors.New("the store is away")
	}), `{"current":0,"total":0,"message":"Making covers of books"}`, `{"current":3,"total":9,"message":"Making covers of books: 3 of 9 covers, pending"}`)
	exec(t, d, "update task set scheduled_for = now() where id = $1", covers)
	expect("the next run", run(covers, nothing), `{"current":3,"total":9,"message":"Making covers of books: 3 of 9 covers"}`,
		`{"current":3,"total":9,"message":"Making covers of books: 3 of 9 covers, completed"}`)

	expect("without counts", run(add(AnalyzeBook), nothing),
		`{"current":0,"total":0,"message":"Analysing a book"}`, `{"current":0,"total":0,"message":"Analysing a book: completed"}`)

	scan, library := add(ScanLibrary), uuid.New()
	exec(t, d, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'Comics', '/c', 'c', '', 'series_volume', 'filename', 'file_order')`, tenant, library)
	exec(t, d, "insert into scan (tenant_id, id, library_id, mode, files_total, files_processed) values ($1, $2, $3, 'normal', 100, 42)", tenant, scan, library)
	expect("a scan", run(scan, nothing), `{"current":42,"total":100,"message":"Scanning the library: 42 of 100 files"}`,
		`{"current":42,"total":100,"message":"Scanning the library: 42 of 100 files, completed"}`)
}

// Every type has a priority and a message; a type of another version shows its name.
func TestDescribe(t *testing.T) {
	t.Parallel()
	for typ, k := range kinds {
		if k.priority == 0 || k.does == "" {
			t.Errorf("%s: %+v", typ, k)
		}
	}
	if got := describe("of_another_version", Failed, 0, 0); got != "of_another_version: failed" {
		t.Error(got)
	}
}

package scanner_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/scan/scanner"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/testkit"
)

// An analysis that waits until it may read a suspected book ends when its task is cancelled.
func TestWaitingSuspectIsCancelled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "S/a.cbz", testkit.Comic(t, 1, 1, ""))
	r.scan("normal")
	s := &scanner.Scanner{Database: r.db.App, Library: r.s3.Store, Publish: r.publish, Parallel: 1}
	entered, leave := make(chan struct{}), make(chan struct{})
	go s.Beside(func(context.Context, task.Held) (any, error) { close(entered); <-leave; return nil, nil })(r.ctx(), task.Held{})
	defer close(leave)
	<-entered
	ctx, cancel := context.WithCancel(r.ctx())
	defer cancel()
	ended := make(chan error, 1)
	h := r.suspected()
	go func() {
		_, err := s.AnalyzeBooks(ctx, h)
		ended <- err
	}()
	testkit.Eventually(t, stuck, func() bool { // its next step is to wait
		return values[bool](r, "select place is not null from task where tenant_id = app.tenant() and id = $1", h.ID)[0]
	})
	cancel()
	testkit.Eventually(t, 20*time.Second, func() bool { return len(ended) > 0 })
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A suspected book is read even if others want the slot of its task, which had to wait for what was read before. Only
// when its invocation ends does it wait for the next one.
func TestSuspectHasItsTurn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "S/a.cbz", testkit.Comic(t, 1, 1, ""))
	r.scan("normal")
	s := &scanner.Scanner{Database: r.db.App, Library: r.s3.Store, Publish: r.publish, Parallel: 1}
	wanted := make(chan struct{})
	close(wanted)
	h := r.suspected()
	for within, reads := range map[time.Duration]bool{20 * time.Second: false, time.Hour: true} {
		ctx, cancel := context.WithTimeout(task.WithPause(r.ctx(), wanted), within)
		_, err := s.AnalyzeBooks(ctx, h)
		cancel()
		if read := err == nil; read != reads {
			t.Errorf("%s before the end of the invocation: %v", within, err)
		}
	}
}

// suspected adds an analysis of the only book that no worker runs, as if one had died while it ran.
func (r *rig) suspected() task.Held {
	r.t.Helper()
	var b pgx.Batch
	var id uuid.UUID
	book := values[uuid.UUID](r, "select id from book where tenant_id = app.tenant()")[0]
	if err := task.AddFor(&b, task.Analysis(book), task.OfBook(book), &id); err != nil {
		r.t.Fatal(err)
	}
	if err := r.db.App.Run(r.ctx(), &b); err != nil {
		r.t.Fatal(err)
	}
	params := values[json.RawMessage](r, "select params from task where tenant_id = app.tenant() and id = $1", id)[0]
	return task.Held{Tenant: r.tenant, ID: id, Params: params, Deaths: 1}
}

package task

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/testkit"
)

// late forwards connections to address, but delays responses that contain mark until goAhead is closed. held tells
// whether one was delayed.
func late(t *testing.T, address, mark string, goAhead <-chan struct{}) (at string, held *atomic.Bool) {
	t.Helper()
	held = new(atomic.Bool)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() }) // ends the loop below
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", address)
			if err != nil {
				_ = in.Close() // the client notices
				continue
			}
			go func() {
				_, _ = io.Copy(out, in) // until either side ends
				_ = out.Close()
			}()
			go func() {
				defer in.Close()
				for b := make([]byte, 64<<10); ; {
					n, err := out.Read(b)
					if bytes.Contains(b[:n], []byte(mark)) {
						held.Store(true)
						<-goAhead
					}
					if _, gone := in.Write(b[:n]); gone != nil || err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String(), held
}

// A task whose claim is in flight when its worker stops is given back, and does not stay with a worker that does not
// know it.
func TestClaimWhileStopping(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	tenant := d.Tenant(t, "one")
	u, err := url.Parse(d.SystemURL)
	must(t, err)
	goAhead := make(chan struct{})
	at, held := late(t, u.Host, "the marked one", goAhead)
	u.Host = at
	system, err := db.Open(db.Config{URL: u.String(), MaxConns: 4, Timeout: 30 * time.Second})
	must(t, err)
	t.Cleanup(system.Close)
	r := worker(d, func(ctx context.Context, _ Held) (any, error) { return nil, ctx.Err() })
	r.System = system
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error)
	go func() { ended <- r.Run(ctx) }()
	var b pgx.Batch
	must(t, Add(&b, Spec{Type: AnalyzeBooks, Params: map[string]string{"name": "the marked one"}}, new(uuid.UUID)))
	must(t, d.App.Run(db.In(ctx, db.Tenant(tenant)), &b))
	testkit.Eventually(t, time.Minute, func() bool { return held.Load() && count(t, d, "status = 'running'") == 1 })
	cancel()
	close(goAhead)
	must(t, <-ended)
	if count(t, d, "status = 'pending' and attempts = 0 and locked_by is null") != 1 {
		t.Error("the task stays with a worker that has stopped")
	}
}

// One request without a response from the database does not end the renewal of leases: otherwise the worker's tasks
// would be claimed by others.
func TestLeasesAreRenewedAfterAnAnswerThatNeverCame(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	add(t, d, d.Tenant(t, "one"), 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	const lease = 3 * time.Second
	all, err := claim(ctx, d.System, "w", lease, 1)
	must(t, err)
	u, err := url.Parse(d.SystemURL)
	must(t, err)
	never := make(chan struct{})
	at, held := late(t, u.Host, string(all[0].ID[:]), never)
	u.Host = at
	system, err := db.Open(db.Config{URL: u.String(), MaxConns: 4, Timeout: 30 * time.Second})
	must(t, err)
	t.Cleanup(func() { close(never); system.Close() })
	r := worker(d, func(ctx context.Context, _ Held) (any, error) { <-ctx.Done(); return nil, ctx.Err() })
	r.Lease = lease
	r.init()
	r.held[all[0].Scope()] = &running{Held: all[0], since: time.Now(), cancel: func(error) {}, pause: func() {}}
	r.System = system
	started := time.Now()
	go r.Beat(ctx)
	testkit.Eventually(t, 10*time.Second, func() bool {
		var until time.Time
		must(t, d.Owner.Pool().QueryRow(ctx, "select lease_until from task").Scan(&until))
		return until.Sub(started) > lease+2*time.Second // it was renewed repeatedly
	})
	if !held.Load() {
		t.Error("every answer came")
	}
}

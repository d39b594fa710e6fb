package db_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/testkit"
)

const (
	leakTenants = 50
	leakBatches = 10_000
	leakConns   = 4
)

func TestPoolDoesNotLeak(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	leak(t, d, d.AppURL)
}

func TestPoolDoesNotLeakBehindPgbouncer(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	leak(t, d, testkit.Pooler(t, d.AppURL, leakConns))
}

// leak runs interleaved batches of many tenants over few connections. A third is of a user with sharing tags, whose
// transactions have another role. Some are cancelled, some panic, some have an SQL error. It looks for rows of another
// tenant, and for a tenant, a user, tags or a role left on a connection.
func leak(t *testing.T, d *testkit.Databases, url string) {
	t.Helper()
	pool, err := db.Open(db.Config{URL: url, MaxConns: leakConns, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !t.Failed() { // it would wait for connections that were lost
			pool.Close()
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	refuseSuperuser(t, pool)
	tenants, limited := make([]uuid.UUID, leakTenants), uuid.New()
	for i := range tenants {
		tenants[i] = d.Tenant(t, fmt.Sprintf("t%d", i))
		if _, err := d.Owner.Pool().Exec(context.Background(), `insert into tag (tenant_id, id, name)
			select $1, gen_random_uuid(), 'tag ' || n from generate_series(1, 3) n`, tenants[i]); err != nil {
			t.Fatal(err)
		}
		d.Exec(t, `insert into account (tenant_id, id, username, email, password_hash, role) values ($1, $2, 'ann', 'ann@example.org', '', 'reader')`, tenants[i], limited)
		d.Exec(t, `with t as (insert into sharing_tag (tenant_id, id, name) values ($1, gen_random_uuid(), 'tag') returning id)
			insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) select $1, gen_random_uuid(), id, $2, 'allow' from t`, tenants[i], limited)
	}
	var next, foreign, left, cancelled, panicked, failed, good atomic.Int64
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for {
				n := next.Add(1)
				if n > leakBatches || t.Failed() {
					return
				}
				tenant := tenants[rand.IntN(leakTenants)]
				ctx := db.In(ctx, db.Tenant(tenant))
				if n%3 == 0 {
					ctx = db.In(ctx, &auth.Caller{Tenant: tenant, AccountID: limited})
				}
				switch kind := n % 20; kind {
				case 0:
					if cancelBatch(ctx, pool) {
						cancelled.Add(1)
					}
				case 1:
					if panicBatch(ctx, pool) {
						panicked.Add(1)
					}
				case 2:
					var b pgx.Batch
					b.Queue("select 1 / (count(*) - count(*)) from tag")
					if err := pool.Run(ctx, &b); err != nil {
						failed.Add(1)
					}
				default:
					rows, err := db.List[struct {
						Tenant uuid.UUID `db:"tenant_id"`
					}](ctx, pool, "select tenant_id from tag")
					if err != nil || len(rows) != 3 {
						t.Errorf("batch %d: %d rows, %v", n, len(rows), err)
						return
					}
					if c, ok := db.ScopeOf(ctx).(*auth.Caller); ok && !c.Limited {
						t.Errorf("batch %d: the user sees everything", n)
					}
					for _, r := range rows {
						if r.Tenant != tenant {
							foreign.Add(1)
						}
					}
					good.Add(1)
				}
				if n%5 == 0 {
					var setting string
					var seen int
					// Outside any tenant: nothing may be left on any connection.
					if err := pool.Pool().QueryRow(ctx, `select concat(current_setting('app.tenant', true), current_setting('app.account', true),
							current_setting('app.allowed', true), nullif(current_user, 'longbox_app')), (select count(*) from tag)`).
						Scan(&setting, &seen); err != nil {
						t.Errorf("batch %d: %v", n, err)
						return
					}
					if setting != "" || seen != 0 {
						left.Add(1)
					}
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%d good, %d cancelled, %d panicked, %d failed", good.Load(), cancelled.Load(), panicked.Load(), failed.Load())
	if foreign.Load() != 0 || left.Load() != 0 {
		t.Errorf("%d rows of another tenant, %d times a tenant left behind", foreign.Load(), left.Load())
	}
	if want := int64(leakBatches / 20); cancelled.Load() < want/2 || panicked.Load() != want || failed.Load() != want || good.Load() != leakBatches-3*want {
		t.Error("the faults did not happen as meant")
	}
}

// cancelBatch cancels a batch that is waiting in the middle. If the time was up before it had a connection, it tries
// again.
func cancelBatch(ctx context.Context, pool *db.DB) bool {
	for {
		within, cancel := context.WithTimeout(ctx, time.Duration(2+rand.IntN(6))*time.Millisecond)
		var b pgx.Batch
		b.Queue("select count(*) from tag")
		b.Queue("select pg_sleep(0.02)")
		err := pool.Run(within, &b)
		cancel()
		if !later(err, "not reachable") || ctx.Err() != nil {
			return later(err, "too long")
		}
	}
}

var errPanic = errors.New("the caller's own mistake")

// panicBatch panics while the results of a batch or a transaction are read, as a handler with a mistake would.
func panicBatch(ctx context.Context, pool *db.DB) (panicked bool) {
	defer func() { panicked = recover() == errPanic }()
	if rand.IntN(2) == 0 {
		_ = pool.Tx(ctx, func(ctx context.Context, tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "select count(*) from tag"); err != nil {
				return err
			}
			panic(errPanic)
		})
		return false
	}
	var b pgx.Batch
	b.Queue("select tenant_id from tag").Query(func(pgx.Rows) error { panic(errPanic) })
	_ = pool.Run(ctx, &b)
	return false
}

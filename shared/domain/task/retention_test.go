package task

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/testkit"
)

// ended adds tasks of a tenant that ended that many days ago.
func ended(t *testing.T, d *testkit.Databases, tenant uuid.UUID, n, days int) {
	t.Helper()
	d.Exec(t, `insert into task (tenant_id, id, type, status, parent_id, completed_at)
		select $1, gen_random_uuid(), 'analyze_book', 'completed', gen_random_uuid(), now() - interval '1 day' * $3::integer from generate_series(1, $2::integer)`,
		tenant, n, days)
}

// Old tasks go in steps, and the next call continues. Each tenant has its own retention.
func TestForgetInSteps(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	one, two := d.Tenant(t, "one"), d.Tenant(t, "two")
	ended(t, d, one, 5, 40)
	ended(t, d, two, 2, 40)
	d.Exec(t, "insert into setting (tenant_id, key, value) values ($1, $2, '50')", two, setting.TaskRetentionDays)
	for call, want := range []int64{2, 2, 1, 0} {
		if n, err := forget(t.Context(), d.System, 2, -time.Second); err != nil || n != want {
			t.Errorf("call %d deletes %d, want %d: %v", call, n, want, err)
		}
	}
	if n := count(t, d, "tenant_id = $1", two); n != 2 {
		t.Errorf("%d tasks are left of those that are kept for 50 days", n)
	}
}

// A request to delete ended tasks has no statement timeout; it deletes in steps, and the next request continues.
func TestPurgeInSteps(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t)
	ended(t, s.DB, s.One, 5, 40)
	s.DB.Exec(t, `create function public.hurry() returns trigger language plpgsql as $$ begin
		if current_setting('statement_timeout') <> '0' then raise exception 'there are only %', current_setting('statement_timeout'); end if; return null; end $$`)
	s.DB.Exec(t, "create trigger hurry after delete on task for each statement execute function public.hurry()")
	d, err := db.Open(db.Config{URL: s.DB.AppURL + "&app.request_timeout=1min", MaxConns: 1, Timeout: time.Minute})
	must(t, err)
	t.Cleanup(d.Close)
	ctx := db.In(t.Context(), &auth.Caller{Tenant: s.One, AccountID: s.User(t, "one", "admin").ID})
	if _, err := purgeIn(ctx, d, 30, 2, time.Now().Add(-time.Second)); !fault.Is(err, fault.Unavailable) || count(t, s.DB, "true") != 3 {
		t.Errorf("%d are left, %v", count(t, s.DB, "true"), err)
	}
	if n, err := purgeIn(ctx, d, 30, 2, time.Now().Add(time.Minute)); err != nil || n != 3 {
		t.Errorf("%d are deleted, %v", n, err)
	}
}

// The statements that run for all tenants do not read the ended tasks, which may be very many.
func TestPlansBesideEndedTasks(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	ended(t, d, d.Tenant(t, "one"), 100_000, 1)
	d.Exec(t, "vacuum analyze task")
	for name, q := range map[string]struct {
		sql, index string
		args       []any
	}{
		"forget":  {forgetSQL, "task_finished", []any{setting.Default(setting.TaskRetentionDays), deleteStep}},
		"orphans": {orphanSQL, "task_open_child", nil},
	} {
		rows, err := d.System.Pool().Query(t.Context(), "explain "+q.sql, q.args...)
		must(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		must(t, err)
		if plan := strings.Join(lines, "\n"); !strings.Contains(plan, q.index) || strings.Contains(plan, "Seq Scan on task") {
			t.Errorf("%s: %s", name, plan)
		}
	}
}

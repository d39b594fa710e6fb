package metric_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/metric"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

const base = "/api/v1/metrics/tasks"

func serve(t *testing.T) *testkit.Server {
	t.Helper()
	return testkit.Serve(t, metric.Routes, func(a *httpapi.API, d *db.DB) {
		task.Routes(a, d, func(context.Context, uuid.UUID, ...events.Event) {}, nil)
	})
}

func exec(t *testing.T, s *testkit.Server, sql string, args ...any) {
	t.Helper()
	s.DB.Exec(t, sql, args...)
}

// system runs a statement as the worker and the scheduler do.
func system(t *testing.T, s *testkit.Server, sql string, args ...any) {
	t.Helper()
	if _, err := s.DB.System.Pool().Exec(context.Background(), sql, args...); err != nil {
		t.Errorf("%s: %v", sql, err)
	}
}

// begun creates a task held by a worker for a while under epoch 1, which had waited for another while.
func begun(t *testing.T, s *testkit.Server, tenant uuid.UUID, typ string, took, waited time.Duration) uuid.UUID {
	t.Helper()
	id := uuid.New()
	exec(t, s, `insert into task (tenant_id, id, type, status, lease_epoch, lease_until, attempts, started_at, created_at, scheduled_for)
		values ($1, $2, $3, 'running', 1, now() + interval '1 hour', 1, now() - $4::interval, now() - $4::interval - $5::interval, now() - $4::interval - $5::interval)`,
		tenant, id, typ, took, waited)
	return id
}

// finish ends a task as its worker does; a non-empty failure is permanent.
func finish(t *testing.T, s *testkit.Server, tenant, id uuid.UUID, result any, failure string) {
	t.Helper()
	var text *string
	if failure != "" {
		text = &failure
	}
	system(t, s, "select app.finish_task($1, $2, 1, $3, $4, null)", tenant, id, result, text)
}

// counted returns the metrics of a type in the response, or nil.
func counted(t *testing.T, c *testkit.Client, typ string) map[string]any {
	t.Helper()
	for _, x := range c.Do("GET", base, nil).Want(200).Map()["byType"].([]any) {
		if m := x.(map[string]any); m["taskType"] == typ {
			return m
		}
	}
	return nil
}

// figure adds the figures of an hour, so many hours ago; of the next hour where that begins within a minute, during the
// test.
func figure(t *testing.T, s *testkit.Server, tenant uuid.UUID, hours int, typ string, succeeded, failed int) {
	t.Helper()
	exec(t, s, `insert into task_metric (tenant_id, hour, type, succeeded, failed, retried, timed, duration_ms, min_ms, max_ms, durations, waited, wait_ms)
		values ($1, date_trunc('hour', now() + interval '1 minute', 'UTC') - $2 * interval '1 hour', $3, $4::integer, $5, 0, $4::integer, $4::integer * 10, 10, 10, array_fill(0, array[13]) || array[$4::integer] || array_fill(0, array[82]), 0, 0)`,
		tenant, hours, typ, succeeded, failed)
}

func rows(t *testing.T, s *testkit.Server, tenant uuid.UUID) (n int) {
	t.Helper()
	if err := s.DB.Owner.Pool().QueryRow(context.Background(), "select count(*) from task_metric where tenant_id = $1", tenant).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// keep changes the setting of a tenant.
func keep(t *testing.T, s *testkit.Server, tenant uuid.UUID, days string) {
	t.Helper()
	exec(t, s, `insert into setting (tenant_id, key, value) values ($1, 'metrics.task_retention_days', $2)
		on conflict (tenant_id, key) do update set value = excluded.value`, tenant, days)
}

func add(t *testing.T, s *testkit.Server, tenant uuid.UUID, spec task.Spec) uuid.UUID {
	t.Helper()
	var b pgx.Batch
	var id uuid.UUID
	if err := task.Add(&b, spec, &id); err != nil {
		t.Fatal(err)
	}
	if err := s.DB.App.Run(s.In(tenant), &b); err != nil {
		t.Fatal(err)
	}
	return id
}

package metric_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/domain/metric"
	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/testkit"
)

func near(v any, want float64) bool {
	got, ok := v.(float64)
	return ok && math.Abs(got-want) <= want/100+1000 // tolerance for a busy machine
}

func TestFigures(t *testing.T) {
	t.Parallel()
	s := serve(t)
	me := s.User(t, "one", "reader")
	empty := me.Do("GET", base, nil).Want(200).Map()
	if q := empty["queue"].(map[string]any); q["pendingCount"] != 0.0 || q["oldestPendingAgeMs"] != nil {
		t.Errorf("%v", empty)
	}
	if sum := empty["summary"].(map[string]any); sum["totalExecuted"] != 0.0 || sum["tasksPerMinute"] != 0.0 || sum["avgDurationMs"] != nil || sum["avgQueueWaitMs"] != nil {
		t.Errorf("%v", empty)
	}
	// 18 scans of 100 s, one of 200 s and one of 1000 s that fails; half of them waited 20 s.
	for i := range 20 {
		took, result, failure := 100*time.Second, any(map[string]any{"filesListed": 50}), ""
		switch i {
		case 18:
			took = 200 * time.Second
		case 19:
			took, result, failure = 1000*time.Second, nil, "the store is gone"
		}
		finish(t, s, s.One, begun(t, s, s.One, task.ScanLibrary, took, time.Duration(i%2)*20*time.Second), result, failure)
	}
	m := counted(t, me, task.ScanLibrary)
	if m["executed"] != 20.0 || m["succeeded"] != 19.0 || m["failed"] != 1.0 || m["errorRatePct"] != 5.0 || m["retried"] != 0.0 || m["lastError"] != "the store is gone" {
		t.Errorf("%v", m)
	}
	if !near(m["minDurationMs"], 100_000) || !near(m["maxDurationMs"], 1_000_000) || !near(m["avgDurationMs"], 150_000) || !near(m["avgQueueWaitMs"], 10_000) {
		t.Errorf("times: %v", m)
	}
	for name, true := range map[string]float64{"p50DurationMs": 100_000, "p95DurationMs": 200_000} {
		if got := m[name].(float64); got < true || got > 1.2*true+1000 {
			t.Errorf("%s: %v, the true one is %v", name, got, true)
		}
	}
	if m["itemsProcessed"] != 950.0 || m["bytesProcessed"] != nil || math.Abs(m["throughputPerSec"].(float64)-950.0/3000) > 0.01 {
		t.Errorf("items: %v", m)
	}
	if at, err := time.Parse(time.RFC3339, m["lastErrorAt"].(string)); err != nil || time.Since(at) > time.Minute || !strings.HasSuffix(m["lastErrorAt"].(string), "Z") {
		t.Errorf("lastErrorAt: %v", m["lastErrorAt"])
	}
	finish(t, s, s.One, begun(t, s, s.One, task.PackBook, 0, 0), map[string]any{"pages": 3, "bytes": 12345}, "")
	if m := counted(t, me, task.PackBook); m["bytesProcessed"] != 12345.0 || m["itemsProcessed"] != 3.0 {
		t.Errorf("%v", m)
	}
	finish(t, s, s.One, begun(t, s, s.One, task.FindDuplicates, 0, 0), map[string]any{"filesListed": "many"}, "")
	if m := counted(t, me, task.FindDuplicates); m["itemsProcessed"] != nil || m["throughputPerSec"] != nil {
		t.Errorf("%v", m)
	}

	add(t, s, s.One, task.Spec{Type: task.AnalyzeBook})
	exec(t, s, "update task set created_at = now() - interval '90 seconds' where status = 'pending'")
	begun(t, s, s.One, task.ScanLibrary, 0, 0)
	stale := begun(t, s, s.One, task.ScanLibrary, 0, 0)
	exec(t, s, "update task set lease_until = now() - interval '1 second' where id = $1", stale)
	m = me.Do("GET", base, nil).Want(200).Map()
	sum, q := m["summary"].(map[string]any), m["queue"].(map[string]any)
	if sum["totalExecuted"] != 22.0 || sum["totalFailed"] != 1.0 || sum["totalSucceeded"] != 21.0 || sum["tasksPerMinute"].(float64) <= 0 || m["retention"] != "30" {
		t.Errorf("%v", m)
	}
	if q["pendingCount"] != 1.0 || q["processingCount"] != 1.0 || q["staleCount"] != 1.0 || !near(q["oldestPendingAgeMs"], 90_000) {
		t.Errorf("%v", q)
	}
	if m := s.User(t, "two", "admin").Do("GET", base, nil).Want(200).Map(); len(m["byType"].([]any)) != 0 || m["queue"].(map[string]any)["pendingCount"] != 0.0 {
		t.Errorf("another tenant's figures: %v", m)
	}
}

// Administrators see why a task for one user failed.
func TestFailuresOfPersonalTasks(t *testing.T) {
	t.Parallel()
	s := serve(t)
	finish(t, s, s.One, begun(t, s, s.One, task.UserPluginSync, time.Second, 0), nil, "what a service calls a user is secret")
	if of, all := counted(t, s.User(t, "one", "reader"), task.UserPluginSync), counted(t, s.User(t, "one", "admin"), task.UserPluginSync); of["lastError"] != "" || of["failed"] != 1.0 || all["lastError"] == "" {
		t.Errorf("of a task for one user others are told %v, administrators %v", of, all)
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	s := serve(t)
	me := s.User(t, "one", "reader")
	figure(t, s, s.One, 0, "a", 1, 1)
	figure(t, s, s.One, 0, "b", 2, 0)
	figure(t, s, s.One, 24, "a", 4, 0)
	figure(t, s, s.One, 6*24, "a", 8, 0)
	figure(t, s, s.One, 20*24, "a", 16, 0)
	figure(t, s, s.One, 40*24, "a", 32, 0) // beyond the retention period
	figure(t, s, s.Two, 0, "a", 64, 0)
	counts := func(query string) (out []float64, m map[string]any) {
		t.Helper()
		m = me.Do("GET", base+"/history"+query, nil).Want(200).Map()
		for _, p := range m["points"].([]any) {
			out = append(out, p.(map[string]any)["count"].(float64))
		}
		return out, m
	}
	for _, c := range []struct {
		query string
		want  []float64
	}{
		{"", []float64{8, 4, 4}},
		{"?days=1", []float64{4, 4}},
		{"?days=2&taskType=b", []float64{2}},
		{"?task_type=nothing", nil},
		{"?days=180", []float64{16, 8, 4, 4}},
		{"?days=180&granularity=day", []float64{16, 8, 4, 4}},
	} {
		got, m := counts(c.query)
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %v", c.query, m, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: %v, want %v", c.query, got, c.want)
			}
		}
	}
	figure(t, s, s.One, 1, task.RenumberSeries, 3, 0)
	if got, m := counts("?taskType=renumber_series_batch"); len(got) != 1 || got[0] != 3 {
		t.Errorf("the type that people start is stored under another name: %v", m)
	}
	_, m := counts("?taskType=a&days=1")
	last := m["points"].([]any)[1].(map[string]any)
	start, err := time.Parse(time.RFC3339, last["periodStart"].(string))
	if err != nil || start.Location() != time.UTC || start.Minute() != 0 || last["taskType"] != "a" || last["succeeded"] != 1.0 || last["failed"] != 1.0 ||
		last["minDurationMs"] != 10.0 || last["avgDurationMs"] != 10.0 || last["itemsProcessed"] != nil || last["bytesProcessed"] != nil {
		t.Errorf("%v", last)
	}
	if m["granularity"] != "hour" || m["from"] == nil || m["to"] == nil {
		t.Errorf("%v", m)
	}
	_, m = counts("?granularity=day")
	if p := m["points"].([]any)[0].(map[string]any); !strings.HasSuffix(p["periodStart"].(string), "T00:00:00Z") || p["taskType"] != nil {
		t.Errorf("%v", p)
	}
	for query, field := range map[string]string{"days=0": "days", "days=181": "days", "days=x": "days", "granularity=week": "granularity",
		"taskType=" + strings.Repeat("a", 65): "taskType"} {
		m := me.Do("GET", base+"/history?"+query, nil).Want(400).Map()
		if m["details"].([]any)[0].(map[string]any)["field"] != field {
			t.Errorf("%s: %v", query, m)
		}
	}
}

// Metrics are deleted by age, per tenant; deleting metrics and deleting tasks do not affect each other.
func TestRemoval(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin := s.User(t, "one", "admin")
	for _, tenant := range []struct {
		days string
		id   [16]byte
	}{{"7", s.One}, {"90", s.Two}} {
		keep(t, s, tenant.id, tenant.days)
		for _, day := range []int{0, 6, 8, 100} {
			figure(t, s, tenant.id, day*24, "a", 1, 0)
		}
	}
	m := admin.Do("POST", base+"/cleanup", nil).Want(200).Map()
	oldest, err := time.Parse(time.RFC3339, m["oldestRemaining"].(string))
	if m["deletedCount"] != 2.0 || m["retentionDays"] != "7" || err != nil || time.Since(oldest) > 146*time.Hour || !strings.HasSuffix(m["oldestRemaining"].(string), "Z") {
		t.Errorf("%v", m)
	}
	if a, b := rows(t, s, s.One), rows(t, s, s.Two); a != 2 || b != 4 {
		t.Errorf("after the clean-up %d and %d rows", a, b)
	}
	forget := func(want int64) {
		t.Helper()
		if n, err := metric.Forget(context.Background(), s.DB.System); err != nil || n != want {
			t.Errorf("forgot %d rows, want %d: %v", n, want, err)
		}
	}
	forget(1) // of the other tenant
	forget(0)
	keep(t, s, s.Two, "disabled")
	forget(3)
	id := begun(t, s, s.One, "a", 0, 0)
	finish(t, s, s.One, id, nil, "")
	admin.Do("DELETE", "/api/v1/tasks/purge?days=0", nil).Want(200)
	if m := counted(t, admin, "a"); m["executed"] != 3.0 {
		t.Errorf("after the tasks were purged: %v", m)
	}
	waiting := add(t, s, s.One, task.Spec{Type: "a"})
	if m := admin.Do("DELETE", base, nil).Want(200).Map(); m["deletedCount"] != 2.0 {
		t.Errorf("%v", m)
	}
	admin.Do("GET", "/api/v1/tasks/"+waiting.String(), nil).Want(200)
	if m := admin.Do("POST", base+"/cleanup", nil).Want(200).Map(); m["deletedCount"] != 0.0 || m["oldestRemaining"] != nil {
		t.Errorf("%v", m)
	}
}

func TestWhoMay(t *testing.T) {
	t.Parallel()
	s := serve(t)
	figure(t, s, s.One, 0, "a", 1, 0)
	reader, maintainer, admin := s.User(t, "one", "reader"), s.User(t, "one", "maintainer"), s.User(t, "one", "admin")
	limited := s.Key(t, admin, "BooksRead")
	for _, c := range []struct {
		method, path string
		write        bool
	}{{"GET", "", false}, {"GET", "/history", false}, {"POST", "/cleanup", true}, {"DELETE", "", true}} {
		s.Anonymous(t, "one").Do(c.method, base+c.path, nil).Want(401)
		limited.Do(c.method, base+c.path, nil).Want(403)
		if c.write {
			maintainer.Do(c.method, base+c.path, nil).Want(403)
			s.User(t, "two", "admin").Do(c.method, base+c.path, nil).Want(200)
		} else {
			reader.Do(c.method, base+c.path, nil).Want(200)
		}
	}
	if n := rows(t, s, s.One); n != 1 {
		t.Errorf("another's or a refused request left %d rows", n)
	}
}

// The database's default equals the setting's default.
func TestDefaultIsTheSettings(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, metric.Routes)
	keep(t, s, s.Two, s.User(t, "one", "admin").Do("GET", base, nil).Want(200).Map()["retention"].(string))
	var same bool
	if err := s.DB.Owner.Pool().QueryRow(context.Background(), "select app.task_metrics_since($1) = app.task_metrics_since($2)", s.One, s.Two).Scan(&same); err != nil || !same {
		t.Errorf("%s: the default is not the one of task_metrics_since: %v", setting.TaskMetricsDays, err)
	}
}

// With 180 days of every type of task, neither the metrics nor the queue are scanned completely.
func TestPlans(t *testing.T) {
	t.Parallel()
	s := serve(t)
	me := s.User(t, "one", "reader")
	keep(t, s, s.One, "180")
	for _, tenant := range [][16]byte{s.One, s.Two} {
		exec(t, s, `insert into task_metric (tenant_id, hour, type, succeeded, failed, retried, timed, duration_ms, min_ms, max_ms, durations, waited, wait_ms)
			select $1, date_trunc('hour', now(), 'UTC') - h * interval '1 hour', 'type ' || t, 1, 0, 0, 1, 10, 10, 10, array_fill(1, array[96]), 0, 0
			from generate_series(0, 4000) h, generate_series(1, 9) t`, tenant)
		exec(t, s, `insert into task (tenant_id, id, type, status, completed_at) select $1, gen_random_uuid(), 'a', case when n % 100 = 0 then 'pending' else 'completed' end, now()
			from generate_series(1, 20000) n`, tenant)
	}
	exec(t, s, "vacuum analyze task_metric")
	exec(t, s, "vacuum analyze task")
	for name, q := range metric.Statements() {
		if scanned, plan := s.Scans(t, me, q.SQL, q.Args...); len(scanned) > 0 && name != "all" {
			t.Errorf("%s reads all of %v: %s", name, scanned, plan)
		}
	}
	started := time.Now()
	me.Do("GET", base, nil).Want(200)
	me.Do("GET", base+"/history?days=180", nil).Want(200)
	t.Logf("both answers of 36,009 rows: %s", time.Since(started).Round(time.Millisecond))
}

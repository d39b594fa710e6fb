package plugin_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/plugin"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/testkit"
)

// A run that is paused, or waits for a retry, keeps the turn of its plugin: no other run works meanwhile, regardless of
// their order.
func TestRunsTakeTurns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	r.add(c, nil)
	library, _, _ := r.series("A")
	r.another(library, "B", "1", "")
	jobs := []string{r.job(c, library, nil), r.job(c, library, nil)}
	first, second := r.start(c, jobs[0]), r.start(c, jobs[1])
	paused := make(chan struct{})
	close(paused)
	r.heard()
	// The second run works and is paused; the first one waits, although it is older.
	if _, err := r.runner.Refresh(task.WithPause(r.In(r.One), paused), second); !waits(err) {
		t.Fatal(err)
	}
	for _, status := range []string{"running", "pending"} {
		r.DB.Exec(t, "update task set status = $2 where id = $1", second.ID, status)
		if _, err := r.runner.Refresh(r.In(r.One), r.again(first)); !waits(err) {
			t.Errorf("while the other is %s: %v", status, err)
		}
	}
	if told := r.heard(); strings.Contains(told, "series_metadata_updated") {
		t.Errorf("it has worked: %s", told)
	}
	r.DB.Exec(t, "update task set status = 'running' where id = $1", second.ID)
	if got, err := r.runner.Refresh(r.In(r.One), r.again(second)); err != nil || counted(t, got)["updated"] != 2 {
		t.Errorf("%v, %v", got, err)
	}
	// The run has ended, was cancelled, or is gone: the next one works.
	for _, end := range []string{"update task set status = 'completed' where id = $1", "delete from task where id = $1"} {
		r.DB.Exec(t, "update plugin set job_task = $1", second.ID)
		r.DB.Exec(t, end, second.ID)
		if got, err := r.runner.Refresh(r.In(r.One), r.again(first)); err != nil || counted(t, got)["unchanged"] != 2 {
			t.Errorf("%s: %v, %v", end, got, err)
		}
		r.DB.Exec(t, "update task set place = null where id = $1", first.ID)
	}
}

// Of concurrent runs one takes the turn.
func TestRunsBeginAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	r.add(c, nil)
	library, _, _ := r.series("A")
	var all []task.Held
	for range 6 {
		all = append(all, r.start(c, r.job(c, library, nil)))
	}
	var mu sync.Mutex
	var runs sync.WaitGroup
	worked := 0
	for _, h := range all {
		runs.Go(func() {
			got, err := r.runner.Refresh(r.In(r.One), h)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && got != nil: // its task is still running, as far as the others see
				worked++
			case !waits(err):
				t.Error(err)
			}
		})
	}
	runs.Wait()
	if worked != 1 {
		t.Errorf("%d of %d have worked", worked, len(all))
	}
}

// A dry run counts only items that meet the conditions of automatic matching, and asks only about those.
func TestJobIsTriedWithConditions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	r.add(c, nil)
	library, wanted, _ := r.series("Wanted")
	r.another(library, "Other", "", "")
	known, _ := r.another(library, "Known", "1", "1")
	tried := func(job string, want string) []any {
		t.Helper()
		m := c.Do("POST", job+"/dry-run", nil).Want(200).Map()
		if got := fmt.Sprint(m["totalEligible"], m["estSkippedConditions"], m["estSkippedNoId"]); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		return m["sample"].([]any)
	}
	job := r.job(c, library, object{"scope": "series_and_books"})
	tried(job, "6 0 0")
	only := `{"rules":[{"field":"metadata.title","operator":"starts_with","value":"Wanted"}]}`
	for _, of := range []string{"library", "plugin"} {
		r.DB.Exec(t, "update "+of+" set auto_match_conditions = $1", only)
		for _, s := range tried(job, "4 2 0") {
			if id := s.(object)["seriesId"]; id != wanted.String() && id != known.String() {
				t.Errorf("%s: %v was asked about", of, s)
			}
		}
		r.DB.Exec(t, "update "+of+" set auto_match_conditions = null")
	}
	r.DB.Exec(t, "update library set auto_match_conditions = $1", only)
	tried(r.job(c, library, object{"existingSourceIdsOnly": true}), "1 0 2")
	// If there are very many series, a sample is checked.
	r.DB.Exec(t, `insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
		select $1, gen_random_uuid(), $2, 'x' || n, 'x', 'x', 'x', 'x' from generate_series(1, 700) n`, r.One, library)
	r.DB.Exec(t, `update library set auto_match_conditions = '{"rules":[{"field":"metadata.title","operator":"equals","value":"x"}]}'`)
	m := c.Do("POST", r.job(c, library, nil)+"/dry-run", object{"sampleSize": 1}).Want(200).Map()
	if n := m["totalEligible"].(float64); n < 690 || n > 703 || n+m["estSkippedConditions"].(float64) != 703 {
		t.Errorf("%v", m)
	}
}

// Concurrent calls record how runs ended: they wait neither for each other nor for the holder of a job's lock.
func TestJobsAreSettledByMany(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	r.add(c, nil)
	library, _, _ := r.series("A")
	held := r.job(c, library, nil)
	r.DB.Exec(t, `insert into library_job (tenant_id, id, library_id, name, enabled, cron_schedule, config)
		select tenant_id, gen_random_uuid(), library_id, name, false, cron_schedule, config from library_job, generate_series(1, 300)`)
	r.DB.Exec(t, "update library_job set last_run_status = 'running', task_id = gen_random_uuid()")
	open := func() (n int) {
		t.Helper()
		if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from library_job where last_run_status = 'running'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if err := pgx.BeginFunc(t.Context(), r.DB.Owner.Pool(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "select from library_job where id = $1 for no key update", held[strings.LastIndex(held, "/")+1:]); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				if err := plugin.SettleJobs(ctx, r.DB.System); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if n := open(); n != 1 {
		t.Errorf("%d jobs are open, and one was held", n)
	}
	if err := plugin.SettleJobs(t.Context(), r.DB.System); err != nil || open() != 0 {
		t.Errorf("%d jobs are open, %v", open(), err)
	}
}

// Due jobs are found by an index, however many tenants have jobs.
func TestDueJobsAreFound(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, sql := range []string{
		"insert into tenant (id, name, secret) select gen_random_uuid(), 'many' || n, sha256(n::text::bytea) from generate_series(1, 3000) n",
		`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
			select id, gen_random_uuid(), 'a', '/a', 'b', '', 'series_volume', 'filename', 'file_order' from tenant where name like 'many%'`,
		`insert into library_job (tenant_id, id, library_id, name, enabled, cron_schedule, timezone, config, next_run_at, next_zone)
			select tenant_id, gen_random_uuid(), id, 'j', true, '0 3 * * *', case when n = 1 then 'UTC' end, '{}', now() + interval '1 day', case when n = 1 then 'UTC' else '' end
			from library, generate_series(1, 10) n`,
		"update library_job set next_run_at = now() - interval '1 hour' where (tenant_id, id) in (select tenant_id, id from library_job limit 20)",
		"vacuum analyze library_job", "vacuum analyze library", "vacuum analyze tenant", "vacuum analyze setting",
	} {
		r.DB.Exec(t, sql)
	}
	rows, err := r.DB.System.Pool().Query(t.Context(), "explain (analyze, costs off, timing off) "+plugin.DueSQL, time.Now(), "scheduler.timezone")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	plan := strings.Join(lines, "\n")
	t.Log(plan)
	if !strings.Contains(plan, "library_job_due") {
		t.Errorf("what is due is not found by its index: %s", plan)
	}
}

// A job whose time zone changes while a scheduler computes when it is due uses the new one.
func TestTimeZoneChangesMeanwhile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	r.add(c, nil)
	library, _, _ := r.series("A")
	r.job(c, library, nil)
	done := make(chan error, 1)
	if err := pgx.BeginFunc(t.Context(), r.DB.Owner.Pool(), func(tx pgx.Tx) error {
		var me int
		if err := tx.QueryRow(t.Context(), "update library_job set timezone = 'Asia/Tokyo', next_run_at = null returning pg_backend_pid()").Scan(&me); err != nil {
			return err
		}
		go func() {
			_, err := plugin.JobsDue(t.Context(), r.DB.System, time.Now())
			done <- err
		}()
		testkit.Eventually(t, 30*time.Second, func() bool {
			return r.text("select exists (select from pg_stat_activity where $1 = any(pg_blocking_pids(pid)))::text", me) == "true"
		})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := plugin.JobsDue(t.Context(), r.DB.System, time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := r.text("select next_zone || extract(hour from next_run_at at time zone 'Asia/Tokyo')::int from library_job"); got != "Asia/Tokyo3" {
		t.Errorf("it is due in %s", got)
	}
}

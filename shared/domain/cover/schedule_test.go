package cover_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/cover"
	"github.com/longbox/longbox/shared/testkit"
)

// planned is a database whose tenants have schedules, and a clock that the test moves.
type planned struct {
	*testkit.Databases
	t   *testing.T
	now time.Time
}

func (p *planned) exec(sql string, args ...any) {
	p.t.Helper()
	if _, err := p.Owner.Pool().Exec(context.Background(), sql, args...); err != nil {
		p.t.Fatal(err)
	}
}

func (p *planned) set(tenant uuid.UUID, of, schedule string) {
	p.t.Helper()
	p.exec("insert into setting (tenant_id, key, value) values ($1, $2, $3) on conflict (tenant_id, key) do update set value = excluded.value",
		tenant, "thumbnail."+of+"_cron_schedule", schedule)
}

func newPlanned(t *testing.T) *planned {
	return &planned{Databases: testkit.DB(t), t: t, now: time.Date(2026, 5, 1, 11, 59, 0, 0, time.UTC)}
}

func TestSchedule(t *testing.T) {
	t.Parallel()
	p := newPlanned(t)
	one, two := p.Tenant(t, "one"), p.Tenant(t, "two")
	p.Tenant(t, "without")
	p.set(one, "book", "0 12 * * *")
	p.set(one, "series", "30 12 * * *")
	p.set(two, "book", "*/30 * * * * *") // with seconds
	end := func() { p.exec("update task set status = 'completed', completed_at = now()") }
	for _, s := range []struct {
		what string
		do   func()
		wait time.Duration
		want int
	}{
		{"the schedules are met", nil, 0, 0},
		{"half a minute", nil, 30 * time.Second, 1},
		{"its task still waits", nil, 30 * time.Second, 1}, // that of noon
		{"the series", end, 30 * time.Minute, 2},
		{"at once again", end, 0, 0},
		{"the scheduler was away for days: each once", nil, 60 * time.Hour, 3},
		{"suspended", func() { end(); p.exec("update tenant set status = 'suspended'") }, 48 * time.Hour, 0},
		{"served again: once", func() { p.exec("update tenant set status = 'active'") }, time.Second, 3},
		{"never", func() {
			end()
			p.set(one, "book", "")
			p.set(one, "series", "")
			p.exec("delete from setting where tenant_id = $1", two)
		}, 48 * time.Hour, 0},
	} {
		if s.do != nil {
			s.do()
		}
		p.now = p.now.Add(s.wait)
		if n, err := cover.Due(context.Background(), p.System, p.now); err != nil || n != s.want {
			t.Errorf("%s: %d tasks, want %d, %v", s.what, n, s.want, err)
		}
	}
	var got string
	err := p.Owner.Pool().QueryRow(t.Context(), `select string_agg(w, ', ' order by w) from (
		select concat_ws(' ', o.name, t.type, t.params->>'force', count(*)) as w from task t join tenant o on o.id = t.tenant_id
		where t.library_id is null and t.series_id is null and t.book_id is null group by o.name, t.type, t.params->>'force') x`).Scan(&got)
	if err != nil || got != "one generate_series_thumbnails false 3, one generate_thumbnails false 3, two generate_thumbnails false 4" {
		t.Errorf("tasks: %s, %v", got, err)
	}
}

func TestSeveralSchedulersQueueOneTask(t *testing.T) {
	t.Parallel()
	p := newPlanned(t)
	for _, name := range []string{"one", "two"} {
		tenant := p.Tenant(t, name)
		p.set(tenant, "book", "0 0 * * *")
		p.set(tenant, "series", "0 0 * * *")
	}
	for _, want := range []int{0, 4} { // the first day the schedules are met
		p.now = p.now.Add(24 * time.Hour)
		var mu sync.Mutex
		var schedulers sync.WaitGroup
		total := 0
		for i := range 8 {
			schedulers.Go(func() {
				n, err := cover.Due(context.Background(), p.System, p.now.Add(time.Duration(i)*time.Second))
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				total += n
			})
		}
		schedulers.Wait()
		if total != want {
			t.Errorf("%d tasks, want %d", total, want)
		}
	}
}

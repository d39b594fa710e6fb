package cover_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/domain/cover"
	"github.com/longbox/longbox/shared/testkit"
)

// before is where the clocks of these tests start: a minute before noon.
var before = time.Date(2026, 5, 1, 11, 59, 0, 0, time.UTC)

const books, series = "thumbnail.book_cron_schedule", "thumbnail.series_cron_schedule"

func TestSchedule(t *testing.T) {
	t.Parallel()
	p, now := testkit.DB(t), before
	one, two := p.Tenant(t, "one"), p.Tenant(t, "two")
	p.Tenant(t, "without")
	p.Set(t, one, books, "0 12 * * *")
	p.Set(t, one, series, "30 12 * * *")
	p.Set(t, two, books, "*/30 * * * * *") // with seconds
	end := func() { p.Exec(t, "update task set status = 'completed', completed_at = now()") }
	for _, s := range []struct {
		what string
		do   func()
		wait time.Duration
		want int
	}{
		{"the schedules are met", nil, 0, 0},
		{"half a minute", nil, 30 * time.Second, 1},
		{"its task still waits", nil, 30 * time.Second, 1}, // the one from noon
		{"the series", end, 30 * time.Minute, 2},
		{"at once again", end, 0, 0},
		{"the scheduler was away for days: each once", nil, 60 * time.Hour, 3},
		{"suspended", func() { end(); p.Exec(t, "update tenant set status = 'suspended'") }, 48 * time.Hour, 0},
		{"served again: once", func() { p.Exec(t, "update tenant set status = 'active'") }, time.Second, 3},
		{"never", func() {
			end()
			p.Set(t, one, books, "")
			p.Set(t, one, series, "")
			p.Exec(t, "delete from setting where tenant_id = $1", two)
		}, 48 * time.Hour, 0},
	} {
		if s.do != nil {
			s.do()
		}
		now = now.Add(s.wait)
		if n, err := cover.Due(context.Background(), p.System, now); err != nil || n != s.want {
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

// Schedules use the tenant's time zone from when a scheduler sees that it was set.
func TestTimeZone(t *testing.T) {
	t.Parallel()
	p, now := testkit.DB(t), before
	one, two := p.Tenant(t, "one"), p.Tenant(t, "two")
	p.Set(t, one, books, "0 21 * * *") // in Tokyo this is noon
	p.Set(t, two, books, "0 21 * * *")
	for _, s := range []struct {
		what, zone string
		wait       time.Duration
		want       int
	}{
		{"met in UTC", "", 0, 0},
		{"met in Tokyo", "Asia/Tokyo", time.Second, 0},
		{"noon", "Asia/Tokyo", time.Minute, 1},
		{"the evening, for the other tenant", "Asia/Tokyo", 9 * time.Hour, 1},
		{"noon again", "Asia/Tokyo", 15 * time.Hour, 1},
		{"in UTC again", "UTC", time.Second, 0},
		{"the evening, for both", "UTC", 9 * time.Hour, 2},
	} {
		if s.zone != "" {
			p.Set(t, one, "scheduler.timezone", s.zone)
		}
		now = now.Add(s.wait)
		if n, err := cover.Due(context.Background(), p.System, now); err != nil || n != s.want {
			t.Errorf("%s: %d tasks, want %d, %v", s.what, n, s.want, err)
		}
		p.Exec(t, "update task set status = 'completed', completed_at = now()")
	}
}

func TestSeveralSchedulersQueueOneTask(t *testing.T) {
	t.Parallel()
	p, now := testkit.DB(t), before
	for _, name := range []string{"one", "two"} {
		tenant := p.Tenant(t, name)
		p.Set(t, tenant, books, "0 0 * * *")
		p.Set(t, tenant, series, "0 0 * * *")
	}
	for _, want := range []int{0, 4} { // schedules are seen for the first time
		now = now.Add(24 * time.Hour)
		var mu sync.Mutex
		var schedulers sync.WaitGroup
		total := 0
		for i := range 8 {
			schedulers.Go(func() {
				n, err := cover.Due(context.Background(), p.System, now.Add(time.Duration(i)*time.Second))
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

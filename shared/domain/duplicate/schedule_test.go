package duplicate_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/duplicate"
	"github.com/longbox/longbox/shared/testkit"
)

// planned is a database whose tenants have schedules, and a clock that the test controls.
type planned struct {
	*testkit.Databases
	t   *testing.T
	now time.Time
}

func (p *planned) set(tenant uuid.UUID, key, value string) {
	p.t.Helper()
	p.Set(p.t, tenant, "deduplication."+key, value)
}

// after advances the clock and returns how many scans were started.
func (p *planned) after(d time.Duration) int {
	p.t.Helper()
	p.now = p.now.Add(d)
	n, err := duplicate.Due(context.Background(), p.System, p.now)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

// end ends the scans that were started.
func (p *planned) end() {
	p.t.Helper()
	p.Exec(p.t, "update task set status = 'completed', completed_at = now()")
}

func newPlanned(t *testing.T) *planned {
	return &planned{Databases: testkit.DB(t), t: t, now: time.Date(2026, 5, 1, 11, 59, 0, 0, time.UTC)}
}

func TestSchedule(t *testing.T) {
	t.Parallel()
	p := newPlanned(t)
	one, two := p.Tenant(t, "one"), p.Tenant(t, "two")
	p.set(one, "cron_schedule", "0 12 * * *")
	p.set(two, "cron_schedule", "*/30 * * * * *") // with seconds
	p.Tenant(t, "without")
	steps := []struct {
		what string
		do   func()
		wait time.Duration
		want int
	}{
		{"the schedules are met", nil, 0, 0},
		{"half a minute", nil, 30 * time.Second, 1},
		{"its scan still waits", nil, 30 * time.Second, 1}, // the one from noon
		{"the same moment", p.end, 0, 0},
		{"the scheduler was away for days: each once", nil, 60 * time.Hour, 2},
		{"at once again", p.end, 0, 0},
		{"disabled", func() { p.set(two, "enabled", "false") }, time.Minute, 0},
		{"enabled again: what was due meanwhile is not caught up with", func() { p.set(two, "enabled", "true") }, time.Minute, 0},
		{"its next time", nil, 30 * time.Second, 1},
		{"another schedule counts from when it is met", func() { p.end(); p.set(two, "cron_schedule", "0 0 * * *") }, time.Minute, 0},
		{"never", func() { p.set(one, "cron_schedule", ""); p.set(two, "cron_schedule", "") }, 48 * time.Hour, 0},
		{"tonight", func() { p.set(one, "cron_schedule", "0 0 * * *") }, 0, 0},
		{"suspended", func() { p.Exec(p.t, "update tenant set status = 'suspended'") }, 48 * time.Hour, 0},
		{"served again: once", func() { p.Exec(p.t, "update tenant set status = 'active'") }, time.Second, 1},
	}
	for _, s := range steps {
		if s.do != nil {
			s.do()
		}
		if got := p.after(s.wait); got != s.want {
			t.Errorf("%s: %d scans, want %d", s.what, got, s.want)
		}
	}
	var tasks, others int
	if err := p.Owner.Pool().QueryRow(t.Context(), "select count(*), count(*) filter (where type <> 'find_duplicates') from task").Scan(&tasks, &others); err != nil || tasks != 6 || others != 0 {
		t.Errorf("%d tasks, %d of another type, %v", tasks, others, err)
	}
}

func TestSeveralSchedulersStartOneScan(t *testing.T) {
	t.Parallel()
	p := newPlanned(t)
	const tenants = 3
	for _, name := range []string{"one", "two", "three"} {
		p.set(p.Tenant(t, name), "cron_schedule", "0 0 * * *")
	}
	started := 0
	for day := range 3 {
		p.now = p.now.Add(24 * time.Hour)
		var mu sync.Mutex
		var schedulers sync.WaitGroup
		for i := range 8 {
			schedulers.Go(func() {
				n, err := duplicate.Due(context.Background(), p.System, p.now.Add(time.Duration(i)*time.Second))
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				started += n
			})
		}
		schedulers.Wait()
		p.end()
		if started != day*tenants { // schedules are seen for the first time
			t.Errorf("day %d: %d scans so far", day, started)
		}
	}
}

// An invalid schedule does not affect the others.
func TestScheduleThatCannotBeRead(t *testing.T) {
	t.Parallel()
	p := newPlanned(t)
	p.set(p.Tenant(t, "bad"), "cron_schedule", "now and then")
	p.set(p.Tenant(t, "good"), "cron_schedule", "0 * * * *")
	total := 0
	for range 2 {
		n, err := duplicate.Due(context.Background(), p.System, p.now)
		if err == nil {
			t.Error("nothing was said")
		}
		total, p.now = total+n, p.now.Add(time.Hour)
	}
	if total != 1 {
		t.Errorf("%d scans", total)
	}
}

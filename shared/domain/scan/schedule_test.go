package scan_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/testkit"
)

// scheduled creates a library with a schedule, due at a time.
func scheduled(t *testing.T, d *testkit.Databases, tenant uuid.UUID, cron, zone string, due time.Time) uuid.UUID {
	t.Helper()
	id := uuid.New()
	_, err := d.Owner.Pool().Exec(t.Context(), `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy,
		scan_enabled, scan_cron, scan_timezone, next_scan_at) values ($1, $2, $3, '/b', 'b', '', 'series_volume', 'filename', 'file_order', true, $4, $5, $6)`,
		tenant, id, id.String(), cron, zone, due)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestSeveralSchedulersStartOneScan(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	tenant := d.Tenant(t, "one")
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, cron := range []string{"0 12 * * *", "0 0 12 * * *", "*/10 * * * * *"} {
		scheduled(t, d, tenant, cron, "", now)
	}
	started := 0
	for round := range 3 { // the scans of the previous round have ended
		var mu sync.Mutex
		var schedulers sync.WaitGroup
		for range 8 {
			schedulers.Go(func() {
				n, err := scan.Due(context.Background(), d.System, now.Add(time.Duration(round)*time.Second))
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				started += n
			})
		}
		schedulers.Wait()
		if _, err := d.Owner.Pool().Exec(t.Context(), "update task set status = 'completed', completed_at = now()"); err != nil {
			t.Fatal(err)
		}
	}
	if started != 3 {
		t.Errorf("%d scans of three libraries", started)
	}
}

// Every library, of every tenant, that is configured for a scan on start gets one.
func TestOnStartReachesEveryLibrary(t *testing.T) {
	t.Parallel()
	for name, libraries := range map[string]int{"a full last batch": 3, "a rest": 4} { // per tenant, of two; two per query
		d := testkit.DB(t)
		for _, tenant := range []uuid.UUID{d.Tenant(t, "one"), d.Tenant(t, "two")} {
			for range libraries {
				scheduled(t, d, tenant, "0 0 * * *", "", time.Now().Add(time.Hour))
			}
		}
		d.Exec(t, "update library set scan_on_start = true")
		off := scheduled(t, d, d.Tenant(t, "three"), "0 0 * * *", "", time.Now().Add(time.Hour))
		started, err := scan.OnStartBy(t.Context(), d.System, 2, map[uuid.UUID]bool{})
		if err != nil || started != 2*libraries {
			t.Errorf("%s: %d scans of %d libraries started, %v", name, started, 2*libraries, err)
		}
		var queued, unwanted int
		if err := d.Owner.Pool().QueryRow(t.Context(), "select count(distinct library_id), count(*) filter (where library_id = $1) from task", off).Scan(&queued, &unwanted); err != nil {
			t.Fatal(err)
		}
		if queued != 2*libraries || unwanted != 0 {
			t.Errorf("%s: %d libraries have a scan, %d of those that want none", name, queued, unwanted)
		}
	}
}

// Nothing but a person scans a library that is not active.
func TestInactiveLibraryIsNotScanned(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(d *testkit.Databases, tenant uuid.UUID) error{
		"due": func(d *testkit.Databases, _ uuid.UUID) error {
			_, err := scan.Due(t.Context(), d.System, time.Now())
			return err
		},
		"on start": func(d *testkit.Databases, _ uuid.UUID) error {
			_, err := scan.OnStart(t.Context(), d.System, map[uuid.UUID]bool{})
			return err
		},
		"resumed": func(d *testkit.Databases, tenant uuid.UUID) error {
			return scan.Resume(t.Context(), d.System, tenant)
		},
	} {
		d := testkit.DB(t)
		tenant := d.Tenant(t, "one")
		active := scheduled(t, d, tenant, "0 0 * * *", "", time.Now().Add(-time.Hour))
		inactive := scheduled(t, d, tenant, "0 0 * * *", "", time.Now().Add(-time.Hour))
		d.Exec(t, "update library set scan_on_start = true, is_active = id <> $1", inactive)
		if err := start(d, tenant); err != nil {
			t.Fatal(err)
		}
		var scans, wanted int
		if err := d.Owner.Pool().QueryRow(t.Context(), "select count(*), count(*) filter (where library_id = $1) from scan", active).Scan(&scans, &wanted); err != nil || scans != 1 || wanted != 1 {
			t.Errorf("%s: %d scans, %d of the active library, %v", name, scans, wanted, err)
		}
	}
}

// After an error, only the libraries that have no scan on start yet get one.
func TestOnStartAfterAnError(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	tenant := d.Tenant(t, "one")
	for range 3 {
		scheduled(t, d, tenant, "0 0 * * *", "", time.Now().Add(time.Hour))
	}
	d.Exec(t, "update library set scan_on_start = true")
	d.Exec(t, "create sequence scans")
	d.Exec(t, `create function refuse() returns trigger language plpgsql security definer as $$
		begin if nextval('public.scans') = 2 then raise 'no scan'; end if; return new; end $$`)
	d.Exec(t, "create trigger refuse before insert on scan for each row execute function refuse()")
	done := map[uuid.UUID]bool{}
	for try, want := range []int{2, 1, 0} {
		started, err := scan.OnStart(t.Context(), d.System, done)
		if started != want || (err != nil) != (try == 0) {
			t.Errorf("call %d: %d scans started, want %d; %v", try, started, want, err)
		}
		d.Exec(t, "update task set status = 'completed', completed_at = now()")
	}
}

// A library without its own time zone uses its tenant's from when that is set.
func TestTimeZoneOfTheTenant(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	tokyo, other := d.Tenant(t, "tokyo"), d.Tenant(t, "other")
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	due := noon.Add(15 * time.Hour) // three o'clock UTC
	library, own, foreign := scheduled(t, d, tokyo, "0 3 * * *", "", due), scheduled(t, d, tokyo, "0 3 * * *", "UTC", due), scheduled(t, d, other, "0 3 * * *", "", due)
	for _, step := range []struct {
		zone string
		now  time.Time
		want int // scans that are started
		next time.Time
	}{
		{"", noon, 0, due},
		{"Asia/Tokyo", noon.Add(time.Minute), 0, noon.Add(6 * time.Hour)},
		{"Asia/Tokyo", noon.Add(6 * time.Hour), 1, noon.Add(30 * time.Hour)},
		{"Europe/Paris", noon.Add(6*time.Hour + time.Minute), 0, noon.Add(13 * time.Hour)},
		{"Europe/Paris", noon.Add(13 * time.Hour), 1, noon.Add(37 * time.Hour)},
		{"UTC", noon.Add(14 * time.Hour), 0, due},
		{"UTC", due, 3, due.Add(24 * time.Hour)},
	} {
		if step.zone != "" {
			d.Set(t, tokyo, "scheduler.timezone", step.zone)
		}
		var schedulers sync.WaitGroup
		var started atomic.Int64
		for range 4 {
			schedulers.Go(func() {
				n, err := scan.Due(context.Background(), d.System, step.now)
				if err != nil {
					t.Error(err)
				}
				started.Add(int64(n))
			})
		}
		schedulers.Wait()
		var next, others, foreigns time.Time
		err := d.Owner.Pool().QueryRow(t.Context(), `select a.next_scan_at, b.next_scan_at, c.next_scan_at from library a, library b, library c
			where a.id = $1 and b.id = $2 and c.id = $3`, library, own, foreign).Scan(&next, &others, &foreigns)
		if err != nil || int(started.Load()) != step.want || !next.Equal(step.next) {
			t.Errorf("%s at %s: %d scans, the next at %s, %v; want %d and %s", step.zone, step.now, started.Load(), next, err, step.want, step.next)
		}
		if step.now.Before(due) && (!others.Equal(due) || !foreigns.Equal(due)) {
			t.Errorf("%s at %s: next scans with an own zone %s, of another tenant %s", step.zone, step.now, others, foreigns)
		}
		d.Exec(t, "update task set status = 'completed', completed_at = now()")
	}
}

// Each night has one scan, even if half past two comes twice, or not at all.
func TestDaylightSaving(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	tenant := d.Tenant(t, "one")
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for name, day := range map[string]time.Time{
		"clocks go back": time.Date(2026, 10, 24, 12, 0, 0, 0, berlin), "clocks go forward": time.Date(2026, 3, 28, 12, 0, 0, 0, berlin),
	} {
		library := scheduled(t, d, tenant, "30 2 * * *", "Europe/Berlin", day)
		var at []time.Time
		for now := day; now.Before(day.Add(50 * time.Hour)); now = now.Add(10 * time.Minute) {
			n, err := scan.Due(t.Context(), d.System, now)
			if err != nil {
				t.Fatal(err)
			}
			if n > 0 {
				at = append(at, now.In(berlin))
			}
			if _, err := d.Owner.Pool().Exec(t.Context(), "update task set status = 'completed', completed_at = now() where status = 'pending'"); err != nil {
				t.Fatal(err)
			}
		}
		// The first was due at the start.
		if len(at) != 3 || at[1].Day() == at[2].Day() || at[1].Hour() > 3 || at[2].Hour() != 2 {
			t.Errorf("%s: %v", name, at)
		}
		if _, err := d.Owner.Pool().Exec(t.Context(), "delete from library where id = $1", library); err != nil {
			t.Fatal(err)
		}
	}
}

// A scan that ends writes to its library while the next one is due: they do not block each other.
func TestDueWhileAScanEnds(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	tenant := d.Tenant(t, "one")
	now := time.Now()
	library := scheduled(t, d, tenant, "* * * * *", "", now)
	if _, err := scan.Due(t.Context(), d.System, now); err != nil {
		t.Fatal(err)
	}
	d.Exec(t, "update task set status = 'running', lease_epoch = 1, lease_until = now() + interval '1 hour'")
	d.Exec(t, "update library set next_scan_at = $1", now)
	worker, err := d.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = worker.Rollback(context.Background()) }()
	if _, err := worker.Exec(t.Context(), "select app.hold_task(tenant_id, id, 1) from task"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := scan.Due(context.Background(), d.System, now)
		done <- err
	}()
	d.AwaitLock(t)
	_, ended := worker.Exec(t.Context(), "update library set last_scanned_at = now() where id = $1", library)
	if err := errors.Join(ended, worker.Commit(t.Context()), <-done); err != nil {
		t.Error(err)
	}
}

// A library that is locked forever, as by a worker whose machine is gone, does not block the scans of others.
func TestDueBesideALockedLibrary(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	tenant := d.Tenant(t, "one")
	now := time.Now()
	held := scheduled(t, d, tenant, "0 0 * * *", "", now.Add(-time.Hour)) // the first to be due
	other := scheduled(t, d, tenant, "0 0 * * *", "", now)
	holder, err := d.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(context.Background()) }()
	if _, err := holder.Exec(t.Context(), "select from library where id = $1 for update", held); err != nil {
		t.Fatal(err)
	}
	system, err := db.Open(db.Config{URL: d.SystemURL, MaxConns: 2, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(system.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if n, err := scan.Due(ctx, system, now); n != 1 || err == nil {
		t.Errorf("%d scans started, %v", n, err)
	}
	var scans int
	if err := d.Owner.Pool().QueryRow(t.Context(), "select count(*) from scan where library_id = $1", other).Scan(&scans); err != nil || scans != 1 {
		t.Errorf("%d scans of the other library, %v", scans, err)
	}
}

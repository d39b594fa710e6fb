package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/testkit"
)

// The rounds of the scheduler start the search for duplicates by the setting, and workers make it.
func TestDuplicatesAreLookedForBySchedule(t *testing.T) {
	t.Parallel()
	r := newRig(t, false)
	o := r.owner("one")
	r.exec("insert into setting (tenant_id, key, value) values ($1, 'deduplication.cron_schedule', '* * * * * *')", o.tenant)
	stop := r.work(1)
	defer stop()
	testkit.Eventually(t, time.Minute, func() bool {
		var done, others int
		err := r.db.Owner.Pool().QueryRow(context.Background(), `select count(*) filter (where type = 'find_duplicates' and status = 'completed'),
			count(*) filter (where type <> 'find_duplicates' or status = 'failed') from task`).Scan(&done, &others)
		if err != nil || others > 0 {
			t.Fatalf("%d other tasks, %v", others, err)
		}
		return done > 1
	})
}

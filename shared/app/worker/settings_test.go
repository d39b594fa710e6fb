package worker_test

import (
	"testing"

	"github.com/longbox/longbox/shared/app/worker"
	"github.com/longbox/longbox/shared/testkit"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	required := map[string]string{"DATABASE_URL": "postgres://localhost/longbox", "DATABASE_SYSTEM_URL": "postgres://localhost/longbox"}
	testkit.Bounds[worker.Config](t, required, map[string]testkit.Bound{
		"DATABASE_CONNECT_TIMEOUT": {In: []string{"50ms"}, Out: []string{"49ms", "-1s"}},
		"WORKER_SLOTS":             {In: []string{"1", "64"}, Out: []string{"0", "65"}},
		"WORKER_PARALLEL":          {In: []string{"1", "64"}, Out: []string{"0", "65"}},
		"ANALYSIS_TIMEOUT":         {In: []string{"1s", "10m"}, Out: []string{"999ms", "10m1s"}},
		"WORKER_POLL":              {In: []string{"100ms"}, Out: []string{"99ms"}},
		"WORKER_LEASE":             {In: []string{"1s", "15m"}, Out: []string{"999ms", "15m1s"}},
		"WORKER_SLICE":             {In: []string{"0s"}, Out: []string{"-1ns"}},
		"WORKER_MARGIN":            {In: []string{"1s", "5m"}, Out: []string{"999ms", "5m1s"}},
		"PAGE_PACKS":               {In: []string{"read", "scan", "never"}, Out: []string{"always"}},
	})
}

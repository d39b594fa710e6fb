package db_test

import (
	"testing"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/testkit"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	testkit.Bounds[db.Config](t, map[string]string{"DATABASE_URL": "postgres://localhost/longbox"}, map[string]testkit.Bound{
		"DATABASE_MAX_CONNS":       {In: []string{"1", "1000"}, Out: []string{"0", "1001"}},
		"DATABASE_TIMEOUT":         {In: []string{"0s", "1h"}, Out: []string{"-1ns"}},
		"DATABASE_CONNECT_TIMEOUT": {In: []string{"0s", "50ms"}, Out: []string{"-1ns", "49ms"}},
	})
}

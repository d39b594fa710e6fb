package db_test

import (
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/testkit"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	testkit.Bounds[db.Config](t, map[string]string{"DATABASE_URL": "postgres://localhost/longbox"}, map[string]testkit.Bound{
		"DATABASE_MAX_CONNS":       {In: []string{"1", "1000"}, Out: []string{"0", "1001"}},
		"DATABASE_TIMEOUT":         {In: []string{"100ms", "1h"}, Out: []string{"-1ns", "0s", "99ms"}},
		"DATABASE_CONNECT_TIMEOUT": {In: []string{"0s", "50ms"}, Out: []string{"-1ns", "49ms"}},
	})
}

// An empty URL would lead to any Postgres on this machine.
func TestAddressIsRequired(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{"": "DATABASE_URL: ", "DATABASE_SYSTEM_URL": "DATABASE_SYSTEM_URL: "} {
		if _, err := db.Open(db.Config{Setting: setting, MaxConns: 1, Timeout: time.Second}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want an error that begins with %s", err, want)
		}
	}
}

package scheduler

import (
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/app"
	"github.com/longbox/longbox/shared/platform/db"
)

// The scheduler replaces DATABASE_CONNECT_TIMEOUT; a bad value is an error all the same, as in the other programs.
func TestBadConnectTimeout(t *testing.T) {
	t.Parallel()
	_, _, err := New(Config{Config: app.Config{Database: db.Config{MaxConns: 2, Timeout: time.Second, Connect: -time.Second}}, Every: 5 * time.Second})
	if err == nil || !strings.Contains(err.Error(), "DATABASE_CONNECT_TIMEOUT") {
		t.Errorf("%v", err)
	}
}

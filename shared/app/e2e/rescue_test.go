package e2e_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/redisconn"
	"github.com/longbox/longbox/shared/testkit"
)

// If workers die as often as a scan may be tried, the scheduler marks the scan as failed, and its listeners get the
// event.
func TestDeadScanIsTold(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	library := s.library(admin, "Books", "")
	admin.Do("POST", "/api/v1/libraries/"+library.String()+"/scan", nil).Want(200)
	s.exec("update task set status = 'running', attempts = max_attempts, lease_until = now() - interval '1 s' where type = 'scan_library'")
	s.round(time.Now())

	options, err := redisconn.Options(testkit.RedisURL(t))
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	for _, topic := range []events.Topic{events.Tasks, events.Scans} {
		all, err := events.Range(context.Background(), client, events.Key(s.One, topic), events.ID{}, nil, 100)
		if err != nil || len(all) == 0 {
			t.Fatalf("%s: %v, %v", topic, all, err)
		}
		if last := all[len(all)-1].Data; !strings.Contains(last, `"status":"failed"`) || !strings.Contains(last, "stopped responding") {
			t.Errorf("%s: the last event is %s", topic, last)
		}
	}
}

package rendition

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/longbox/longbox/shared/testkit"
)

// late is a Redis that executes commands, but responds too late.
type late struct{ now atomic.Bool }

func (l *late) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *late) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l *late) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if l.now.Load() {
			err = &net.OpError{Op: "read", Err: context.DeadlineExceeded}
			cmd.SetErr(err)
		}
		return err
	}
}

// A lock whose response came too late ends with the work, like any other.
func TestLockOfALateAnswer(t *testing.T) {
	t.Parallel()
	client, hook := testkit.Redis(t), &late{}
	client.AddHook(hook)
	m, tenant := &Maker{Redis: client}, uuid.New()
	if err := client.Ping(t.Context()).Err(); err != nil { // an open connection
		t.Fatal(err)
	}
	hook.now.Store(true)
	release := m.alone(t.Context(), tenant, "k", func() { t.Error("somebody is waited for") })
	hook.now.Store(false)
	keys := func() []string {
		all, err := client.Keys(t.Context(), "lb:{"+tenant.String()+"}:*").Result()
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if all := keys(); len(all) != 1 {
		t.Fatalf("the lock was not taken: %q", all)
	}
	release()
	for until := time.Now().Add(lockLife / 3); len(keys()) > 0; {
		if time.Now().After(until) {
			t.Fatal("the lock outlives the work")
		}
	}
}

package rendition

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/longbox/longbox/shared/format/imaging"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
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

// While Redis is away, its log line comes once a minute, not with every page, and names one of them.
func TestLogOfALostRedis(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { client.Close() })
	m := &Maker{Redis: client, Renderer: imaging.New(imaging.Config{})}
	var tenant uuid.UUID // of a context without a request
	load := func(context.Context) ([]byte, error) { return testkit.JPEG(t, 60, 90, 1), nil }
	var lines bytes.Buffer
	out := log.Writer()
	log.SetOutput(&lines) // where slog writes by default
	defer log.SetOutput(out)
	for i := range 20 {
		key := fmt.Sprintf("page/%d", i)
		if _, err := m.render(t.Context(), key, Cover{30, 85}.spec(), false, load, func(ctx context.Context, size int) bool { return m.secondMiss(ctx, tenant, key, size) }); err != nil {
			t.Fatal(err)
		}
	}
	if said := lines.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "tenant="+tenant.String()) || !strings.Contains(said, "key=page/0") {
		t.Errorf("the log has:\n%s", said)
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

// A lock that nobody releases ends while those who wait for it still do. A miss is remembered for a day, and so is
// how much was stored.
func TestWhatEndsByItself(t *testing.T) {
	t.Parallel()
	client, tenant := testkit.Redis(t), uuid.New()
	m := &Maker{Redis: client}
	m.alone(t.Context(), tenant, "k", func() { t.Error("somebody is waited for") })
	for range 2 {
		m.secondMiss(t.Context(), tenant, "k", 1)
	}
	for what, most := range map[string]time.Duration{"render:" + short("k"): renderWithin - time.Second, "miss:" + short("k"): 24 * time.Hour,
		"stored:" + uuid.Nil.String(): 24 * time.Hour} {
		if left := client.PTTL(t.Context(), "lb:{"+tenant.String()+"}:"+what).Val(); left < most/4 || left > most {
			t.Errorf("%s ends in %s", what, left)
		}
	}
}

// An account that asks for very many sizes of pages stores no more of them; others do.
func TestStoredBytesOfAnAccount(t *testing.T) {
	t.Parallel()
	m, tenant := &Maker{Redis: testkit.Redis(t)}, uuid.New()
	one, other := db.In(t.Context(), &auth.Caller{AccountID: uuid.New()}), db.In(t.Context(), &auth.Caller{AccountID: uuid.New()})
	for i, c := range []struct {
		ctx  context.Context
		size int
		want bool
	}{
		{one, 1 << 30, true}, {one, 1<<30 - 1, true}, {one, 2, false}, {one, 1, true}, {one, 1, false}, {other, 2 << 30, true}, {other, 1, false},
		{t.Context(), 15 << 30, true}, {t.Context(), 2 << 30, false}, {t.Context(), 1 << 30, true},
	} {
		key := fmt.Sprint("k", i)
		if m.secondMiss(c.ctx, tenant, key, c.size) {
			t.Errorf("%d: stored at the first miss", i)
		}
		if got := m.secondMiss(c.ctx, tenant, key, c.size); got != c.want {
			t.Errorf("%d: stored is %t, want %t", i, got, c.want)
		}
	}
}

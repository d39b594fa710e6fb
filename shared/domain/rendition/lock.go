package rendition

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

const (
	lockLife = 30 * time.Second      // lock expiry, in case a process dies while it renders
	lockLook = 50 * time.Millisecond // poll interval while another process holds the lock
)

// unlock deletes the lock if it is still ours.
var unlock = redis.NewScript(`if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`)

// alone waits until no other process renders the object, then takes the lock. waited is called once if another process
// holds it; that counts as a second request for the object, so that it is stored. Without Redis nobody waits.
func (m *Maker) alone(ctx context.Context, tenant uuid.UUID, key string, waited func()) (release func()) {
	name := "lb:{" + tenant.String() + "}:render:" + short(key)
	mine := rand.Text()
	free := func() error { return unlock.Run(context.WithoutCancel(ctx), m.Redis, []string{name}, mine).Err() }
	look := time.NewTicker(lockLook)
	defer look.Stop()
	for first := true; ; first = false {
		got, err := m.Redis.SetNX(ctx, name, mine, lockLife).Result()
		if err != nil {
			m.lost("cannot lock a rendition; it may be made twice", tenant, key, err)
			return func() { go free() } // the lock may be ours with a late reply; do not wait for a dead Redis
		}
		if got {
			return func() {
				if err := free(); err != nil {
					m.lost("cannot release the lock of a rendition; it expires", tenant, key, err)
				}
			}
		}
		if first {
			waited()
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return func() {}
		}
	}
}

// lost logs a failure of Redis once a minute: every page would fail in the same way.
func (m *Maker) lost(what string, tenant uuid.UUID, key string, err error) {
	if m.said.Due() {
		slog.Warn("Redis fails: "+what+"; more failures of the next minute are not logged", "tenant", tenant, "key", key, "error", err)
	}
}

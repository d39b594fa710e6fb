package redisconn

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// LogTo sends the client library's own messages, such as failed dials, to log at debug level instead of standard error.
// The setting is global: call it once, before the first client is made.
func LogTo(log *slog.Logger) { redis.SetLogger(logger{log}) }

type logger struct{ log *slog.Logger }

func (l logger) Printf(ctx context.Context, format string, v ...any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, "redis: "+fmt.Sprintf(format, v...))
	}
}

// sayEvery is the minimum interval of log lines about a Redis that is lost, refuses every request (its disk is full) or
// is repeatedly late.
const sayEvery = time.Minute

// Seldom limits how often the same line is logged.
type Seldom struct{ said atomic.Int64 } // Unix seconds

// Due reports whether the line is to be logged now.
func (s *Seldom) Due() bool {
	now, said := time.Now().Unix(), s.said.Load()
	return now-said >= int64(sayEvery/time.Second) && s.said.CompareAndSwap(said, now)
}

package events

import (
	"cmp"
	"fmt"
	"time"
)

// Config sets the limits of publishing. The zero value means the defaults.
type Config struct {
	Replay    int64         `env:"EVENT_REPLAY" envDefault:"10000"`   // entries kept per tenant and topic, approximately
	Retention time.Duration `env:"EVENT_RETENTION" envDefault:"168h"` // until a stream without new entries is deleted
	Timeout   time.Duration `env:"EVENT_TIMEOUT" envDefault:"20ms"`   // limit of one Publish's wait for Redis
	Pause     time.Duration `env:"EVENT_PAUSE" envDefault:"3s"`       // after a failure, no Publish waits for this long
	Hold      time.Duration `env:"EVENT_HOLD" envDefault:"30s"`       // unsent events are dropped after this long
	Queue     int           `env:"EVENT_QUEUE" envDefault:"10000"`    // unsent events that one process keeps
}

// Validate returns an error that names the first setting out of bounds. The zero value stands for the defaults.
func (c Config) Validate() error {
	switch {
	case c == (Config{}):
		return nil
	case c.Replay < 1 || c.Replay > 1_000_000:
		return fmt.Errorf("EVENT_REPLAY: must be 1 to 1,000,000, is %d", c.Replay)
	case c.Retention < time.Minute:
		return fmt.Errorf("EVENT_RETENTION: must be at least 1m, is %s", c.Retention)
	case c.Timeout < time.Millisecond || c.Timeout > time.Second:
		return fmt.Errorf("EVENT_TIMEOUT: must be 1ms to 1s, is %s", c.Timeout)
	case c.Pause < time.Millisecond || c.Pause > time.Minute:
		return fmt.Errorf("EVENT_PAUSE: must be 1ms to 1m, is %s", c.Pause)
	case c.Hold < time.Second || c.Hold > time.Minute:
		return fmt.Errorf("EVENT_HOLD: must be 1s to 1m, is %s", c.Hold)
	case c.Queue < 1 || c.Queue > 1_000_000:
		return fmt.Errorf("EVENT_QUEUE: must be 1 to 1,000,000, is %d", c.Queue)
	}
	return nil
}

func (c Config) withDefaults() Config {
	return Config{
		Replay: cmp.Or(c.Replay, 10_000), Retention: cmp.Or(c.Retention, 168*time.Hour), Timeout: cmp.Or(c.Timeout, 20*time.Millisecond),
		Pause: cmp.Or(c.Pause, 3*time.Second), Hold: cmp.Or(c.Hold, 30*time.Second), Queue: cmp.Or(c.Queue, 10_000),
	}
}

package events_test

import (
	"testing"

	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/testkit"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	testkit.Settings(t, events.Config{}.WithDefaults())
}

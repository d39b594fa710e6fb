package events

import (
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	testkit.Settings(t, Config{}.withDefaults())
}

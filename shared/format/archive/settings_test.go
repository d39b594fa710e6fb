package archive

import (
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	testkit.Settings(t, Limits{}.WithDefaults())
}

package pdfcache

import (
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

// The api ends with the same values as media and worker.
func TestSettings(t *testing.T) {
	t.Parallel()
	testkit.Bounds[Config](t, nil, map[string]testkit.Bound{"PAGE_PACKS": {In: []string{"read", "scan", "never"}, Out: []string{"always"}}})
}

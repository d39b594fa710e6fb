package scanner

import (
	"context"
	"testing"

	"github.com/longbox/longbox/shared/domain/scan"
)

// A scan that paused after it had begun to remove books continues: the removed ones no longer count in the comparison.
func TestGuardAfterAPause(t *testing.T) {
	t.Parallel()
	r := run{params: scan.Params{Mode: scan.Normal, Path: "A"}, at: place{Deleted: 2}}
	if err := r.guard(context.Background()); err != nil {
		t.Error(err)
	}
}

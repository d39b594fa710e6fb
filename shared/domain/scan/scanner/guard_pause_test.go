package scanner

import (
	"context"
	"testing"

	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/platform/fault"
)

// A scan that was paused after it had removed the last books of a folder goes on; one that found nothing at all does not.
func TestGuardAfterAPause(t *testing.T) {
	t.Parallel()
	r := run{params: scan.Params{Mode: scan.Normal, Path: "A"}, at: place{Deleted: 2}}
	if err := r.guard(context.Background()); err != nil {
		t.Error(err)
	}
	r.at.Deleted = 0
	if err := r.guard(context.Background()); !fault.Is(err, fault.BadRequest) {
		t.Errorf("an empty folder: %v", err)
	}
}

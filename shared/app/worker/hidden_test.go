package worker

import (
	"testing"
	"time"

	"github.com/longbox/longbox/shared/domain/task"
)

// A notification whose worker dies each time is delivered for over an hour before the queue gives up.
func TestNotificationIsHiddenLonger(t *testing.T) {
	t.Parallel()
	w := &Worker{Runner: &task.Runner{Lease: time.Minute}}
	for receives, want := range map[int]time.Duration{0: time.Minute, 1: time.Minute, 2: 2 * time.Minute, 4: 8 * time.Minute, 5: 15 * time.Minute, 12: 15 * time.Minute} {
		if got := w.hiddenAtFirst(receives); got != want {
			t.Errorf("receive %d: hidden for %s, want %s", receives, got, want)
		}
	}
}

package task_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/testkit"
)

// A task that could not be queued is queued by the next request; after that, none is for a while.
func TestOnceAfterAFailure(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	var o task.Once
	calls, away, book := 0, errors.New("away"), uuid.New()
	for _, fails := range []error{away, nil, nil} {
		if err := o.Add(context.Background(), d.App, nil, book, func(*pgx.Batch, *uuid.UUID) error {
			calls++
			return fails
		}); !errors.Is(err, fails) {
			t.Errorf("call %d: %v", calls, err)
		}
	}
	if calls != 2 {
		t.Errorf("%d calls, want one that fails and one that succeeds", calls)
	}
}

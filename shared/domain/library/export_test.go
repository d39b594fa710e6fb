package library

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/db"
)

// Remove deletes a library in parts of that many books, and counts the cancelled tasks.
func Remove(ctx context.Context, d *db.DB, id uuid.UUID, books int, patience time.Duration) (tasks int, found bool, err error) {
	cancelled, found, err := remove(ctx, d, id, books, time.Now().Add(patience))
	return len(cancelled), found, err
}

// Leave hands over what must survive a library.
func Leave(ctx context.Context, d *db.DB, id uuid.UUID, patience time.Duration) error {
	_, err := leave(ctx, d, id, examineBooks, time.Now().Add(patience))
	return err
}

// LeaveIn is Leave, which examines that many books per step.
func LeaveIn(ctx context.Context, d *db.DB, id uuid.UUID, examine int, patience time.Duration) error {
	_, err := leave(ctx, d, id, examine, time.Now().Add(patience))
	return err
}

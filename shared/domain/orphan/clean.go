package orphan

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/events"
)

// maxErrors is the maximum number of the store's error messages in a result.
const maxErrors = 10

// Cleaned is the result of a clean-up.
type Cleaned struct {
	CoversDeleted     int64    `json:"coversDeleted"`
	ThumbnailsDeleted int64    `json:"thumbnailsDeleted" doc:"Number of deleted smaller page images and page packs"`
	BytesFreed        int64    `json:"bytesFreed"`
	Failures          int64    `json:"failures" doc:"Number of objects that the store failed to delete"`
	Errors            []string `json:"errors" nullable:"false" maxItems:"11" doc:"Error messages of the store for the first failures"`
}

// cleaning is the checkpoint of a clean-up.
type cleaning struct {
	Cleaned
	place
	Seen int64 `json:"seen"`
}

// Cleaner deletes orphans.
type Cleaner struct {
	Finder
	Publish events.Publish
}

// Clean handles cleanup_orphaned_files tasks. An object that cannot be deleted does not block the others. A run that
// has lost its lease notices before it deletes anything more: the references are queried under the lease.
func (c *Cleaner) Clean(ctx context.Context, h task.Held) (any, error) {
	at := cleaning{Cleaned: Cleaned{Errors: []string{}}}
	if err := h.Resume(&at); err != nil {
		return nil, err
	}
	err := c.walk(ctx, h.Tenant, at.place, func(f found) (bool, error) {
		if err := c.remove(ctx, f, f.kind.Folder(h.Tenant), &at); err != nil {
			return false, err
		}
		at.place, at.Seen = f.next, at.Seen+int64(f.seen)
		var b pgx.Batch
		if err := task.QueueProgress(&b, h, at.Seen, 0, at); err != nil { // the total is unknown
			return false, err
		}
		if err := c.Database.Run(ctx, &b); err != nil {
			return false, err
		}
		c.Publish(ctx, h.Tenant, task.ProgressEvent(h, at.Seen, 0))
		if task.MustPause(ctx) {
			return false, task.Paused(at)
		}
		return true, nil
	})
	switch {
	case err != nil && ctx.Err() == nil && unanswered(err):
		return nil, away(err)
	case err != nil:
		return nil, err
	}
	return at.Cleaned, nil
}

// remove deletes the orphans of one page of the listing, and counts them.
func (c *Cleaner) remove(ctx context.Context, f found, below string, at *cleaning) error {
	done, err := c.Media.DeleteAll(ctx, c.Bucket, below, f.orphans)
	if left := new(blob.Undeleted); errors.As(err, &left) {
		at.Failures += int64(len(left.Keys))
		if len(at.Errors) < maxErrors {
			at.Errors = append(at.Errors, left.Message) // without its location: the bucket is the operator's
		}
	} else if err != nil {
		return err
	}
	if f.kind.name == coverFile {
		at.CoversDeleted += done.Objects
	} else {
		at.ThumbnailsDeleted += done.Objects
	}
	at.BytesFreed += done.Bytes
	return nil
}

package scanner

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
)

// present removes the books whose file was missing when it was to be read, and counts them by library. They stay
// unchanged: a scan decides, with its guard, whether the file or a whole disk is gone. A file that is listed anyway (a
// broken link) keeps its problem; so does one whose name no listing can contain, since it cannot be requested.
func (s *Scanner) present(ctx context.Context, found []analyzed) (there []analyzed, gone map[uuid.UUID]int, err error) {
	keys := map[string][]string{} // by bucket
	missing := func(a analyzed) bool {
		return a.problem != nil && errors.Is(a.problem.Err, blob.ErrNotFound) && !unclear(a.Key)
	}
	for _, a := range found {
		if missing(a) {
			keys[a.Bucket] = append(keys[a.Bucket], a.Prefix+a.Key)
		}
	}
	if len(keys) == 0 {
		return found, nil, nil
	}
	listed := map[[2]string]bool{}
	for bucket, some := range keys {
		slices.Sort(some)
		objects, err := s.Library.Look(ctx, bucket, slices.Compact(some))
		if err != nil && !errors.Is(err, blob.ErrNotFound) { // the bucket is missing, and so is everything in it
			return nil, nil, err
		}
		for _, o := range objects {
			listed[[2]string{bucket, o.Key}] = true
		}
	}
	gone = map[uuid.UUID]int{}
	there = slices.DeleteFunc(slices.Clone(found), func(a analyzed) bool {
		away := missing(a) && !listed[[2]string{a.Bucket, a.Prefix + a.Key}]
		if away {
			gone[a.LibraryID]++
		}
		return away
	})
	return there, gone, nil
}

// lookAgain looks at books whose file has changed since it was listed: the new version is analysed. An empty file is
// not requested, so reading it cannot show a change: outside a scan it is looked at again, too. A file that is gone by
// now is left to a scan, too.
func (s *Scanner) lookAgain(ctx context.Context, h task.Held, found []analyzed) error {
	keys, gone := map[uuid.UUID][]string{}, map[uuid.UUID]int{}
	for _, a := range found {
		if unclear(a.Key) {
			continue
		}
		if a.problem != nil && blob.Lost(a.problem.Err) ||
			a.Size == 0 && h.ParentID == nil {
			keys[a.LibraryID] = append(keys[a.LibraryID], a.Prefix+a.Key)
		}
	}
	for id, some := range keys {
		n, err := s.lookAt(ctx, h.Tenant, id, some, true)
		if err != nil {
			return err
		}
		if n > 0 {
			gone[id] = n
		}
	}
	return s.leaveToScan(ctx, h, gone)
}

// leaveToScan has libraries with missing files scanned: after the scan of this task, or immediately, unless a scan has
// just failed, which an administrator should see.
func (s *Scanner) leaveToScan(ctx context.Context, h task.Held, gone map[uuid.UUID]int) error {
	for id, n := range gone {
		var b pgx.Batch
		var later *uuid.UUID
		settled := false
		db.Value(&b, &later, "update scan set files_gone = files_gone + $2 where tenant_id = app.tenant() and id = $1 returning id", h.ParentID, n)
		db.Value(&b, &settled, `select not exists (select from task where tenant_id = app.tenant() and library_id = $1 and type = 'scan_library'
			and status = 'failed' and completed_at > now() - interval '10 minutes')`, id)
		if err := s.Database.Run(ctx, &b); err != nil {
			return err
		}
		if later != nil || !settled {
			continue
		}
		b = pgx.Batch{}
		var started uuid.UUID
		if err := scan.StartAgain(&b, id, scan.Params{Mode: scan.Normal}, uuid.Must(uuid.NewV7()), &started); err != nil {
			return err
		}
		if err := s.Database.Run(ctx, &b); err != nil {
			return err
		}
		s.Added.Tell(ctx, h.Tenant)
	}
	return nil
}

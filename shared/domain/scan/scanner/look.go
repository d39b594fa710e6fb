package scanner

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/filesystem"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
)

// lookBatch is the number of keys per transaction.
const lookBatch = 500

// Look syncs the books of some keys with the current state of the store, whatever a notification said about them. It
// does the same as a scan, for these keys only: a book is created, changes, is restored or marked deleted, and what
// changed is analysed. Keys are complete; those that are neither a book nor a sidecar of the library are ignored. ctx
// is scoped to the tenant or to one of its tasks. It fails with Conflict, after all the rest is done, if the tenant's
// limit kept books out.
func (s *Scanner) Look(ctx context.Context, tenant, libraryID uuid.UUID, keys []string) error {
	_, err := s.lookAt(ctx, tenant, libraryID, keys, false)
	return err
}

// lookAt is Look; with keep, books whose file is gone are only counted.
func (s *Scanner) lookAt(ctx context.Context, tenant, libraryID uuid.UUID, keys []string, keep bool) (gone int, err error) {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	var full error
	for part := range slices.Chunk(keys, lookBatch) {
		r, err := s.open(ctx, tenant, libraryID)
		if err != nil || r == nil {
			return gone, err
		}
		r.keep = keep
		if err := r.look(ctx, part); err != nil {
			return gone, err
		}
		gone += r.spared
		if r.refused > 0 && !keep { // a scan finds what is looked at unannounced
			full = fault.New(fault.Conflict, "%s", r.full())
		}
	}
	return gone, full
}

func (r *run) look(ctx context.Context, keys []string) error {
	if keys = r.heeded(keys); len(keys) == 0 {
		return nil
	}
	objects, err := r.Library.Look(ctx, r.library.Bucket, keys)
	if err == nil && r.keep { // there was no notification of them
		objects, err = r.shown(ctx, objects)
	}
	if err != nil {
		return r.explain(err)
	}
	var out []events.Event
	var gone []uuid.UUID
	err = r.Database.Tx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		out, gone, err = r.settle(ctx, tx, keys, objects)
		return err
	})
	if err != nil {
		return err
	}
	r.Added.Tell(ctx, r.tenant) // tasks may have been added
	r.Publish(ctx, r.tenant, out...)
	return r.followOver(ctx, r.tenant, r.library.ID, gone)
}

// shown removes objects that are only reachable through a symbolic link (see unlinked).
func (r *run) shown(ctx context.Context, objects []blob.Object) (out []blob.Object, err error) {
	reached := map[string]error{} // by folder
	for _, o := range objects {
		folder := o.Key[:strings.LastIndexByte(o.Key, '/')+1]
		missing, known := reached[folder]
		if !known {
			missing = filesystem.Reach(ctx, r.Library, r.library.Bucket, r.library.Root, folder)
			reached[folder] = missing
		}
		switch {
		case missing == nil:
			out = append(out, o)
		case !fault.Is(missing, fault.BadRequest):
			return nil, missing
		}
	}
	return out, nil
}

// heeded returns the keys that the library accepts as books or sidecars.
func (r *run) heeded(keys []string) (out []string) {
	for _, key := range keys {
		rel, below := strings.CutPrefix(key, r.library.Prefix)
		_, book := r.selected(rel)
		kind, _ := r.sidecar(rel)
		if below && (book || kind != "") {
			out = append(out, key)
		}
	}
	return out
}

// settle compares and writes in one transaction with the library locked, so that no other writer interferes. It returns
// the books whose files are gone, including those that were marked deleted before: a look that failed after that is
// repeated.
func (r *run) settle(ctx context.Context, tx pgx.Tx, keys []string, objects []blob.Object) (out []events.Event, gone []uuid.UUID, err error) {
	d, books, err := r.compareKeys(ctx, tx, keys, objects)
	if err != nil {
		return nil, nil, err
	}
	done, err := r.apply(ctx, tx, d)
	if err != nil {
		return nil, nil, err
	}
	out = done.events(r)
	for _, w := range done.deleted {
		gone = append(gone, w.ID)
	}
	for _, b := range books {
		if b.Deleted && !slices.ContainsFunc(objects, func(o blob.Object) bool { return o.Key == r.library.Prefix+b.Key }) {
			gone = append(gone, b.ID)
		}
	}
	arranged, err := arrange(ctx, tx, r.set, r.library.ID, slices.Collect(maps.Keys(r.touched)))
	return append(out, arranged...), gone, err
}

// compareKeys locks the library and compares objects with its books and sidecars of the keys. It returns what the look
// may change, and the books.
func (r *run) compareKeys(ctx context.Context, tx pgx.Tx, keys []string, objects []blob.Object) (d difference, books []known, err error) {
	var b pgx.Batch
	var sidecars []knownSidecar
	var room *int64
	below := make([]string, len(keys))
	for i, key := range keys {
		below[i] = strings.TrimPrefix(key, r.library.Prefix)
	}
	queueLock(&b, r.library.ID)
	if r.library.MaxBooks != nil {
		db.Value(&b, &room, "select app.book_room()")
	}
	db.All(&b, &books, "select "+knownColumns+" from book where tenant_id = app.tenant() and library_id = $1 and key = any($2) order by key", r.library.ID, below)
	db.All(&b, &sidecars, "select "+knownSidecarColumns+" from sidecar where tenant_id = app.tenant() and library_id = $1 and key = any($2) order by key", r.library.ID, below)
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return d, nil, err
	}
	d = r.differ(objects, books, r.started)
	d.sidecars, d.lost = r.differSidecars(objects, sidecars, r.started)
	if r.keep {
		r.spared, d.vanished = len(d.vanished), nil
	}
	if room != nil {
		d.changes, r.refused = within(*room, d.changes)
	}
	return d, books, nil
}

// apply writes the differences that a look has found.
func (r *run) apply(ctx context.Context, tx pgx.Tx, d difference) (done *changed, err error) {
	var b pgx.Batch
	done = &changed{}
	if len(d.changes) > 0 {
		if err := r.queueChanges(&b, d.changes, done); err != nil {
			return nil, err
		}
	}
	if len(d.vanished) > 0 {
		r.queueDeleted(&b, d.vanished, done)
	}
	if err := r.queueSidecars(&b, d.sidecars); err != nil {
		return nil, err
	}
	if err := r.queueLost(&b, d.lost); err != nil {
		return nil, err
	}
	// An older look that is still running must not override what was found unchanged now.
	if len(d.same) > 0 {
		b.Queue("update book set seen_at = $2 where tenant_id = app.tenant() and id = any($1) and seen_at < $2", d.same, r.started)
	}
	return done, tx.SendBatch(ctx, &b).Close()
}

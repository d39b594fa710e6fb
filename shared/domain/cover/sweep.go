package cover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

const (
	sweepEvery = 24 * time.Hour // per tenant
	retrySweep = time.Hour      // after a failure: as often as the scheduler calls
	// A round of the scheduler has less than a minute for all that is due. A store that does not answer may exceed
	// sweepFor by at most hangFor.
	sweepFor = 20 * time.Second
	hangFor  = 10 * time.Second
)

// Youngest is the age from which an unreferenced object may be deleted: an object is stored before its row is written,
// and its addresses at the CDN are valid for an hour and a quarter.
const Youngest = 24 * time.Hour

// Swept is a kind of objects of the media bucket.
type Swept struct {
	Folder func(tenant uuid.UUID) string // prefix of all objects of the kind
	// Unnamed returns the unreferenced objects of one page of the listing that were stored before a time.
	Unnamed func(ctx context.Context, d *db.DB, tenant uuid.UUID, listed []blob.Object, before time.Time) ([]blob.Object, error)
}

// Covers are the covers.
var Covers = Swept{Folder, Unnamed}

// Sweep deletes the covers that nothing shows any more: of removed books and series, earlier contents, another size or
// quality, another secret; and the unreferenced objects of other kinds, whose folders come after that of the covers, in
// this order. It goes through each tenant's objects once a day, for some seconds per call; the next call continues. The
// scheduler calls it every hour; concurrent calls are safe.
//
// A book whose file is gone keeps its cover, since it may return. A cover that is shown again at the moment of its
// deletion is made again on request.
func Sweep(ctx context.Context, system *db.DB, media *blob.Store, bucket string, now time.Time, others ...Swept) error {
	return sweep(ctx, system, media, bucket, now, sweepFor, others...)
}

// sweep is Sweep with a time limit; it always handles at least a thousand objects, so each call makes progress.
func sweep(ctx context.Context, system *db.DB, media *blob.Store, bucket string, now time.Time, given time.Duration, others ...Swept) error {
	// Longest waiting first, so that a tenant that fails does not block the others.
	rows, err := system.Pool().Query(ctx, `select t.id from tenant t left join cover_sweep s on s.tenant_id = t.id
		where t.status <> 'deleting' and (s.due_at is null or s.due_at <= $1) order by s.due_at nulls first, t.id limit 1000`, now)
	if err != nil {
		return fmt.Errorf("find tenants with covers to check: %w", err)
	}
	tenants, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return fmt.Errorf("find tenants with covers to check: %w", err)
	}
	until := time.Now().Add(given)
	ctx, cancel := context.WithDeadline(ctx, until.Add(hangFor))
	defer cancel()
	var failures error
	for i, id := range tenants {
		if i > 0 && !time.Now().Before(until) {
			break
		}
		s := sweeper{system: system, media: media, bucket: bucket, tenant: id, now: now, until: until, kinds: append([]Swept{Covers}, others...)}
		if err := s.sweep(db.In(ctx, db.Tenant(id))); err != nil {
			failures = errors.Join(failures, fmt.Errorf("check stored files of tenant %s: %w", id, err))
		}
		if s.gone.Objects > 0 {
			slog.Info("unused covers and other files deleted", "tenant", id, "objects", s.gone.Objects, "bytes", s.gone.Bytes)
		}
	}
	return failures
}

// sweeper goes through the objects of one tenant.
type sweeper struct {
	system *db.DB
	media  *blob.Store
	bucket string
	tenant uuid.UUID
	now    time.Time
	until  time.Time // stop at this time
	kinds  []Swept
	gone   blob.Deleted
}

func (s *sweeper) sweep(ctx context.Context) error {
	place, err := s.claim(ctx)
	if err != nil || place == nil {
		return err
	}
	var refused error // an object that cannot be deleted must not block the others
	for _, k := range s.kinds {
		after := *place
		if folder := k.Folder(s.tenant); !strings.HasPrefix(after, folder) {
			if after > folder {
				continue // finished before
			}
			after = ""
		}
		for page, err := range s.media.List(ctx, s.bucket, k.Folder(s.tenant), after) {
			if err != nil {
				return err
			}
			if len(page) == 0 {
				break
			}
			if err := s.page(ctx, k, page); errors.As(err, new(*blob.Undeleted)) {
				refused = err
			} else if err != nil {
				return err
			}
			last := page[len(page)-1].Key
			if !time.Now().Before(s.until) {
				return errors.Join(refused, s.note(ctx, last, s.now))
			}
			if err := s.note(ctx, last, s.now.Add(retrySweep)); err != nil {
				return err
			}
		}
	}
	return errors.Join(refused, s.note(ctx, "", s.now.Add(sweepEvery)))
}

// claim returns the place to continue from, nil if another scheduler was first. A claim expires after a while: then its
// holder has failed.
func (s *sweeper) claim(ctx context.Context) (*string, error) {
	return db.GetValue[*string](ctx, s.system, `insert into cover_sweep as s (tenant_id, due_at)
		select id, $2 from tenant where id = app.tenant() and status <> 'deleting'
		on conflict (tenant_id) do update set due_at = excluded.due_at where s.due_at <= $1 returning place`, s.now, s.now.Add(retrySweep))
}

func (s *sweeper) note(ctx context.Context, place string, due time.Time) error {
	_, err := db.Exec(ctx, s.system, "update cover_sweep set place = $1, due_at = $2 where tenant_id = app.tenant()", place, due)
	return err
}

// page deletes the unreferenced objects of one page of the listing.
func (s *sweeper) page(ctx context.Context, k Swept, listed []blob.Object) error {
	unnamed, err := k.Unnamed(ctx, s.system, s.tenant, listed, s.now.Add(-Youngest))
	if err != nil {
		return err
	}
	done, err := s.media.DeleteAll(ctx, s.bucket, k.Folder(s.tenant), unnamed)
	s.gone.Objects, s.gone.Bytes = s.gone.Objects+done.Objects, s.gone.Bytes+done.Bytes
	return err
}

// Unnamed returns the listed objects that are covers, are stored before the given time, and are shown by nothing. Other
// keys are ignored. ctx must be scoped to the tenant, not to a user, who would not see hidden rows.
func Unnamed(ctx context.Context, d *db.DB, tenant uuid.UUID, listed []blob.Object, before time.Time) ([]blob.Object, error) {
	var old []blob.Object
	var owners []uuid.UUID
	for _, o := range listed {
		id, ok := OwnerOf(tenant, o.Key)
		if ok && !o.Modified.IsZero() && o.Modified.Before(before) {
			old, owners = append(old, o), append(owners, id)
		}
	}
	if len(old) == 0 {
		return nil, nil
	}
	names, err := named(ctx, d, tenant, slices.Compact(owners)) // a listing is sorted
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(old, func(o blob.Object) bool { return names[o.Key] }), nil
}

// named returns the keys of all covers that the books and series may show. For a series these are all pictures beside
// its books and all uploads; for a book, the one in its file and all uploads. People choose which one is shown.
func named(ctx context.Context, d *db.DB, tenant uuid.UUID, owners []uuid.UUID) (map[string]bool, error) {
	type row struct {
		Secret      []byte     `db:"secret"`
		Size        int        `db:"cover_size"`
		Quality     int        `db:"cover_quality"`
		ID          *uuid.UUID `db:"id"`
		Fingerprint *string    `db:"fingerprint"`
	}
	rows, err := db.List[row](ctx, d, `select t.secret, `+Settings+`, o.id, o.fingerprint from tenant t left join (
		  select b.id, `+Print+` as fingerprint from book b left join page_index p on p.tenant_id = app.tenant() and p.book_id = b.id
		  where b.tenant_id = app.tenant() and b.id = any($1)
		  union all
		  select s.id, k.document->>'fingerprint' from series s
		  join sidecar k on k.tenant_id = app.tenant() and k.library_id = s.library_id and k.about = s.path and k.kind = 'cover'
		  where s.tenant_id = app.tenant() and s.id = any($1)
		  union all
		  select series_id, fingerprint from series_cover where tenant_id = app.tenant() and series_id = any($1)
		  union all
		  select book_id, fingerprint from book_cover where tenant_id = app.tenant() and book_id = any($1)) o on o.fingerprint <> ''
		where t.id = app.tenant()`, owners)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 { // no row at all, not even the tenant's, says nothing about its covers
		return nil, fault.Missing("Tenant")
	}
	out := make(map[string]bool, len(rows))
	for _, r := range rows {
		if r.ID != nil {
			out[Key(tenant, *r.ID, r.Secret, *r.Fingerprint, r.Size, r.Quality)] = true
		}
	}
	return out, nil
}

package scanner

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
)

// knownSidecar is a sidecar as stored in the database.
type knownSidecar struct {
	Key      string    `db:"key"`
	Size     int64     `db:"size"`
	ETag     string    `db:"etag"`
	Modified time.Time `db:"modified_at"`
	Seen     time.Time `db:"seen_at"`
}

const knownSidecarColumns = "key, size, etag, modified_at, seen_at"

// sidecarChange is a new sidecar, or one with different content.
type sidecarChange struct {
	Object      blob.Object // with the key below the library's prefix
	Kind, About string
	Seen        time.Time // when the store was listed
}

// lostSidecar is a sidecar that no longer exists, with the time when the store was listed.
type lostSidecar struct {
	Key  string
	Seen time.Time
}

// differSidecars compares objects with the known sidecars of the same range. Both are sorted by key.
func (r *run) differSidecars(page []blob.Object, known []knownSidecar, seen time.Time) (changes []sidecarChange, lost []lostSidecar) {
	lose := func(k knownSidecar) {
		if !k.Seen.After(seen) {
			lost = append(lost, lostSidecar{k.Key, seen})
		}
	}
	for _, o := range page {
		o.Key = strings.TrimPrefix(o.Key, r.library.Prefix)
		kind, about := r.sidecar(o.Key)
		if kind == "" {
			continue
		}
		for len(known) > 0 && known[0].Key < o.Key {
			lose(known[0])
			known = known[1:]
		}
		if len(known) > 0 && known[0].Key == o.Key {
			k := known[0]
			known = known[1:]
			same := r.params.Mode != scan.Deep && k.Size == o.Size && k.ETag == o.ETag && k.Modified.Equal(o.Modified)
			if same || k.Seen.After(seen) {
				continue
			}
		}
		changes = append(changes, sidecarChange{Object: o, Kind: kind, About: about, Seen: seen})
	}
	for _, k := range known {
		lose(k)
	}
	return changes, lost
}

// queueSidecars stores sidecars as the store has them, each with its own version, and adds the tasks that apply them.
func (r *run) queueSidecars(b *pgx.Batch, changes []sidecarChange) error {
	if len(changes) == 0 {
		return nil
	}
	var keys, kinds, abouts, etags []string
	var versions []uuid.UUID
	var sizes []int64
	var modified, seen []time.Time
	for _, c := range changes {
		keys, kinds, abouts = append(keys, c.Object.Key), append(kinds, c.Kind), append(abouts, c.About)
		versions, sizes, etags = append(versions, uuid.Must(uuid.NewV7())), append(sizes, c.Object.Size), append(etags, c.Object.ETag)
		modified, seen = append(modified, c.Object.Modified), append(seen, c.Seen)
	}
	b.Queue(`insert into sidecar as k (tenant_id, library_id, key, kind, about, version, size, etag, modified_at, seen_at)
		select app.tenant(), $1, u.* from unnest($2::text[], $3::text[], $4::text[], $5::uuid[], $6::bigint[], $7::text[], $8::timestamptz[], $9::timestamptz[]) u
		on conflict (tenant_id, library_id, key) do update set version = excluded.version, size = excluded.size, etag = excluded.etag,
		  modified_at = excluded.modified_at, seen_at = excluded.seen_at, pending = true
		  where k.seen_at <= excluded.seen_at`, r.library.ID, keys, kinds, abouts, versions, sizes, etags, modified, seen)
	return r.queueTakeIn(b, keys)
}

// queueLost removes sidecars that no longer exist, and adds the tasks that undo what they said.
func (r *run) queueLost(b *pgx.Batch, lost []lostSidecar) error {
	if len(lost) == 0 {
		return nil
	}
	keys, seen := make([]string, len(lost)), make([]time.Time, len(lost))
	for i, l := range lost {
		keys[i], seen[i] = l.Key, l.Seen
	}
	b.Queue(`delete from sidecar k using unnest($2::text[], $3::timestamptz[]) u(key, seen)
		where k.tenant_id = app.tenant() and k.library_id = $1 and k.key = u.key and k.seen_at <= u.seen`, r.library.ID, keys, seen)
	return r.queueTakeIn(b, keys)
}

// queueTakeIn adds the tasks that apply sidecars.
func (r *run) queueTakeIn(b *pgx.Batch, keys []string) error {
	_, err := r.queueTasks(b, slices.Chunk(keys, analyzeBatch), "jsonb_build_object('sidecars', $2::text[]) as params")
	return err
}

// deleteLost removes sidecars that no longer exist, batch by batch.
func (r *run) deleteLost(ctx context.Context) error {
	for len(r.at.Lost) > 0 {
		part := r.at.Lost[:min(len(r.at.Lost), writeBatch)]
		var b pgx.Batch
		queueLock(&b, r.library.ID)
		if err := r.queueLost(&b, part); err != nil {
			return err
		}
		if err := r.Database.Run(ctx, &b); err != nil {
			return err
		}
		r.Added.Tell(ctx, r.tenant)
		r.at.Lost = r.at.Lost[len(part):]
		if len(r.at.Lost) > 0 && task.MustPause(ctx) {
			return r.pause()
		}
	}
	return nil
}

// lastWhole is the SQL for the time when the last completed scan of the whole library $1 was requested, or -infinity if
// there was none.
const lastWhole = `coalesce((select max(c.created_at) from scan f join task c on c.tenant_id = f.tenant_id and c.id = f.id
	where f.tenant_id = app.tenant() and f.library_id = $1 and c.status = 'completed' and coalesce(c.params ->> 'path', '') = ''), '-infinity')`

// leftUndone reports whether work may be left from earlier tasks. This is so if a scan, or a task that applies
// sidecars, was cancelled or failed since the last completed scan of the whole library, or if this scan has started
// before. Tasks can be deleted: so this is also so if a file about a series was not read, or if no such scan is known
// of a library with books. What these have changed is already in the tables, so no listing finds it again.
const leftUndone = `select exists (select from scan where tenant_id = app.tenant() and id = $2
	and books_created + books_updated + books_deleted + books_restored + books_moved > 0)
	or exists (select from task t where t.tenant_id = app.tenant() and t.library_id = $1 and t.type in ('scan_library', 'analyze_books')
	and t.status in ('cancelled', 'failed') and t.created_at >= ` + lastWhole + `)
	or exists (select from sidecar where tenant_id = app.tenant() and library_id = $1 and pending and kind <> 'opf')
	or ` + lastWhole + ` = '-infinity' and exists (select from book where tenant_id = app.tenant() and library_id = $1)`

// catchUp applies the sidecars whose tasks were cancelled or failed. These are sidecars that were not read, or not for
// all of their books, and sidecars that no longer exist although a book was read with them or they describe a series.
// The series of all books written since then count as touched.
func (r *run) catchUp(ctx context.Context) error {
	if !r.at.CatchUp {
		return nil
	}
	var b pgx.Batch
	var keys []string
	var series []uuid.UUID
	db.Values(&b, &series, `select distinct series_id from book where tenant_id = app.tenant() and library_id = $1
		and updated_at >= `+lastWhole, r.library.ID)
	db.Values(&b, &keys, `select key from sidecar where tenant_id = app.tenant() and library_id = $1 and pending
		union select s.path || '/series.json' from series s where s.tenant_id = app.tenant() and s.library_id = $1 and not s.described <@ s.locks
		  and not exists (select from sidecar k where k.tenant_id = app.tenant() and k.library_id = $1 and k.about = s.path and k.kind = 'series')
		union select regexp_replace(b.key, '\.[^./]*$', '') || '.opf' from book b where b.tenant_id = app.tenant() and b.library_id = $1
		  and b.sidecar is not null and b.deleted_at is null
		  and not exists (select from sidecar k where k.tenant_id = app.tenant() and k.library_id = $1 and k.version = b.sidecar)
		union select k.key from sidecar k cross join lateral (select from book b where b.tenant_id = app.tenant() and b.library_id = $1
		    and b.key >= case when k.about like '%/' then k.about else k.about || '.' end and b.key < case when k.about like '%/' then left(k.about, -1) || '0' else k.about || '/' end
		    and b.sidecar is distinct from k.version and (b.analyzed or b.error_type is not null) and b.deleted_at is null
		    and strpos(substr(b.key, length(k.about) + 1), '/') = 0 limit 1) b
		  where k.tenant_id = app.tenant() and k.library_id = $1 and k.kind = 'opf'`, r.library.ID)
	if err := r.Database.Run(ctx, &b); err != nil {
		return err
	}
	r.at.CatchUp = false
	for _, id := range series {
		r.touched[id] = true
	}
	if len(keys) == 0 {
		return nil
	}
	b = pgx.Batch{}
	if err := r.queueTakeIn(&b, keys); err != nil {
		return err
	}
	if err := r.Database.Run(ctx, &b); err != nil {
		return err
	}
	r.Added.Tell(ctx, r.tenant)
	return nil
}

// sidecarsIn reads the sidecars of a range of keys below the library's prefix. An empty bound means no bound.
func (r *run) sidecarsIn(b *pgx.Batch, from, to string, out *[]knownSidecar) {
	db.All(b, out, "select "+knownSidecarColumns+` from sidecar
		where tenant_id = app.tenant() and library_id = $1 and key >= $2 and ($3 = '' or key < $3) order by key`, r.library.ID, from, to)
}

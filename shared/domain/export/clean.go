package export

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
)

// Cleaned is the result of a clean-up.
type Cleaned struct {
	Expired int64 `json:"expired"` // files without an export
	Objects int64 `json:"objects"` // files that no export named
	Bytes   int64 `json:"bytes"`
}

// Clean handles cleanup_series_exports tasks: it deletes expired rows and unreferenced objects. Those belong to exports
// that were deleted, possibly with their user, or to failed runs.
func (m *Maker) Clean(ctx context.Context, h task.Held) (any, error) {
	var out Cleaned
	var b pgx.Batch
	var seen *struct {
		Requests  int64 `db:"requests"`
		Deletions int64 `db:"deletions"`
	}
	db.Affected(&b, &out.Expired, "delete from series_export where tenant_id = app.tenant() and expires_at <= now()")
	db.One(&b, &seen, "select requests, deletions from export_cleanup where tenant_id = app.tenant()")
	if err := m.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	var refused error // an object that cannot be deleted must not block the others
	for page, err := range m.Media.List(ctx, m.Bucket, Folder(h.Tenant), "") {
		if err != nil {
			return nil, err
		}
		err := m.cleanPage(ctx, h.Tenant, page, &out)
		if errors.As(err, new(*blob.Undeleted)) {
			refused = err
		} else if err != nil {
			return nil, err
		}
	}
	if refused != nil || seen == nil {
		return out, refused
	}
	// If nothing is left, there is nothing to do until somebody requests an export.
	b = pgx.Batch{}
	b.Queue("update export_cleanup set cleaned = greatest(cleaned, $1) where tenant_id = app.tenant()", seen.Deletions)
	b.Queue(`delete from export_cleanup where tenant_id = app.tenant() and requests = $1 and deletions = $2
		and not exists (select from series_export where tenant_id = app.tenant())`, seen.Requests, seen.Deletions)
	return out, m.Database.Run(ctx, &b)
}

// cleanPage deletes the objects that no export references, and that no unfinished one may reference later.
func (m *Maker) cleanPage(ctx context.Context, tenant uuid.UUID, page []blob.Object, out *Cleaned) error {
	var ids []uuid.UUID
	var keys []string
	var objects []blob.Object
	for _, o := range page {
		name, _, _ := strings.Cut(strings.TrimPrefix(o.Key, Folder(tenant)), "/")
		if id, err := uuid.Parse(name); err == nil { // other keys are ignored
			ids, keys, objects = append(ids, id), append(keys, o.Key), append(objects, o)
		}
	}
	if len(objects) == 0 {
		return nil
	}
	orphans, err := db.ListValues[string](ctx, m.Database, `select o.key from unnest($1::uuid[], $2::text[]) o (id, key) where not exists (select from series_export e
		where e.tenant_id = app.tenant() and e.id = o.id and (e.object = o.key or e.completed_at is null and e.error is null))`, ids, keys)
	if err != nil {
		return err
	}
	unnamed := make(map[string]bool, len(orphans))
	for _, k := range orphans {
		unnamed[k] = true
	}
	gone := slices.DeleteFunc(objects, func(o blob.Object) bool { return !unnamed[o.Key] })
	done, err := m.Media.DeleteAll(ctx, m.Bucket, Folder(tenant), gone)
	out.Objects, out.Bytes = out.Objects+done.Objects, out.Bytes+done.Bytes
	return err
}

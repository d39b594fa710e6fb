package plugin

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/plug"
)

// SweepFolders deletes the folders of deleted plugins, and of plugins whose users have given them up or were deleted,
// for every existing tenant. It returns their number. Folders of tenants that this database does not know stay: they
// may belong to another installation, or to a tenant about to be restored. Concurrent calls are safe.
func SweepFolders(ctx context.Context, system *db.DB, client *plug.Client) (removed int, err error) {
	if !client.Keeps() {
		return 0, nil
	}
	for after := (plug.Folder{}); ; {
		page, err := client.Folders(ctx, plug.FolderCall{After: after})
		if err != nil || len(page) == 0 {
			return removed, err
		}
		after = page[len(page)-1]
		gone, failures := unused(ctx, system, page)
		if len(gone) > 0 {
			done, err := client.Folders(ctx, plug.FolderCall{Remove: gone})
			removed, failures = removed+len(done), errors.Join(failures, err)
		}
		if failures != nil {
			return removed, failures
		}
	}
}

// unused returns the folders that nobody will use again. Folders must be listed before the database is queried: then
// the owner of a folder is found unless it is gone, as ids are never reused.
func unused(ctx context.Context, system *db.DB, all []plug.Folder) (gone []plug.Folder, failures error) {
	ids := map[uuid.UUID][]uuid.UUID{}
	for _, f := range all {
		tenant, noTenant := uuid.Parse(f.Tenant)
		id, noID := uuid.Parse(f.ID)
		if noTenant == nil && noID == nil && tenant.String() == f.Tenant && id.String() == f.ID {
			ids[tenant] = append(ids[tenant], id)
		}
	}
	for tenant, some := range ids {
		type row struct {
			ID uuid.UUID `db:"id"`
		}
		rows, err := db.List[row](db.In(ctx, db.Tenant(tenant)), system, `select f.id from unnest($1::uuid[]) f(id)
			where exists (select from tenant where id = app.tenant())
			  and not exists (select from plugin p where p.tenant_id = app.tenant() and p.id = f.id)
			  and not exists (select from user_plugin u where u.tenant_id = app.tenant() and u.id = f.id)`, some)
		if err != nil {
			failures = errors.Join(failures, fmt.Errorf("plugin folders of tenant %s: %w", tenant, err))
		}
		for _, r := range rows {
			gone = append(gone, plug.Folder{Tenant: tenant.String(), ID: r.ID.String()})
		}
	}
	return gone, failures
}

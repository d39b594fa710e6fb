package plugin

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Storage is what a plugin stores for all its users together.
type Storage struct {
	PluginName string `json:"pluginName" db:"name"`
	FileCount  int64  `json:"fileCount" db:"count" doc:"Number of stored values, one per key and user"`
	TotalBytes int64  `json:"totalBytes" db:"bytes"`
}

// AllStorage is what all plugins store.
type AllStorage struct {
	Plugins        []Storage `json:"plugins" nullable:"false"`
	TotalFileCount int64     `json:"totalFileCount"`
	TotalBytes     int64     `json:"totalBytes"`
}

// Emptied is what was deleted.
type Emptied struct {
	FilesDeleted int64    `json:"filesDeleted"`
	BytesFreed   int64    `json:"bytesFreed"`
	Failures     int64    `json:"failures"`
	Errors       []string `json:"errors" nullable:"false"`
}

const storageSums = `select p.name, count(d.key) as count, coalesce(sum(octet_length(d.key) + octet_length(d.data)), 0)::bigint as bytes
	from plugin p left join user_plugin u on u.tenant_id = p.tenant_id and u.plugin_id = p.id
	left join user_plugin_data d on d.tenant_id = u.tenant_id and d.user_plugin_id = u.id
	where p.tenant_id = app.tenant()`

func (s *service) storageRoutes(a *httpapi.API) {
	op := func(method, path, id, summary string) httpapi.Op {
		// OnlyIfSeesAll: the data is about any series.
		return httpapi.Op{Method: method, Path: "/api/v1/admin/plugin-storage" + path, ID: id, Summary: summary, Tag: "Plugins", Permission: auth.SystemAdmin}.OnlyIfSeesAll()
	}
	type input struct {
		Name string `path:"name" maxLength:"100"`
	}
	httpapi.Register(a, op("GET", "", "getPluginStorage", "Get the amount of data that plugins store for their users"), func(ctx context.Context, _ *struct{}) (*AllStorage, error) {
		all, err := db.List[Storage](ctx, s.Database, storageSums+" group by p.name having count(d.key) > 0 order by p.name")
		if err != nil {
			return nil, err
		}
		out := &AllStorage{Plugins: orNone(all)}
		for _, one := range all {
			out.TotalFileCount, out.TotalBytes = out.TotalFileCount+one.FileCount, out.TotalBytes+one.TotalBytes
		}
		return out, nil
	})
	httpapi.Register(a, op("GET", "/{name}", "getStorageOfPlugin", "Get the amount of data that a plugin stores for its users"), func(ctx context.Context, in *input) (*Storage, error) {
		out, err := db.Get[Storage](ctx, s.Database, storageSums+" and p.name = $1 group by p.name", cut.Storable(in.Name))
		if err == nil && out == nil {
			err = fault.Missing("Plugin")
		}
		return out, err
	})
	httpapi.Register(a, op("DELETE", "/{name}", "emptyStorageOfPlugin", "Delete all data that a plugin stores for its users"), func(ctx context.Context, in *input) (*Emptied, error) {
		var b pgx.Batch
		var out *Storage
		name := cut.Storable(in.Name)
		db.One(&b, &out, storageSums+" and p.name = $1 group by p.name", name)
		b.Queue(`delete from user_plugin_data d using user_plugin u, plugin p where d.tenant_id = app.tenant() and u.tenant_id = app.tenant() and p.tenant_id = app.tenant()
			and u.id = d.user_plugin_id and p.id = u.plugin_id and p.name = $1`, name)
		if err := s.Database.Run(ctx, &b); err != nil {
			return nil, err
		}
		if out == nil {
			return nil, fault.Missing("Plugin")
		}
		return &Emptied{FilesDeleted: out.FileCount, BytesFreed: out.TotalBytes, Errors: []string{}}, nil
	})
}

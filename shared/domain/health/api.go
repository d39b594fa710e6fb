package health

import (
	"context"
	"runtime/debug"
	"sync"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Routes registers the inventory (under two names) and the version.
func Routes(a *httpapi.API, d *db.DB) {
	inventory := func(ctx context.Context, _ *struct{}) (*Inventory, error) {
		return count(ctx, d)
	}
	httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/metrics", ID: "getMetrics",
		Summary: "Get the inventory of the server: numbers of libraries, series, books, pages and users", Tag: "Health", Permission: auth.SystemHealth}, inventory)
	httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/metrics/inventory", ID: "getInventory",
		Summary: "Get the inventory of the server, as in /metrics", Tag: "Health", Permission: auth.LibrariesRead}, inventory)
	info := sync.OnceValue(func() *Info {
		if build, ok := debug.ReadBuildInfo(); ok {
			return &Info{Name: "Longbox", Version: version(build.Main.Version)}
		}
		return &Info{Name: "Longbox", Version: "dev"}
	})
	httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/info", ID: "getInfo",
		Summary: "Get the name and version of the server", Tag: "Health", Permission: httpapi.Public},
		func(context.Context, *struct{}) (*Info, error) { return info(), nil })
}

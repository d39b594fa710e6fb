package apikey

import (
	"context"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// UpdateInput is a partial change of a key.
type UpdateInput struct {
	httpapi.IDInput
	Body Update
}

// Routes registers the operations on API keys. bump is called after a change of a key's permissions.
func Routes(a *httpapi.API, d *db.DB, bump events.AccessChanged) {
	httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/api-keys", ID: "listApiKeys",
		Summary: "List the caller's API keys, oldest first", Tag: "API keys", Permission: auth.APIKeysRead},
		func(ctx context.Context, in *struct{ httpapi.Paging }) (*httpapi.Page[APIKey], error) {
			keys, total, err := list(ctx, d, in.Limit(), in.Offset())
			if err != nil {
				return nil, err
			}
			return httpapi.NewPage(ctx, in.Paging, keys, total), nil
		})
	httpapi.Register(a, httpapi.Op{Method: "POST", Path: "/api/v1/api-keys", ID: "createApiKey", Status: 201,
		Summary: "Create an API key; only this response contains the key", Tag: "API keys", Permission: auth.APIKeysWrite},
		func(ctx context.Context, in *struct{ Body Create }) (*CreatedAPIKey, error) {
			k, err := create(ctx, d, in.Body)
			if err != nil {
				return nil, err
			}
			httpapi.Header(ctx).Set("Cache-Control", "no-store")
			bump(ctx, auth.CallerOf(ctx).Tenant)
			return k, nil
		})
	httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/api-keys/{id}", ID: "getApiKey",
		Summary: "Get an API key", Tag: "API keys", Permission: auth.APIKeysRead},
		func(ctx context.Context, in *httpapi.IDInput) (*APIKey, error) {
			k, _, err := find(ctx, d, in.ID, auth.UsersRead)
			return k, err
		})
	for _, op := range [][2]string{{"PUT", "updateApiKey"}, {"PATCH", "patchApiKey"}} {
		httpapi.Register(a, httpapi.Op{Method: op[0], Path: "/api/v1/api-keys/{id}", ID: op[1],
			Summary: "Update an API key; omitted fields stay unchanged", Tag: "API keys", Permission: auth.APIKeysWrite},
			func(ctx context.Context, in *UpdateInput) (*APIKey, error) {
				k, err := update(ctx, d, in.ID, in.Body)
				if err != nil {
					return nil, err
				}
				bump(ctx, auth.CallerOf(ctx).Tenant)
				return k, nil
			})
	}
	httpapi.Register(a, httpapi.Op{Method: "DELETE", Path: "/api/v1/api-keys/{id}", ID: "deleteApiKey",
		Summary: "Revoke an API key", Tag: "API keys", Permission: auth.APIKeysDelete},
		func(ctx context.Context, in *httpapi.IDInput) (*httpapi.None, error) {
			if _, _, err := find(ctx, d, in.ID, auth.UsersDelete); err != nil {
				return nil, err
			}
			if err := remove(ctx, d, in.ID); err != nil {
				return nil, err
			}
			bump(ctx, auth.CallerOf(ctx).Tenant)
			return nil, nil
		})
}

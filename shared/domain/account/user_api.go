package account

import (
	"context"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// UserUpdateInput is a partial change of a user.
type UserUpdateInput struct {
	httpapi.IDInput
	Body UserUpdate
}

func (s *service) userRoutes(a *httpapi.API) {
	httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/users", ID: "listUsers",
		Summary: "List users by name", Tag: "Users", Permission: auth.UsersRead},
		func(ctx context.Context, in *struct {
			httpapi.Paging
			UserFilter
		}) (*httpapi.Page[User], error) {
			users, total, err := listUsers(ctx, s.database, in.UserFilter, in.Limit(), in.Offset())
			if err != nil {
				return nil, err
			}
			return httpapi.NewPage(ctx, in.Paging, users, total), nil
		})
	httpapi.Register(a, httpapi.Op{Method: "POST", Path: "/api/v1/users", ID: "createUser", Status: 201,
		Summary: "Create a user that is active immediately", Tag: "Users", Permission: auth.UsersWrite},
		func(ctx context.Context, in *struct{ Body NewUser }) (*User, error) {
			return s.createUser(ctx, in.Body)
		})
	httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/users/{id}", ID: "getUser",
		Summary: "Get a user", Tag: "Users", Permission: auth.UsersRead},
		func(ctx context.Context, in *httpapi.IDInput) (*UserDetails, error) {
			return getUser(ctx, s.database, in.ID)
		})
	for _, op := range [][2]string{{"PUT", "updateUser"}, {"PATCH", "patchUser"}} {
		httpapi.Register(a, httpapi.Op{Method: op[0], Path: "/api/v1/users/{id}", ID: op[1],
			Summary: "Update a user; omitted fields stay unchanged", Tag: "Users", Permission: auth.UsersWrite},
			func(ctx context.Context, in *UserUpdateInput) (*User, error) {
				return s.updateUser(ctx, in.ID, in.Body)
			})
	}
	httpapi.Register(a, httpapi.Op{Method: "DELETE", Path: "/api/v1/users/{id}", ID: "deleteUser",
		Summary: "Delete a user with their progress, preferences and API keys", Tag: "Users", Permission: auth.UsersDelete},
		func(ctx context.Context, in *httpapi.IDInput) (*httpapi.None, error) {
			return nil, s.deleteUser(ctx, in.ID)
		})
}

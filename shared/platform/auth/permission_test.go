package auth_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/testkit"
)

func TestRolesAreTheDatabases(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	for _, role := range []string{auth.Reader, auth.Maintainer, auth.Admin, "unknown"} {
		var inDatabase []string
		if err := d.App.Pool().QueryRow(context.Background(), "select app.role_permissions($1)", role).Scan(&inDatabase); err != nil {
			t.Fatal(err)
		}
		here := auth.RolePermissions(role)
		slices.Sort(here)
		slices.Sort(inDatabase)
		if !slices.Equal(here, inDatabase) || len(slices.Compact(here)) != len(inDatabase) {
			t.Errorf("%s: here %v, in the database %v", role, here, inDatabase)
		}
	}
}

func TestPermissionSpelling(t *testing.T) {
	t.Parallel()
	all := auth.AllPermissions()
	if len(all) != 29 {
		t.Errorf("%d permissions", len(all))
	}
	for _, p := range all {
		if got, bad := auth.CheckPermissions([]string{strings.ToLower(p), p}); !slices.Equal(got, []string{p}) {
			t.Errorf("%s: %s, %v", p, got, bad)
		}
	}
	for in, want := range map[string]string{"libraries:read": auth.LibrariesRead, "libraries-read": auth.LibrariesRead, "api-keys:write": auth.APIKeysWrite,
		"read_lists:delete": auth.ReadListsDelete, "readlists:read": auth.ReadListsRead, "SYSTEM:ADMIN": auth.SystemAdmin} {
		if got, bad := auth.CheckPermissions([]string{in}); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %s, %v", in, got, bad)
		}
	}
	for _, in := range []string{"", "*", "libraries", "LibrariesRead ", "read"} {
		if got, bad := auth.CheckPermissions([]string{in}); bad == nil {
			t.Errorf("%q is taken for %s", in, got)
		}
	}
	// A caller's list cannot be changed through another's.
	auth.RolePermissions(auth.Reader)[0] = "changed"
	if auth.RolePermissions(auth.Reader)[0] == "changed" {
		t.Error("the list of a role can be changed from outside")
	}
}

// Package auth holds credentials and permissions: roles, signed access tokens, API keys, password hashes, and the
// Caller as whom the SQL of a request runs.
package auth

import (
	"slices"
	"strings"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Permissions, as written in responses. CheckPermissions also accepts `libraries:read` and `libraries-read`.
const (
	LibrariesRead     = "LibrariesRead"
	LibrariesWrite    = "LibrariesWrite"
	LibrariesDelete   = "LibrariesDelete"
	SeriesRead        = "SeriesRead"
	SeriesWrite       = "SeriesWrite"
	SeriesDelete      = "SeriesDelete"
	BooksRead         = "BooksRead"
	BooksWrite        = "BooksWrite"
	BooksDelete       = "BooksDelete"
	PagesRead         = "PagesRead"
	ProgressRead      = "ProgressRead"
	ProgressWrite     = "ProgressWrite"
	CollectionsRead   = "CollectionsRead"
	CollectionsWrite  = "CollectionsWrite"
	CollectionsDelete = "CollectionsDelete"
	ReadListsRead     = "ReadListsRead"
	ReadListsWrite    = "ReadListsWrite"
	ReadListsDelete   = "ReadListsDelete"
	UsersRead         = "UsersRead"
	UsersWrite        = "UsersWrite"
	UsersDelete       = "UsersDelete"
	APIKeysRead       = "ApiKeysRead"
	APIKeysWrite      = "ApiKeysWrite"
	APIKeysDelete     = "ApiKeysDelete"
	TasksRead         = "TasksRead"
	TasksWrite        = "TasksWrite"
	PluginsManage     = "PluginsManage"
	SystemHealth      = "SystemHealth"
	SystemAdmin       = "SystemAdmin"
)

// Roles. Each has the permissions of the ones before it.
const (
	Reader     = "reader"
	Maintainer = "maintainer"
	Admin      = "admin"
)

var (
	readerPermissions = []string{LibrariesRead, SeriesRead, BooksRead, PagesRead, ProgressRead, ProgressWrite,
		CollectionsRead, ReadListsRead, APIKeysRead, APIKeysWrite, APIKeysDelete, SystemHealth}
	maintainerPermissions = []string{LibrariesWrite, SeriesWrite, SeriesDelete, BooksWrite, BooksDelete,
		CollectionsWrite, CollectionsDelete, ReadListsWrite, ReadListsDelete, TasksRead, TasksWrite}
	adminPermissions = []string{LibrariesDelete, UsersRead, UsersWrite, UsersDelete, PluginsManage, SystemAdmin}
)

// IsRole tells whether there is such a role.
func IsRole(name string) bool { return name == Reader || name == Maintainer || name == Admin }

// RolePermissions are the permissions a role brings. The database function app.role_permissions, which
// decides, holds the same list.
func RolePermissions(role string) []string {
	switch role {
	case Maintainer:
		return slices.Concat(readerPermissions, maintainerPermissions)
	case Admin:
		return AllPermissions()
	default:
		return slices.Clone(readerPermissions)
	}
}

// AllPermissions returns all permissions.
func AllPermissions() []string {
	return slices.Concat(readerPermissions, maintainerPermissions, adminPermissions)
}

// CheckPermissions accepts `LibrariesRead`, `libraries:read` and `libraries-read` in any case. It returns each
// permission once, or what is wrong with the field permissions.
func CheckPermissions(in []string) ([]string, []fault.Field) {
	out, all := []string{}, AllPermissions()
	plain := strings.NewReplacer(":", "", "-", "", "_", "")
	for _, s := range in {
		i := slices.IndexFunc(all, func(p string) bool { return strings.EqualFold(p, plain.Replace(s)) })
		if i < 0 {
			return nil, []fault.Field{{Field: "permissions", Message: `there is no permission "` + cut.Brief(s, 64) + `"`}}
		}
		if !slices.Contains(out, all[i]) {
			out = append(out, all[i])
		}
	}
	return out, nil
}

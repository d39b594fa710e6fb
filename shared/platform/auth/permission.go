// Package auth holds credentials and what they allow: permissions and roles, signed access tokens, API keys,
// password hashes, and the Caller in whose name a request's SQL runs.
package auth

import (
	"slices"
	"strings"
)

// The permissions, as written on output. `libraries:read` and `libraries-read` are understood.
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

// The roles, each with the permissions of the ones before it.
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

// AllPermissions are all there are.
func AllPermissions() []string {
	return slices.Concat(readerPermissions, maintainerPermissions, adminPermissions)
}

// ParsePermission understands `LibrariesRead`, `libraries:read` and `libraries-read` in any case.
func ParsePermission(s string) (string, bool) {
	key := strings.NewReplacer(":", "", "-", "", "_", "").Replace(s)
	all := AllPermissions()
	i := slices.IndexFunc(all, func(p string) bool { return strings.EqualFold(p, key) })
	if i < 0 {
		return "", false
	}
	return all[i], true
}

// Package apikey keeps the keys with which a user's programs sign in. A key has permissions of its own and never more
// than its user has: the database checks both with every request.
//
// Rules:
//   - The key is shown once; only its prefix and a SHA-256 of it are kept.
//   - Nobody gives a key a permission that they do not have at that moment. For a caller who signed in with a key the
//     permissions of that key count.
//   - A key with an end makes no key that outlives it, and gives no new permission to a key that outlives it.
//   - Enabling a key again, or extending its life, counts as giving it all its permissions.
//   - Users see their own keys; UsersRead, UsersWrite or UsersDelete allow to read, change or revoke those of others.
//
// Tables: api_key.
package apikey

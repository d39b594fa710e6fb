// Package apikey manages the keys with which a user's programs sign in. A key has its own permissions, and never more
// than its user: the database checks both with every request.
//
// Rules:
//   - The key is shown once; only its prefix and its SHA-256 are stored.
//   - Nobody can grant a permission that they lack at that moment. For a caller who signed in with a key, the
//     permissions of that key count.
//   - A key with an expiry can neither create a key that outlives it nor grant a new permission to one.
//   - Reactivating a key, or extending its life, counts as granting all its permissions.
//   - Users see their own keys; UsersRead, UsersWrite or UsersDelete allow reading, changing or revoking those of
//     others.
//
// Tables: api_key.
package apikey

// Package apikey is the keys with which a user's programs sign in. A key has permissions of its own and never
// more than its user has: both are checked by the database with every request.
//
// Rules:
//   - The key is shown once; only its prefix and a SHA-256 of it are kept.
//   - Nobody gives a key a permission they do not have at that moment; signed in with a key, what that key has
//     counts, and a key that ends makes no key that outlives it. Enabling a key again, or making it last longer, is
//     giving it what it has, and a key that ends gives none that outlives it what that had not.
//   - A user sees the own keys; who holds UsersRead, UsersWrite or UsersDelete may read, change or revoke others'.
//
// Tables: api_key.
package apikey

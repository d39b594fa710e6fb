// Package account manages the users of a tenant: login, refreshable sessions, registration with a confirmed e-mail
// address, and user administration.
//
// Rules:
//   - A session is a family of refresh tokens. Each token works once and yields the next one. A token that is used
//     twice may be stolen, so the whole family ends. Only POST /auth/login and sign-in at an identity provider (package
//     oidc) open a session: registration, address confirmation and creation of the first administrator yield an access
//     token only.
//   - Changing the password or disabling a user increments the account's generation, which invalidates every access
//     token, and deletes the refresh tokens. A role change takes effect by itself: permissions are read with every
//     request.
//   - Deleting a user disables them first and then deletes what they have read in short transactions. If it stops in
//     between, they stay disabled until the next request continues.
//   - The last active administrator cannot be deleted, disabled or demoted, not even by two concurrent requests.
//   - A caller without SystemAdmin can neither grant a permission that they lack nor change a user who has one.
//   - A registered user who must confirm the e-mail address is inactive until then. If an administrator enables or
//     disables such a user, that decides: a later confirmation changes nothing. A mail to an address that the user no
//     longer has confirms nothing.
//   - Whoever owns a verified address can sign in as the user through an identity provider, and bring a role (package
//     oidc). So email_claimed marks users whose address or password a caller without SystemAdmin has set, and users who
//     were enabled or disabled before they had confirmed the address. An administrator clears it by enabling the user.
//
// Tables: account, refresh_token, verification_token. Reads setting and api_key, and what users are allowed and denied
// (package sharing).
package account

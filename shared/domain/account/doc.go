// Package account is the users of a tenant and how they sign in: login, sessions that renew themselves,
// registration with a confirmed e-mail address, and the administration of users.
//
// Rules:
//   - A session is a family of refresh tokens. Each works once and gives the next; a token that comes a second
//     time was stolen by somebody, so the whole family ends. POST /auth/login alone opens one: who registers, confirms
//     the address or makes the first administrator is signed in until the access token ends.
//   - A changed password or a disabled user raises the account's generation, which ends every access token, and
//     deletes the refresh tokens. A changed role takes effect by itself: permissions are read with every request.
//   - The last active administrator cannot be deleted, disabled or demoted, also not by two requests at once.
//   - Who does not hold SystemAdmin can neither give a permission beyond their own nor change a user who has one.
//   - A registered user who has to confirm the e-mail address is inactive until then. An administrator who
//     enables or disables such a user decides instead: the confirmation no longer changes anything. The mail to
//     an address that the user no longer has confirms nothing.
//
// Tables: account, refresh_token, verification_token. Reads setting and api_key.
package account

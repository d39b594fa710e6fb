// Package account keeps the users of a tenant: login, sessions that are refreshed, registration with a confirmed e-mail
// address, and the administration of users.
//
// Rules:
//   - A session is a family of refresh tokens. Each token works once and gives the next one; a token that is used a
//     second time may be stolen, so the whole family ends. Only POST /auth/login and signing in at an identity provider
//     (package oidc) open a session: registering, confirming the address or making the first administrator gives an
//     access token alone.
//   - A changed password or a disabled user raises the account's generation, which ends every access token, and
//     deletes the refresh tokens. A changed role takes effect by itself: permissions are read with every request.
//   - The last active administrator cannot be deleted, disabled or demoted, also not by two requests at once.
//   - A caller without SystemAdmin can neither give a permission that they do not have nor change a user who has one.
//   - A registered user who has to confirm the e-mail address is inactive until then. An administrator who
//     enables or disables such a user decides instead: a confirmation then changes nothing. A mail sent to an address
//     that the user no longer has confirms nothing.
//
// Tables: account, refresh_token, verification_token. Reads setting and api_key,
// and what users are allowed and denied (package sharing).
package account

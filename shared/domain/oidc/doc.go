// Package oidc signs users in with OpenID Connect (https://openid.net/specs/openid-connect-core-1_0.html): the
// authorization code flow with PKCE, at identity providers that the operator of the installation has set for a tenant.
//
// Rules:
//   - A pending sign-in is valid for five minutes, once, and only in the browser that started it: state and cookie are
//     random, the database has their hashes, and nonce and PKCE verifier derive from the cookie.
//   - A user is identified by provider and subject. At the first sign-in it is the user with the same e-mail address,
//     if both the provider and Longbox have verified the address and no other subject of the provider is linked to that
//     user; else a new user, if the provider may create users. The first user of a tenant is created only as an
//     administrator. There is no other way to take over an account. An address that a user only claimed at
//     registration, or of a user whose address or password somebody without SystemAdmin has set, is not verified
//     (account.email_claimed).
//   - If groups are mapped to roles, each sign-in sets the role, but the last active administrator stays one, and a
//     user with email_claimed gets no further permissions. It also sets the user's memberships in access groups that
//     derive from this provider's groups (package sharing). If the provider sends no groups, neither changes, unless
//     the operator has set that this means none.
//   - The session is the same as after a password login (package account).
//   - A provider that has failed is not asked again for a moment, and only one request at a time fetches its metadata.
//   - Access tokens of a provider are accepted as credentials if the operator has set their audience (Bearer). The api
//     fetches the keys that verify them and stores them in the database, since the media function cannot reach
//     providers.
//   - Requests to the provider go through the function plugin: the api's network has no outbound access. Only the host
//     of the issuer may have a private address.
//
// Tables: oidc_provider (written by functions/operator), oidc_state, oidc_identity, oidc_keys. Users are created and
// changed through package account, memberships through package sharing.
package oidc

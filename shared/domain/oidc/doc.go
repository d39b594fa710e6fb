// Package oidc signs users in with OpenID Connect (https://openid.net/specs/openid-connect-core-1_0.html): the
// authorization code flow with PKCE, at identity providers that the operator of the installation has set for a tenant.
//
// Rules:
//   - A sign-in that has begun lasts five minutes, works once, and only in the browser that began it: state and cookie
//     are random, the database has their hashes, and nonce and PKCE verifier follow from the cookie.
//   - A user is known by provider and subject. At the first time it is the user with the same e-mail address, where the
//     provider and Longbox both say that the address is verified and nobody else of the provider is that user; else a
//     new one, where the provider may make users. Nobody takes over an account otherwise. An address that somebody only
//     claimed when they registered is not verified (account.email_claimed).
//   - Where groups are mapped to roles, each sign-in sets the role, but the last active administrator stays one. It
//     also sets which access groups the user is in because of groups of this provider (package sharing). A provider
//     that says nothing of groups changes neither, unless the operator says that this means none.
//   - The session is that of a password (package account).
//   - A provider that has failed is left alone for a moment, and one request at a time finds out what it says of
//     itself.
//   - Access tokens of a provider are taken as credentials where the operator has named their audience (Bearer). The
//     api reads the keys that check them and keeps them in the database, since the media function cannot reach
//     providers.
//   - Requests to the provider go through the function plugin: the api lies in a network without a way out. Only the
//     host of the issuer may have a private address.
//
// Tables: oidc_provider (written by functions/operator), oidc_state, oidc_identity, oidc_keys. Users are made and
// changed by package account, memberships by package sharing.
package oidc

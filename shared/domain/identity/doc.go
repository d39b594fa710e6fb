// Package identity finds out whose credential a request brought: an access token, an API key, a user name and password,
// or an access token of an identity provider (External). It only says who; what they may do is checked by the database
// with every request, so that a disabled user or key stops working at once, on every instance.
//
// Tables: reads account and api_key.
package identity

package account

import (
	"context"

	"github.com/longbox/longbox/shared/platform/httpapi"
)

// OidcProviders are the identity providers that a sign-in page offers besides the password.
type OidcProviders struct {
	Enabled   bool           `json:"enabled"`
	Providers []OidcProvider `json:"providers" nullable:"false"`
}

// OidcProvider is one of them.
type OidcProvider struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
	LoginURL    string `json:"loginUrl"`
}

// oidcRoutes adds what a sign-in page asks for before it shows itself. Longbox signs users in by their passwords alone.
func (s *service) oidcRoutes(a *httpapi.API) {
	httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/auth/oidc/providers", ID: "listOidcProviders",
		Summary: "Identity providers to sign in with: none, users sign in with their passwords", Tag: "Authentication", Permission: httpapi.Public},
		func(context.Context, *struct{}) (*OidcProviders, error) {
			return &OidcProviders{Providers: []OidcProvider{}}, nil
		})
}

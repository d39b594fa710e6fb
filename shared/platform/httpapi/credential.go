package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/longbox/longbox/shared/platform/auth"
)

// SessionCookie holds an access token for requests that a browser makes by itself.
const SessionCookie = "auth_token"

// Credential is the unchecked credential of a request: a Bearer token or API key, or a user name and password.
type Credential struct {
	Bearer   string
	Username string
	Password string
	Basic    bool
	Cookie   bool // Bearer came from the session cookie
}

// Empty reports whether the request has no credential.
func (c Credential) Empty() bool { return c.Bearer == "" && !c.Basic }

// isKey reports whether it has the format of an API key.
func (c Credential) isKey() bool {
	secret := c.Bearer
	if c.Basic {
		secret = c.Password
	}
	_, is := auth.APIKeyPrefix(secret)
	return is
}

// credentialOf reads the headers in the order of docs/interface.md. An explicit credential takes precedence over the
// cookie.
func credentialOf(r *http.Request) Credential {
	header := r.Header.Get("Authorization")
	scheme, value, _ := strings.Cut(header, " ")
	switch {
	case strings.EqualFold(scheme, "Bearer"):
		return Credential{Bearer: strings.TrimSpace(value)}
	case strings.EqualFold(scheme, "Basic"):
		user, password, _ := r.BasicAuth()
		return Credential{Basic: true, Username: user, Password: password}
	}
	if key := r.Header.Get("X-API-Key"); key != "" {
		return Credential{Bearer: key}
	}
	// KOReader sends the key as the user name.
	if key := r.Header.Get("X-Auth-User"); key != "" && strings.HasPrefix(r.URL.Path, "/koreader/") {
		return Credential{Bearer: key}
	}
	if c, err := r.Cookie(SessionCookie); err == nil && c.Value != "" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		return Credential{Bearer: c.Value, Cookie: true}
	}
	return Credential{}
}

type cookieKey struct{}

func (a *API) viaCookie(ctx context.Context) bool { v, _ := ctx.Value(cookieKey{}).(bool); return v }

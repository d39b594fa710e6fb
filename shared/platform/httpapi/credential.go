package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/longbox/longbox/shared/platform/auth"
)

// SessionCookie holds an access token for requests that a browser makes by itself.
const SessionCookie = "auth_token"

// readerCookie holds an access token for apps made for Komga: after a request with a password they send only the cookie
// that Komga's sessions have. It counts only below the tenant's prefix.
const readerCookie = "KOMGA-SESSION"

// Credential is the unchecked credential of a request: a Bearer token or API key, or a user name and password.
type Credential struct {
	Bearer   string
	Username string
	Password string
	Basic    bool
	Cookie   bool // Bearer came from a cookie
	Reader   bool // namely the one for apps made for Komga
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

// fromPassword reports whether it is a user name and password.
func (c Credential) fromPassword() bool { return c.Basic && !c.isKey() }

// crossOrigin refuses writes that a page of another origin makes a browser send. Apps send neither header that says so.
// Pages of trusted origins may write.
func crossOrigin(trusted []string) *http.CrossOriginProtection {
	p := http.NewCrossOriginProtection()
	for _, origin := range trusted {
		_ = p.AddTrustedOrigin(origin) // fails for * only, so that not every page may write
	}
	return p
}

// isCrossOrigin reports whether a request is such a write. It compares origins with the host that the client used.
func (a *API) isCrossOrigin(r *http.Request) bool {
	sent := *r
	sent.Host = requestOf(r.Context()).host
	return a.origins.Check(&sent) != nil
}

// credentialOf reads the headers in the order of docs/interface.md. An explicit credential takes precedence over the
// cookies. Browsers add a user name and password that they have stored to all requests to the host, whoever causes
// them. prefix is that of the tenant's Prefixed operations.
func (a *API) credentialOf(r *http.Request, prefix string) Credential {
	session := Credential{}
	if c, err := r.Cookie(SessionCookie); err == nil && c.Value != "" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		session = Credential{Bearer: c.Value, Cookie: true}
	}
	header := r.Header.Get("Authorization")
	scheme, value, _ := strings.Cut(header, " ")
	switch {
	case strings.EqualFold(scheme, "Bearer"):
		return Credential{Bearer: strings.TrimSpace(value)}
	case strings.EqualFold(scheme, "Basic") && !a.isCrossOrigin(r):
		mode := r.Header.Get("Sec-Fetch-Mode")
		if (mode == "no-cors" || mode == "navigate") && !session.Empty() && !isOPDS(r.URL.Path) &&
			slices.ContainsFunc(a.byCookie, func(p string) bool { return fits(p, r.URL.Path) }) {
			return session // no script has set the header
		}
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
	if c, err := r.Cookie(readerCookie); err == nil && c.Value != "" && prefix != "" && strings.HasPrefix(r.URL.Path, "/"+prefix+"/") && !a.isCrossOrigin(r) {
		return Credential{Bearer: c.Value, Cookie: true, Reader: true}
	}
	return session
}

type cookieKey struct{}

// viaCookie reports whether the request is authenticated by a cookie.
func viaCookie(ctx context.Context) bool { v, _ := ctx.Value(cookieKey{}).(bool); return v }

// giveReaderCookie sets the cookie for a caller who sent a password, unless the request has a good one. Whoever has a
// token must not get another that ends later.
func (a *API) giveReaderCookie(ctx context.Context, caller *auth.Caller) {
	r := requestOf(ctx)
	if !r.password || a.identity.Tokens == nil || caller.Generation == nil || !caller.Expires.IsZero() {
		return
	}
	if sent := CookieOf(ctx, readerCookie); sent != "" {
		of, err := a.identity.Known(ctx, Credential{Bearer: sent, Cookie: true, Reader: true})
		if err == nil && of != nil && of.AccountID == caller.AccountID && of.Generation != nil && *of.Generation == *caller.Generation {
			return
		}
	}
	tokens := a.identity.Tokens
	token, err := tokens.Sign(r.tenant.ID, caller.AccountID, *caller.Generation, time.Now())
	if err != nil {
		slog.WarnContext(ctx, "cannot sign the cookie for an app made for Komga", "error", err)
		return
	}
	Cookie(ctx, &http.Cookie{Name: readerCookie, Value: token, Path: "/" + r.tenant.Prefix, MaxAge: int(tokens.Life().Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: Secure(ctx)})
}

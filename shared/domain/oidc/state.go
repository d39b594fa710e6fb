package oidc

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// life is how long a sign-in may take.
const life = 5 * time.Minute

// maxRedirect is the maximum length of a redirect address, in bytes.
const maxRedirect = 2000

// kept is the secret of a sign-in, which only the browser keeps, in a cookie. The nonce that the provider returns, and
// the PKCE verifier (RFC 7636) that proves that the code is ours, derive from it.
type kept string

func (k kept) nonce() string    { return k.derive("nonce") }
func (k kept) verifier() string { return k.derive("verifier") }

func (k kept) derive(what string) string {
	mac := hmac.New(sha256.New, []byte(k))
	mac.Write([]byte(what))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// cookieName is unique per sign-in, so that two tabs do not interfere. Browsers accept __Host- only over https, and
// from no other host of the domain.
func cookieName(ctx context.Context, hash []byte) string {
	name := "oidc-" + base64.RawURLEncoding.EncodeToString(hash[:12])
	if httpapi.Secure(ctx) {
		name = "__Host-" + name
	}
	return name
}

func setCookie(ctx context.Context, hash []byte, value string, seconds int) {
	httpapi.Cookie(ctx, &http.Cookie{Name: cookieName(ctx, hash), Value: value, Path: "/", MaxAge: seconds,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: httpapi.Secure(ctx)})
}

// queueState stores a pending sign-in.
func queueState(b *pgx.Batch, hash []byte, browser kept, provider uuid.UUID, redirect string) {
	b.Queue(`insert into oidc_state (tenant_id, hash, browser, provider_id, redirect_uri, expires_at)
		select p.tenant_id, $1, $2, p.id, nullif($4, ''), now() + $5::interval from oidc_provider p where p.tenant_id = app.tenant() and p.id = $3`,
		hash, auth.HashSecret(string(browser)), provider, redirect, life)
}

// begun is a pending sign-in with its provider.
type begun struct {
	secretive
	Browser  []byte  `db:"browser"`
	Redirect *string `db:"redirect_uri"`
	Expired  bool    `db:"expired"`
}

// take consumes a sign-in: its state cannot be used again, whatever the result. nil if it is unknown, expired, or
// belongs to another provider or browser.
func take(ctx context.Context, d *db.DB, hash []byte, provider string, browser kept) (*begun, error) {
	b, err := db.Get[begun](ctx, d, `with s as (
			delete from oidc_state where tenant_id = app.tenant() and hash = $1 returning provider_id, browser, redirect_uri, expires_at <= now() as expired)
		select `+columns+`, client_secret, s.browser, s.redirect_uri, s.expired from s join oidc_provider p on p.tenant_id = app.tenant() and p.id = s.provider_id`, hash)
	if err != nil || b == nil {
		return nil, err
	}
	if b.Expired || b.Name != provider || !b.Enabled || browser == "" || subtle.ConstantTimeCompare(b.Browser, auth.HashSecret(string(browser))) != 1 {
		return nil, nil
	}
	return b, nil
}

// Forget deletes the expired sign-ins of every tenant. The scheduler calls it, with the role that sees all tenants.
func Forget(ctx context.Context, system *db.DB) (int64, error) {
	n, err := system.Pool().Exec(ctx, "delete from oidc_state where expires_at < now()")
	if err != nil {
		return 0, fmt.Errorf("delete expired sign-ins: %w", err)
	}
	return n.RowsAffected(), nil
}

// checkRedirect rejects a redirect address, which receives the session, unless it is on this server or allowed by the
// operator.
func checkRedirect(ctx context.Context, p *Provider, uri string) error {
	if slices.Contains(p.RedirectURIs, uri) {
		return nil
	}
	refused := fault.Invalid("redirectUri", "must be an address of this server or one that its operator allows")
	// Browsers treat a backslash as a slash, and ignore control characters.
	if strings.ContainsFunc(uri, func(r rune) bool { return r <= ' ' || r == '\\' || r == 0x7f || r == '#' }) {
		return refused
	}
	u, err := url.Parse(uri)
	if err != nil || u.User != nil || u.Opaque != "" {
		return refused
	}
	if u.Scheme == "" && u.Host == "" && strings.HasPrefix(uri, "/") && !strings.HasPrefix(uri, "//") {
		return nil
	}
	if own, err := url.Parse(httpapi.Address(ctx)); err != nil || u.Scheme != own.Scheme || own.Host == "" || !strings.EqualFold(u.Host, own.Host) {
		return refused
	}
	return nil
}

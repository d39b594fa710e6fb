package plugin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/plug"
)

// Limits of signing in to a plugin's service: its duration, pending sign-ins per user, how long before its expiry a
// token is renewed, and the time for renewing it.
const (
	signInTime   = 5 * time.Minute
	mostSignIns  = 3
	renewBefore  = 5 * time.Minute
	renewTime    = 12 * time.Second
	replaceTime  = 12 * time.Second // for storing the renewed token
	replaceTry   = 4 * time.Second  // for one attempt of it: the connection may be dead without an error
	replacePause = 200 * time.Millisecond
	callbackPath = "/api/v1/user/plugins/oauth/callback"
	signInCookie = "plugin_sign_in_" // and the beginning of the state's digest: several may be pending
)

// SignIn is where the caller signs in to a plugin's service.
type SignIn struct {
	RedirectURL string `json:"redirectUrl"`
}

func (s *service) signInRoutes(a *httpapi.API) {
	httpapi.Register(a, actingOp("POST", "/{pluginId}/oauth/start", "startUserPluginSignIn", "Start signing in to a plugin's service; must be finished within five minutes in the same browser"),
		func(ctx context.Context, in *UserInput) (*SignIn, error) { return s.signIn(ctx, in.PluginID) })
	a.Handle(httpapi.Op{Method: "GET", Path: callbackPath, ID: "finishUserPluginSignIn", Summary: "Finish signing in to a plugin's service, which redirects the browser to this callback",
		Tag: "User plugins", Permission: httpapi.Public, Media: "text/html", Query: []httpapi.Query{{Name: "code", Text: true}, {Name: "state", Text: true}, {Name: "error", Text: true},
			{Name: "errorDescription", Text: true}, {Name: "scope", Text: true}, {Name: "iss", Text: true}}}, s.signedIn)
}

// secretText returns a random secret.
func secretText() string {
	var b [32]byte
	_, _ = rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// cookieOf returns the cookie name of a sign-in.
func cookieOf(state []byte) string { return signInCookie + hex.EncodeToString(state[:8]) }

// signInOwner is the context to which the encrypted verifier of a sign-in is bound.
func signInOwner(tenant uuid.UUID, state []byte) string {
	return tenant.String() + "/sign-in/" + hex.EncodeToString(state)
}

// signIn starts a sign-in (RFC 6749, section 4.1, with RFC 7636). The browser that returns with the code must be the
// one that started: otherwise an attacker could make somebody else sign in for them.
func (s *service) signIn(ctx context.Context, plugin uuid.UUID) (*SignIn, error) {
	p, err := db.Get[Plugin](ctx, s.Database, "select "+columns+" from plugin p where p.tenant_id = app.tenant() and p.id = $1 and p.plugin_type = 'user'", plugin)
	if err != nil {
		return nil, err
	}
	if err := mayWrite(ctx); err != nil {
		return nil, err
	}
	if err := p.usable(); err != nil {
		return nil, err
	}
	o := p.oauth()
	if o == nil || p.clientID() == "" {
		return nil, fault.New(fault.BadRequest,
			"Sign-in to the service of the plugin %s is not set up: an administrator must set oauth_client_id in its config and test the plugin once", p.Name)
	}
	to, err := url.Parse(o.AuthorizationURL)
	if err != nil || !leadsOut(o.AuthorizationURL) {
		return nil, fault.New(fault.BadRequest, "The plugin %s has no valid sign-in address", p.Name)
	}
	state, verifier, tenant := secretText(), secretText(), httpapi.TenantOf(ctx).ID
	sum := sha256.Sum256([]byte(state))
	sealed, err := s.Key.Seal(signInOwner(tenant, sum[:]), []byte(verifier))
	if err != nil {
		return nil, err
	}
	back := httpapi.Address(ctx) + callbackPath
	var b pgx.Batch
	var n int64
	b.Queue(`insert into user_plugin (tenant_id, id, account_id, plugin_id) select app.tenant(), gen_random_uuid(), app.account(), p.id
		from plugin p where p.tenant_id = app.tenant() and p.id = $1 on conflict do nothing`, plugin)
	// The lock serializes the count.
	b.Queue("select from account where tenant_id = app.tenant() and id = app.account() for no key update")
	b.Queue("delete from user_plugin_sign_in i using user_plugin u where i.tenant_id = app.tenant() and i.user_plugin_id = u.id and i.expires_at < now() and"+ownRow, plugin)
	db.Affected(&b, &n, `insert into user_plugin_sign_in (tenant_id, state, user_plugin_id, verifier, redirect_uri, expires_at)
		select u.tenant_id, $2, u.id, $3, $4, now() + $5::interval from user_plugin u where`+ownRow+` and (select count(*) from user_plugin_sign_in i
		  join user_plugin o on o.tenant_id = i.tenant_id and o.id = i.user_plugin_id where i.tenant_id = app.tenant() and o.account_id = app.account()
		  and i.expires_at >= now()) < $6`, plugin, sum[:], sealed, back, signInTime, mostSignIns)
	if err := s.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, fault.New(fault.TooManyRequests, "You have started to sign in %d times; finish one of these sign-ins, or wait five minutes",
			mostSignIns).After(signInTime)
	}
	httpapi.Cookie(ctx, &http.Cookie{Name: cookieOf(sum[:]), Value: state, Path: callbackPath, MaxAge: int(signInTime.Seconds()), HttpOnly: true,
		Secure: httpapi.Secure(ctx), SameSite: http.SameSiteLaxMode})
	q := to.Query()
	for k, v := range map[string]string{"response_type": "code", "client_id": p.clientID(), "redirect_uri": back, "state": state} {
		q.Set(k, v)
	}
	if len(o.Scopes) > 0 {
		q.Set("scope", strings.Join(o.Scopes, " "))
	}
	if o.PKCE {
		challenge := sha256.Sum256([]byte(verifier))
		q.Set("code_challenge", base64.RawURLEncoding.EncodeToString(challenge[:]))
		q.Set("code_challenge_method", "S256")
	}
	to.RawQuery = q.Encode()
	return &SignIn{to.String()}, nil
}

// signedIn completes a sign-in and responds with a page that closes itself.
func (s *service) signedIn(w http.ResponseWriter, r *http.Request) error {
	ctx, q := r.Context(), r.URL.Query()
	status, text := http.StatusOK, "You are signed in; you can close this window."
	if err := s.finishSignIn(ctx, r, q); err != nil {
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != fault.BadRequest {
			return err
		}
		status, text = http.StatusBadRequest, f.Message
	}
	nonce, script := secretText(), ""
	if status == http.StatusOK {
		script = `<script nonce="` + nonce + `">window.close()</script>`
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'nonce-"+nonce+"'; frame-ancestors 'none'")
	state := sha256.Sum256([]byte(q.Get("state")))
	http.SetCookie(w, &http.Cookie{Name: cookieOf(state[:]), Path: callbackPath, MaxAge: -1, HttpOnly: true, Secure: httpapi.Secure(ctx), SameSite: http.SameSiteLaxMode})
	w.WriteHeader(status)
	// The browser may have disconnected.
	_, _ = io.WriteString(w, "<!doctype html><meta charset=utf-8><title>Longbox</title><p>"+html.EscapeString(text)+"</p>"+script)
	return nil
}

// begun is a pending sign-in.
type begun struct {
	Verifier []byte    `db:"verifier"`
	Redirect string    `db:"redirect_uri"`
	Plugin   uuid.UUID `db:"plugin_id"`
	mine
}

func (s *service) finishSignIn(ctx context.Context, r *http.Request, q url.Values) error {
	state, code := q.Get("state"), q.Get("code")
	sum := sha256.Sum256([]byte(state))
	cookie, err := r.Cookie(cookieOf(sum[:]))
	if err != nil || state == "" || cookie.Value != state {
		return fault.New(fault.BadRequest, "No sign-in was started in this browser, or it took more than five minutes; start again")
	}
	var b pgx.Batch
	var at *begun
	var p *runnable
	db.One(&b, &at, `with this as (delete from user_plugin_sign_in where tenant_id = app.tenant() and state = $1 and expires_at >= now() returning user_plugin_id, verifier, redirect_uri)
		select this.verifier, this.redirect_uri, `+ownColumns+" from this join user_plugin u on u.tenant_id = app.tenant() and u.id = this.user_plugin_id", sum[:])
	if err := s.Database.Run(ctx, &b); err != nil {
		return err
	}
	if at == nil {
		return fault.New(fault.BadRequest, "The sign-in was not started, or it took more than five minutes; start again")
	}
	if code == "" {
		why := clip(cut.Storable(q.Get("error") + " " + q.Get("errorDescription")))
		return fault.New(fault.BadRequest, "You are not signed in; the service says: %s", strings.TrimSpace(why))
	}
	if p, err = s.load(ctx, at.PluginID); err != nil {
		return err
	}
	if p.usable() != nil {
		return fault.New(fault.BadRequest, "You are not signed in: the plugin has been disabled")
	}
	if iss := q.Get("iss"); iss != "" && !sameOrigin(iss, p.oauth()) {
		return fault.New(fault.BadRequest, "You are not signed in: the answer comes from another service than the plugin's")
	}
	verifier, err := s.Key.Open(signInOwner(p.Tenant, sum[:]), at.Verifier)
	if err != nil {
		return err
	}
	p.mine = &at.mine
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {at.Redirect}}
	if o := p.oauth(); o != nil && o.PKCE {
		form.Set("code_verifier", string(verifier))
	}
	t, err := s.token(ctx, p, form)
	if err != nil {
		return fault.New(fault.BadRequest, "You are not signed in: %v", err)
	}
	if at.kept, err = db.List[keptValue](ctx, s.Database, keptSQL+"$1", at.ID); err != nil {
		return err
	}
	_, err = s.connect(ctx, p, t)
	return err
}

// sameOrigin reports whether the issuer of a response (RFC 9207) is the service to which the user was sent.
func sameOrigin(iss string, o *OAuth) bool {
	if o == nil {
		return false
	}
	a, err := url.Parse(iss)
	if err != nil {
		return false
	}
	b, err := url.Parse(o.AuthorizationURL)
	return err == nil && a.Scheme == b.Scheme && a.Host == b.Host
}

// errGrant says that a service does not accept a grant, or not any more.
var errGrant = errors.New("the service does not accept the sign-in")

// token requests tokens from a plugin's service (RFC 6749, sections 4.1.3 and 6).
func (r *Runner) token(ctx context.Context, p *runnable, form url.Values) (*tokens, error) {
	o := p.oauth()
	if o == nil || !leadsOut(o.TokenURL) {
		return nil, errors.New("the plugin has no valid token address")
	}
	form.Set("client_id", p.clientID())
	if secret := p.configText("oauth_client_secret"); secret != "" {
		form.Set("client_secret", secret)
	}
	answer, err := r.Client.Web(ctx, plug.WebRequest{Method: http.MethodPost, Address: o.TokenURL, Form: []byte(form.Encode()),
		Headers: map[string]string{"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}})
	if err != nil {
		return nil, err
	}
	var got struct {
		AccessToken  string      `json:"access_token"`
		RefreshToken string      `json:"refresh_token"`
		ExpiresIn    json.Number `json:"expires_in"`
		Error        string      `json:"error"`
	}
	_ = json.Unmarshal(answer.Body, &got) // an invalid body has no token
	if answer.Status != http.StatusOK || got.AccessToken == "" || len(answer.Body) > 4*maxToken {
		err := fmt.Errorf("the service answers %d %s", answer.Status, clip(cut.Storable(got.Error)))
		if got.Error == "invalid_grant" { // all else is the administrator's mistake, or passes
			err = fmt.Errorf("%w: %w", errGrant, err)
		}
		return nil, err
	}
	out := &tokens{Access: got.AccessToken, Refresh: got.RefreshToken}
	if seconds, err := got.ExpiresIn.Int64(); err == nil && seconds > 0 {
		out.Expires = new(time.Now().Add(time.Duration(min(seconds, 10*365*24*3600)) * time.Second))
	}
	return out, nil
}

// freshen renews a token that is about to expire. If the service refuses, the user must sign in again. It continues
// even if the task is cancelled or its lease is lost: many services revoke the old token when they issue the new one,
// which would then be lost.
func (r *Runner) freshen(ctx context.Context, p *runnable) error {
	t, err := p.mine.tokens(r.Key, p.Tenant)
	if err != nil {
		return fault.New(fault.BadRequest, "Your credentials for the plugin %s cannot be read; enter them again", p.Name)
	}
	if t == nil || t.Expires == nil || t.Refresh == "" || time.Until(*t.Expires) > renewBefore {
		return nil
	}
	old := p.mine.Credentials
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTime)
	defer cancel()
	ctx = db.In(ctx, db.Tenant(p.Tenant))
	fresh, err := r.token(ctx, p, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {t.Refresh}})
	switch {
	case errors.Is(err, errGrant):
		p.mine.Credentials = nil
	case err != nil:
		return fault.New(fault.Unavailable, "The token of the plugin %s cannot be renewed: %v", p.Name, err)
	default:
		if fresh.Refresh == "" { // the old one stays valid
			fresh.Refresh = t.Refresh
		}
		if err := r.hold(p, fresh); err != nil {
			return err
		}
	}
	now, err := r.replace(ctx, p.mine, old)
	if err != nil {
		return err
	}
	if now == nil {
		return fault.New(fault.BadRequest, "Your sign-in to the service of the plugin %s is no longer valid; sign in again", p.Name)
	}
	p.mine.Credentials = now
	return nil
}

// replace stores the user's credentials in place of the old ones, and returns those that are stored then: if another
// task has renewed them meanwhile, that token is used. The service has issued the new token only once, so a database
// that fails is asked again for a while, beyond the time of the request to the service.
func (r *Runner) replace(ctx context.Context, m *mine, old []byte) (now []byte, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), replaceTime)
	defer cancel()
	for {
		try, stop := context.WithTimeout(ctx, replaceTry)
		stored, err := db.Get[struct {
			Credentials []byte `db:"credentials"`
		}](try, r.Database, `with changed as (update user_plugin set credentials = $3, updated_at = now() where tenant_id = app.tenant() and id = $1 and credentials = $2 returning credentials)
			select credentials from changed union all
			select credentials from user_plugin where tenant_id = app.tenant() and id = $1 and not exists (select from changed)`, m.ID, old, m.Credentials)
		stop()
		switch {
		case err == nil && stored == nil:
			return nil, nil
		case err == nil:
			return stored.Credentials, nil
		case !fault.Is(err, fault.Unavailable):
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(replacePause):
		}
	}
}

package oidc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/jackc/pgx/v5"
	"golang.org/x/oauth2"

	"github.com/longbox/longbox/shared/domain/account"
	"github.com/longbox/longbox/shared/lazyregexp"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/plug"
	"github.com/longbox/longbox/shared/platform/seal"
)

// Providers are the identity providers that a sign-in page offers besides the password.
type Providers struct {
	Enabled   bool          `json:"enabled"`
	Providers []ProviderRef `json:"providers" nullable:"false" doc:"Sorted by name"`
}

// ProviderRef is an identity provider.
type ProviderRef struct {
	Name        string `json:"name" db:"name"`
	DisplayName string `json:"displayName" db:"display_name"`
	LoginURL    string `json:"loginUrl" db:"login_url"`
}

// LoginBody says where to redirect after the sign-in.
type LoginBody struct {
	RedirectURI *string `json:"redirectUri,omitempty" maxLength:"2000" nullable:"true" doc:"Address of this server, or one that its operator allows; defaults to /login/oidc/complete"`
}

// LoginResponse is where to send the browser.
type LoginResponse struct {
	RedirectURL string `json:"redirectUrl"`
}

// CallbackInput holds the query parameters with which the identity provider redirects the browser.
type CallbackInput struct {
	Provider         string `path:"provider" maxLength:"100"`
	Code             string `query:"code" maxLength:"4096"`
	State            string `query:"state" maxLength:"200"`
	Error            string `query:"error" maxLength:"1000"`
	ErrorDescription string `query:"errorDescription" maxLength:"4000"`
	Issuer           string `query:"iss" maxLength:"1000"`
}

// Session is a signed-in user: the fragment of the address to which the browser is redirected, as JSON in base64url.
type Session struct {
	AccessToken  string           `json:"accessToken"`
	ExpiresIn    int              `json:"expiresIn"`
	NewAccount   bool             `json:"newAccount"`
	Provider     string           `json:"provider"`
	RefreshToken string           `json:"refreshToken"`
	TokenType    string           `json:"tokenType"`
	User         account.UserInfo `json:"user"`
}

// Default redirects.
const (
	signedIn = "/login/oidc/complete"
	failed   = "/login"
)

type service struct {
	database *db.DB
	tokens   *auth.Tokens
	key      *seal.Key
	publish  events.Publish
	bump     events.AccessChanged
	known    discovery
}

// Routes registers sign-in at identity providers, which web reaches. bump is called after a change of a user's
// permissions, and publish tells the user's clients of another membership.
func Routes(a *httpapi.API, d *db.DB, tokens *auth.Tokens, key *seal.Key, web *plug.Client, publish events.Publish, bump events.AccessChanged) {
	s := &service{database: d, tokens: tokens, key: key, publish: publish, bump: bump, known: discovery{web: web, known: map[source]found{}}}
	operation := httpapi.Group{Path: "/api/v1/auth/oidc", Tag: "Authentication"}.For(httpapi.Public)
	httpapi.Register(a, operation("GET", "/providers", "listOidcProviders", "List the identity providers for sign-in"),
		func(ctx context.Context, _ *struct{}) (*Providers, error) {
			all, err := db.List[ProviderRef](ctx, d, `select name, display_name, '/api/v1/auth/oidc/' || name || '/login' as login_url
				from oidc_provider where tenant_id = app.tenant() and enabled order by name`)
			return &Providers{Enabled: len(all) > 0, Providers: append([]ProviderRef{}, all...)}, err
		})
	httpapi.Register(a, operation("POST", "/{provider}/login", "startOidcLogin",
		"Start an OIDC sign-in; the same browser must open the returned address within five minutes"),
		func(ctx context.Context, in *struct {
			Provider string `path:"provider" maxLength:"100"`
			Body     *LoginBody
		}) (*LoginResponse, error) {
			if err := a.TakeLogin(ctx); err != nil {
				return nil, err
			}
			redirect := ""
			if in.Body != nil && in.Body.RedirectURI != nil {
				redirect = *in.Body.RedirectURI
			}
			return s.login(ctx, in.Provider, redirect)
		})
	back := operation("GET", "/{provider}/callback", "finishOidcLogin",
		"Finish an OIDC sign-in: redirect with the session in the fragment, or error and error_description in the query")
	back.Status = http.StatusSeeOther
	httpapi.Register(a, back,
		func(ctx context.Context, in *CallbackInput) (*httpapi.None, error) {
			httpapi.Header(ctx).Set("Cache-Control", "no-store")
			to, err := s.callback(ctx, in)
			if err != nil {
				return nil, err
			}
			httpapi.Header(ctx).Set("Location", to)
			return nil, nil
		})
}

var errUnknown = fault.Invalid("provider", "is not an identity provider of this server")

// callbackOf returns the callback address for a provider.
func callbackOf(ctx context.Context, provider string) string {
	return httpapi.Address(ctx) + "/api/v1/auth/oidc/" + url.PathEscape(provider) + "/callback"
}

// login starts a sign-in.
func (s *service) login(ctx context.Context, name, redirect string) (*LoginResponse, error) {
	p, err := db.Get[Provider](ctx, s.database, "select "+columns+" from oidc_provider where tenant_id = app.tenant() and name = $1 and enabled", name)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, errUnknown
	}
	if redirect != "" {
		if err := checkRedirect(ctx, p, redirect); err != nil {
			return nil, err
		}
	}
	asking, cancel := context.WithTimeout(ctx, whole)
	defer cancel()
	_, f, err := s.known.of(asking, httpapi.TenantOf(ctx).ID, p.Issuer)
	if err != nil {
		return nil, unavailable(err)
	}
	state, hash := auth.NewSecret()
	cookie, _ := auth.NewSecret()
	browser := kept(cookie)
	var b pgx.Batch
	queueState(&b, hash, browser, p.ID, redirect)
	if err := s.database.Run(ctx, &b); err != nil {
		return nil, err
	}
	setCookie(ctx, hash, cookie, int(life.Seconds()))
	httpapi.Header(ctx).Set("Cache-Control", "no-store")
	return &LoginResponse{f.config(p, "", callbackOf(ctx, p.Name)).AuthCodeURL(state, oidc.Nonce(browser.nonce()), oauth2.S256ChallengeOption(browser.verifier()))}, nil
}

// unavailable says when to retry a provider that does not respond properly.
func unavailable(err error) error {
	wait := time.Second
	if a := (*away)(nil); errors.As(err, &a) {
		wait = max(time.Until(a.until).Round(time.Second), time.Second)
	}
	return fault.Wrap(told{err}, fault.Unavailable, "The identity provider does not answer correctly; try again in %d seconds, or ask the operator of this server",
		int(wait.Seconds())).After(wait)
}

// callback completes a sign-in and returns where to redirect the browser. An error is one of this server, not of the
// sign-in.
func (s *service) callback(ctx context.Context, in *CallbackInput) (string, error) {
	hash := auth.HashSecret(in.State)
	browser := kept(httpapi.CookieOf(ctx, cookieName(ctx, hash)))
	began, err := take(ctx, s.database, hash, in.Provider, browser)
	if err != nil {
		return "", err
	}
	if began == nil {
		exists, err := db.GetValue[bool](ctx, s.database, "select exists (select from oidc_provider where tenant_id = app.tenant() and name = $1 and enabled)", in.Provider)
		if err != nil {
			return "", err
		}
		if !exists {
			return "", errUnknown
		}
		return withError(failed, &refusal{"invalid_state",
			"This sign-in is unknown: it took longer than five minutes, is already finished, or was started in another browser. Start again"}), nil
	}
	setCookie(ctx, hash, "", -1)
	to, onError := signedIn, failed
	if began.Redirect != nil {
		to, onError = *began.Redirect, *began.Redirect
	}
	session, err := s.finish(ctx, in, began, browser)
	var refused *refusal
	if errors.As(err, &refused) {
		return withError(onError, refused), nil
	}
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(session)
	if err != nil {
		return "", err
	}
	return to + "#" + base64.RawURLEncoding.EncodeToString(data), nil
}

var errorWord = lazyregexp.New(`^[a-z_]{1,64}$`)

// finish identifies the user and opens the session. The error is a *refusal if the sign-in fails.
func (s *service) finish(ctx context.Context, in *CallbackInput, began *begun, browser kept) (*Session, error) {
	p, tenant := &began.Provider, httpapi.TenantOf(ctx).ID
	switch {
	case in.Error != "":
		httpapi.Note(ctx, slog.String("oidc", fault.Line(in.Error+": "+in.ErrorDescription)))
		if in.Error == "access_denied" || !errorWord.MatchString(in.Error) {
			return nil, denied("The identity provider did not sign you in")
		}
		return nil, &refusal{in.Error, "The identity provider did not sign you in"}
	case in.Code == "" || in.Issuer != "" && in.Issuer != p.Issuer: // RFC 9207
		return nil, &refusal{"invalid_request", "The identity provider's answer is incomplete or comes from another provider"}
	}
	secret := ""
	if began.Secret != nil {
		opened, err := s.key.Open(owner(tenant, p.ID), began.Secret)
		if err != nil {
			httpapi.Note(ctx, slog.String("oidc", "client secret of "+p.Name+": "+err.Error()))
			return nil, &refusal{"server_error", "The client secret of the identity provider cannot be read; the operator of this server must set it again"}
		}
		secret = string(opened)
	}
	asking, cancel := context.WithTimeout(ctx, whole)
	defer cancel()
	asking, f, err := s.known.of(asking, tenant, p.Issuer)
	var who *identity
	if err == nil {
		who, err = f.redeem(asking, f.config(p, secret, callbackOf(ctx, p.Name)), p, in.Code, browser)
	}
	if err != nil {
		httpapi.Note(ctx, slog.String("oidc", told{err}.Error()))
		var away *plug.Fault
		if errors.As(err, &away) || errors.Is(err, context.DeadlineExceeded) {
			return nil, &refusal{"temporarily_unavailable", "The identity provider does not answer; try again"}
		}
		return nil, &refusal{"server_error", "The identity provider's answer is not valid; ask the operator of this server, whose log has the reason"}
	}
	e, err := enter(ctx, s.database, p, who)
	if err != nil {
		return nil, err
	}
	if e.changed {
		s.bump(ctx, tenant)
	}
	if e.moved {
		reload := events.Resync("access_changed")
		reload.UserID = e.ID.String()
		s.publish(ctx, tenant, reload)
	}
	session, err := account.StartSession(ctx, s.database, s.tokens, e.ID, e.Generation)
	if fault.Is(err, fault.Unauthorized) { // disabled meanwhile
		return nil, denied("This user is disabled; ask an administrator")
	}
	if err != nil {
		return nil, err
	}
	return &Session{AccessToken: session.AccessToken, ExpiresIn: session.ExpiresIn, NewAccount: e.made, Provider: p.Name,
		RefreshToken: session.RefreshToken, TokenType: session.TokenType, User: session.User}, nil
}

// withError adds the reason of a failed sign-in to an address.
func withError(to string, r *refusal) string {
	mark := "?"
	if strings.Contains(to, "?") {
		mark = "&"
	}
	return to + mark + url.Values{"error": {r.code}, "error_description": {r.text}}.Encode()
}

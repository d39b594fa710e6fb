package account

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// refreshLife is how long a session lasts without a refresh.
const refreshLife = 30 * 24 * time.Hour

// LoginResponse is a session: the response of POST /auth/login, in snake_case.
type LoginResponse struct {
	AccessToken  string   `json:"access_token"`
	TokenType    string   `json:"token_type" enum:"Bearer"`
	ExpiresIn    int      `json:"expires_in" doc:"Seconds until the access token expires"`
	RefreshToken string   `json:"refresh_token" doc:"Token for a single POST /auth/refresh; valid for 30 days"`
	User         UserInfo `json:"user"`
}

// TokenPair is a refreshed session.
type TokenPair struct {
	AccessToken  string `json:"accessToken"`
	RefreshToken string `json:"refreshToken" doc:"Token for a single use; valid for 30 days"`
	ExpiresIn    int    `json:"expiresIn" doc:"Seconds until the access token expires"`
	TokenType    string `json:"tokenType" enum:"Bearer"`
}

// Access is a sign-in without a refresh token: it ends with the access token.
type Access struct {
	AccessToken string   `json:"accessToken"`
	TokenType   string   `json:"tokenType" enum:"Bearer"`
	ExpiresIn   int      `json:"expiresIn" doc:"Seconds until the access token expires"`
	User        UserInfo `json:"user"`
}

var errSession = fault.New(fault.Unauthorized, "The session has ended; sign in again")

// SignIn signs in an account whose credential was checked at the given generation, and sets the session cookie.
// Unauthorized if the account has changed since.
func SignIn(ctx context.Context, d *db.DB, tokens *auth.Tokens, account uuid.UUID, generation int32) (*Access, error) {
	who, err := db.Get[signedIn](ctx, d, signInSQL, account, generation)
	if err != nil {
		return nil, err
	}
	return sign(ctx, tokens, who)
}

// StartSession is SignIn with a refresh token, which renews the session.
func StartSession(ctx context.Context, d *db.DB, tokens *auth.Tokens, account uuid.UUID, generation int32) (*LoginResponse, error) {
	next := newRefresh()
	var b pgx.Batch
	var who *signedIn
	queueSession(&b, &who, account, generation, next)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	a, err := sign(ctx, tokens, who)
	if err != nil {
		return nil, err
	}
	return &LoginResponse{AccessToken: a.AccessToken, TokenType: a.TokenType, ExpiresIn: a.ExpiresIn, RefreshToken: next.token, User: a.User}, nil
}

// renew exchanges a refresh token for the next one of its family.
func (s *service) renew(ctx context.Context, token string) (*TokenPair, error) {
	next := newRefresh()
	var b pgx.Batch
	var who *signedIn
	queueRenew(&b, &who, auth.HashSecret(token), next)
	if err := s.database.Run(ctx, &b); err != nil {
		return nil, err
	}
	a, err := sign(ctx, s.tokens, who)
	if err != nil {
		return nil, err
	}
	return &TokenPair{AccessToken: a.AccessToken, RefreshToken: next.token, ExpiresIn: a.ExpiresIn, TokenType: a.TokenType}, nil
}

// logout ends the caller's session: that of the refresh token, unless nil, and the cookie.
func (s *service) logout(ctx context.Context, token *string) (*LogoutResponse, error) {
	var b pgx.Batch
	if token != nil {
		queueEnd(&b, auth.HashSecret(*token))
	}
	if err := s.database.Run(ctx, &b); err != nil {
		return nil, err
	}
	setCookie(ctx, "", -1)
	return &LogoutResponse{Message: "You are signed out"}, nil
}

// stream returns what an event stream may show the caller.
func (s *service) stream(ctx context.Context) (*StreamAccess, error) {
	c := auth.CallerOf(ctx)
	ends, err := db.GetValue[*time.Time](ctx, s.database,
		"select expires_at from api_key where tenant_id = app.tenant() and account_id = app.account() and hash = $1", c.KeyHash)
	if err != nil {
		return nil, err
	}
	if !c.Expires.IsZero() {
		ends = new(c.Expires.UTC())
	}
	permissions := slices.Sorted(slices.Values(c.Permissions))
	if !c.Limited {
		permissions = append(permissions, events.SeesAll)
	}
	return &StreamAccess{TenantID: c.Tenant, UserID: c.AccountID, Permissions: slices.Compact(permissions), ExpiresAt: ends}, nil
}

// sign creates the access token for who and sets the cookie; a nil who is Unauthorized.
func sign(ctx context.Context, tokens *auth.Tokens, who *signedIn) (*Access, error) {
	if who == nil {
		return nil, errSession
	}
	access, err := tokens.Sign(httpapi.TenantOf(ctx).ID, who.ID, who.Generation, time.Now())
	if err != nil {
		return nil, err
	}
	life := int(tokens.Life().Seconds())
	setCookie(ctx, access, life)
	httpapi.Header(ctx).Set("Cache-Control", "no-store")
	return &Access{AccessToken: access, TokenType: "Bearer", ExpiresIn: life, User: who.UserInfo}, nil
}

// setCookie sets the session cookie with a lifetime in seconds; a negative number deletes it.
func setCookie(ctx context.Context, value string, seconds int) {
	httpapi.Cookie(ctx, &http.Cookie{Name: httpapi.SessionCookie, Value: value, Path: "/", MaxAge: seconds,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: httpapi.Secure(ctx)})
}

// newToken is a refresh token before it is stored. The columns user_agent and ip of its table are not written any more:
// nothing reads them. A later release drops them.
type newToken struct {
	id      uuid.UUID
	token   string
	hash    []byte
	expires time.Time
}

func newRefresh() newToken {
	token, hash := auth.NewSecret()
	return newToken{id: uuid.Must(uuid.NewV7()), token: token, hash: hash, expires: time.Now().Add(refreshLife)}
}

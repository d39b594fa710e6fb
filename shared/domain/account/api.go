package account

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/identity"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/mail"
)

// LoginInput is a user name or e-mail address with the password.
type LoginInput struct {
	Body struct {
		Username string `json:"username" minLength:"1" maxLength:"320" doc:"User name or e-mail address"`
		Password string `json:"password" minLength:"1" maxLength:"1024"`
	}
}

// LogoutResponse says that the session has ended.
type LogoutResponse struct {
	Message string `json:"message"`
}

// StreamAccess says what an event stream may show a user.
type StreamAccess struct {
	TenantID    uuid.UUID  `json:"tenantId" format:"uuid"`
	UserID      uuid.UUID  `json:"userId" format:"uuid"`
	Permissions []string   `json:"permissions" nullable:"false" doc:"All permissions of the user, limited to those of the API key; includes SeesAll if no series is hidden from the user"`
	ExpiresAt   *time.Time `json:"expiresAt" nullable:"true" doc:"Time at which the credential expires; null if it has no expiry"`
}

// Routes registers sign-in, registration and user administration. bump is called after a change of a user's
// permissions. publicURL is the address of the installation for links in mails; {tenant} in it is replaced by the
// tenant's name.
func Routes(a *httpapi.API, d *db.DB, tokens *auth.Tokens, bump events.AccessChanged, m mail.Sender, publicURL string) {
	s := &service{database: d, tokens: tokens, bump: bump, mail: m, publicURL: publicURL}
	s.sessionRoutes(a)
	s.registerRoutes(a)
	confirmRoutes(a)
	s.userRoutes(a)
}

func (s *service) sessionRoutes(a *httpapi.API) {
	httpapi.Register(a, httpapi.Op{Method: "POST", Path: "/api/v1/auth/login", ID: "login",
		Summary: "Sign in with a user name or e-mail address and a password", Tag: "Authentication", Permission: httpapi.Public},
		func(ctx context.Context, in *LoginInput) (*LoginResponse, error) {
			if err := a.TakeLogin(ctx); err != nil {
				return nil, err
			}
			found, err := identity.CheckPassword(ctx, s.database, in.Body.Username, in.Body.Password)
			if err != nil {
				return nil, err
			}
			return StartSession(ctx, s.database, s.tokens, found.ID, found.Generation)
		})
	httpapi.Register(a, httpapi.Op{Method: "POST", Path: "/api/v1/auth/refresh", ID: "refresh",
		Summary: "Renew a session; each refresh token can be used only once", Tag: "Authentication", Permission: httpapi.Public},
		func(ctx context.Context, in *struct {
			Body struct {
				RefreshToken string `json:"refreshToken" minLength:"1" maxLength:"200"`
			}
		}) (*TokenPair, error) {
			return s.renew(ctx, in.Body.RefreshToken)
		})
	httpapi.Register(a, httpapi.Op{Method: "POST", Path: "/api/v1/auth/logout", ID: "logout",
		Summary: "End a session", Tag: "Authentication", Permission: httpapi.SignedIn},
		func(ctx context.Context, in *struct {
			Body *struct {
				RefreshToken httpapi.Optional[string] `json:"refreshToken,omitempty" doc:"Refresh token of the session to end"`
			}
		}) (*LogoutResponse, error) {
			var token *string
			if in.Body != nil {
				token = in.Body.RefreshToken.Value
			}
			return s.logout(ctx, token)
		})
	httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/auth/me", ID: "me", Cookie: true,
		Summary: "Get the signed-in user", Tag: "Authentication", Permission: httpapi.SignedIn}.Ahead(),
		func(ctx context.Context, _ *struct{}) (*UserInfo, error) {
			if err := s.database.Enter(ctx); err != nil {
				return nil, err
			}
			c := auth.CallerOf(ctx)
			return &UserInfo{ID: c.AccountID, Username: c.Username, Email: c.Email, Role: c.Role,
				EmailVerified: c.EmailVerified, Permissions: c.Extra}, nil
		})
	httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/auth/stream", ID: "streamAccess", Cookie: true,
		Summary: "Get the permissions that determine what an event stream may show the caller", Tag: "Authentication", Permission: auth.LibrariesRead},
		func(ctx context.Context, _ *struct {
			Stream string `query:"stream" enum:"events,tasks,scans" doc:"Stream that the user connects to; connections to events are exempt from the rate limit"`
		}) (*StreamAccess, error) {
			return s.stream(ctx)
		})
	httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/user", ID: "currentUser",
		Summary: "Get the signed-in user with all details", Tag: "Authentication", Permission: httpapi.SignedIn}.Ahead(),
		func(ctx context.Context, _ *struct{}) (*UserDetails, error) {
			return getUser(ctx, s.database, auth.CallerOf(ctx).AccountID)
		})
}

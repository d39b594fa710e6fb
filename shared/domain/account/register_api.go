package account

import (
	"context"

	"github.com/longbox/longbox/shared/platform/httpapi"
)

// RegisterResponse is the new user, signed in unless the e-mail address must be confirmed first.
type RegisterResponse struct {
	AccessToken *string  `json:"accessToken" nullable:"true"`
	TokenType   *string  `json:"tokenType" nullable:"true"`
	ExpiresIn   *int     `json:"expiresIn" nullable:"true"`
	User        UserInfo `json:"user"`
	Message     string   `json:"message"`
}

// VerifyResponse signs in a user who has confirmed the e-mail address.
type VerifyResponse struct {
	Access
	Message string `json:"message"`
}

// ResendResponse is the same for known and unknown addresses.
type ResendResponse struct {
	Message string `json:"message"`
}

func (s *service) registerRoutes(a *httpapi.API) {
	httpapi.Register(a, httpapi.Op{Method: "POST", Path: "/api/v1/auth/register", ID: "register", Status: 201,
		Summary: "Register as a reader, if the server allows registration", Tag: "Authentication", Permission: httpapi.Public},
		func(ctx context.Context, in *struct {
			Body struct {
				Username string `json:"username" maxLength:"64"`
				Email    string `json:"email" maxLength:"254"`
				Password string `json:"password" maxLength:"1024" doc:"At least 8 characters"`
			}
		}) (*RegisterResponse, error) {
			if err := a.TakeLogin(ctx); err != nil {
				return nil, err
			}
			return s.register(ctx, Registration{in.Body.Username, in.Body.Email, in.Body.Password})
		})
	httpapi.Register(a, httpapi.Op{Method: "POST", Path: "/api/v1/auth/verify-email", ID: "verifyEmail",
		Summary: "Confirm an e-mail address with the token from the confirmation mail", Tag: "Authentication", Permission: httpapi.Public},
		func(ctx context.Context, in *struct {
			Body struct {
				Token string `json:"token" minLength:"1" maxLength:"200"`
			}
		}) (*VerifyResponse, error) {
			return s.verify(ctx, in.Body.Token)
		})
	httpapi.Register(a, httpapi.Op{Method: "POST", Path: "/api/v1/auth/resend-verification", ID: "resendVerification",
		Summary: "Resend the mail that confirms an e-mail address", Tag: "Authentication", Permission: httpapi.Public},
		func(ctx context.Context, in *struct {
			Body struct {
				Email string `json:"email" maxLength:"254"`
			}
		}) (*ResendResponse, error) {
			if err := a.TakeLogin(ctx); err != nil {
				return nil, err
			}
			return s.resend(ctx, in.Body.Email)
		})
}

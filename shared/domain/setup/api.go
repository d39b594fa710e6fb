package setup

import (
	"context"
	"fmt"

	"github.com/longbox/longbox/shared/domain/account"
	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Initialized signs in the first administrator.
type Initialized struct {
	account.Access
	Message string `json:"message"`
}

// InitializeInput is the first administrator.
type InitializeInput struct {
	Body struct {
		Username string `json:"username" maxLength:"64"`
		Email    string `json:"email" maxLength:"254"`
		Password string `json:"password" maxLength:"1024" doc:"At least 8 characters, including an upper-case letter, a lower-case letter, a digit and a special character"`
	}
}

// ConfigureInput holds the settings that an administrator chooses right after the first sign-in.
type ConfigureInput struct {
	Body struct {
		Settings          map[string]setting.Text `json:"settings,omitempty" maxProperties:"200" doc:"Values by key, as in /admin/settings; unknown keys are ignored"`
		SkipConfiguration bool                    `json:"skipConfiguration,omitempty" doc:"Store nothing; all settings stay as installed"`
	}
}

// Configured is the number of settings that were stored.
type Configured struct {
	SettingsConfigured int    `json:"settingsConfigured"`
	Message            string `json:"message"`
}

// Routes registers the operations that need no user yet, and the choice of the first settings. bump is called after
// these were changed, to invalidate caches.
func Routes(a *httpapi.API, d *db.DB, tokens *auth.Tokens, bump events.AccessChanged) {
	httpapi.Register(a, httpapi.Op{Method: "PATCH", Path: "/api/v1/setup/settings", ID: "setupSettings",
		Summary: "Set the initial settings; unknown keys are ignored; either all others are stored or none", Tag: "Setup", Permission: auth.SystemAdmin},
		func(ctx context.Context, in *ConfigureInput) (*Configured, error) {
			if in.Body.SkipConfiguration {
				return &Configured{Message: "The settings stay unchanged"}, nil
			}
			n, err := setting.Configure(ctx, d, in.Body.Settings, "Setup")
			if err != nil {
				return nil, err
			}
			if n > 0 {
				bump(ctx, httpapi.TenantOf(ctx).ID)
			}
			if n == 1 {
				return &Configured{n, "1 setting is stored"}, nil
			}
			return &Configured{n, fmt.Sprintf("%d settings are stored", n)}, nil
		})
	httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/setup/status", ID: "setupStatus",
		Summary: "Get the setup status: whether the first administrator has to be created", Tag: "Setup", Permission: httpapi.Public},
		func(ctx context.Context, _ *struct{}) (*Status, error) { return status(ctx, d) })
	httpapi.Register(a, httpapi.Op{Method: "POST", Path: "/api/v1/setup/initialize", ID: "setupInitialize", Status: 201,
		Summary: "Create the first administrator and sign in", Tag: "Setup", Permission: httpapi.Public},
		func(ctx context.Context, in *InitializeInput) (*Initialized, error) {
			s, err := status(ctx, d)
			if err != nil {
				return nil, err
			}
			if s.HasUsers {
				return nil, errDone
			}
			n := account.Registration{Username: in.Body.Username, Email: in.Body.Email, Password: in.Body.Password}
			bad := checkStrength(n.Password)
			for _, f := range n.Check() {
				if f.Field != "password" || len(bad) == 0 {
					bad = append(bad, f)
				}
			}
			if err := fault.InvalidFields(bad); err != nil {
				return nil, err
			}
			id, created, err := account.CreateFirst(ctx, d, n)
			if err != nil {
				return nil, err
			}
			if !created {
				return nil, errDone
			}
			access, err := account.SignIn(ctx, d, tokens, id, 1)
			if err != nil {
				return nil, err
			}
			return &Initialized{Access: *access, Message: "The administrator was created"}, nil
		})
}

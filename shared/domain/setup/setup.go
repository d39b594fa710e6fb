package setup

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/account"
	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Status says what a client can do before anybody is signed in.
type Status struct {
	SetupRequired       bool `json:"setupRequired" doc:"True if there is no user yet"`
	HasUsers            bool `json:"hasUsers"`
	RegistrationEnabled bool `json:"registrationEnabled"`
}

func status(ctx context.Context, d *db.DB) (*Status, error) {
	var b pgx.Batch
	var s Status
	db.Value(&b, &s.HasUsers, "select exists (select from account where tenant_id = app.tenant())")
	setting.Bool(&b, setting.RegistrationEnabled, &s.RegistrationEnabled)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	s.SetupRequired = !s.HasUsers
	return &s, nil
}

const specials = `!@#$%^&*(),.?":{}|<>`

// checkStrength checks the first administrator's password for more than its length, and lists what is missing.
func checkStrength(password string) []fault.Field {
	var missing []string
	need := func(ok bool, what string) {
		if !ok {
			missing = append(missing, what)
		}
	}
	need(utf8.RuneCountInString(password) >= account.MinPassword, "8 characters")
	need(strings.ContainsFunc(password, unicode.IsUpper), "an upper-case letter")
	need(strings.ContainsFunc(password, unicode.IsLower), "a lower-case letter")
	need(strings.ContainsFunc(password, unicode.IsDigit), "a digit")
	need(strings.ContainsAny(password, specials), "a special character of "+specials)
	if len(missing) == 0 {
		return nil
	}
	return []fault.Field{{Field: "password", Message: "needs " + strings.Join(missing, ", ")}}
}

var errDone = fault.New(fault.BadRequest, "This server is already set up; sign in, or ask an administrator for an account")

// CreateAdmin creates the first administrator from the server's own configuration; it does nothing if there is a user.
// The e-mail address is at localhost.localdomain. ctx is in the tenant.
func CreateAdmin(ctx context.Context, d *db.DB, username, password string) error {
	n := account.Registration{Username: username, Email: account.LocalAddress(username), Password: password}
	s, err := status(ctx, d)
	if err != nil || s.HasUsers {
		return err
	}
	if err := fault.InvalidFields(n.Check()); err != nil {
		return err
	}
	_, _, err = account.CreateFirst(ctx, d, n)
	return err
}

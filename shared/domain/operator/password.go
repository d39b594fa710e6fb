package operator

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/longbox/longbox/shared/domain/account"
	"github.com/longbox/longbox/shared/platform/fault"
)

// SetPassword names a user who gets a new password.
type SetPassword struct {
	Name string `json:"name"`
	User string `json:"user" arg:"user" help:"user name or e-mail address of the user"`
}

// setPassword lets a user sign in again who has lost the password, or was disabled as the only administrator. All
// sessions of the user end; API keys stay.
func (o *Operator) setPassword(ctx context.Context, i SetPassword) (any, error) {
	if i.User == "" {
		return nil, fault.Invalid("user", "is required")
	}
	t, err := o.alive(ctx, i.Name)
	if err != nil {
		return nil, err
	}
	password := rand.Text()
	u, err := account.SetPassword(in(ctx, t), o.System, i.User, password)
	if err != nil {
		return nil, err
	}
	if u == nil {
		return nil, &fault.Error{Code: fault.NotFound, Message: fmt.Sprintf("user: there is no user %q in the tenant %s", i.User, t.Name),
			Fields: []fault.Field{{Field: "user", Message: "is not a user of the tenant"}}}
	}
	d, err := o.changed(ctx, t)
	if err != nil {
		return nil, err
	}
	d.User = &Login{u.Username, u.Email, password}
	return d, nil
}

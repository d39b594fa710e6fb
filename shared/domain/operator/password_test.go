package operator_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/account"
	"github.com/longbox/longbox/shared/domain/operator"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

// The only administrator has lost the password, and is disabled: the new password signs in, and nothing else of before
// does. Another user notices nothing.
func TestSetPassword(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		account.Routes(a, d, testkit.Tokens(t), func(context.Context, uuid.UUID) {}, nil, "https://{tenant}.example.org/")
	})
	client := testkit.Redis(t)
	r := &rig{t: t, db: s.DB, Operator: &operator.Operator{System: s.DB.System, Redis: client, Events: events.New(client, events.Config{}, nil)}}
	admin, reader, anyone := s.User(t, "one", "admin"), s.User(t, "one", "reader"), s.Anonymous(t, "one")
	signIn := func(login, password string, status int) (refresh map[string]string) {
		t.Helper()
		answer := anyone.Do("POST", "/api/v1/auth/login", map[string]string{"username": login, "password": password}).Want(status).Map()
		token, _ := answer["refresh_token"].(string)
		return map[string]string{"refreshToken": token}
	}
	lost, stays := signIn(admin.Name, testkit.Password, 200), signIn(reader.Name, testkit.Password, 200)
	byKey := s.Key(t, admin)
	r.exec("update account set is_active = false, email_verified = false where id = $1", admin.ID)

	refused(t, r, fault.BadRequest, "user: is required", "set-password", "one")
	refused(t, r, fault.NotFound, `user: there is no user "nobody" in the tenant one`, "set-password", "one", "--user", "nobody")
	refused(t, r, fault.NotFound, "user: there is no user", "set-password", "two", "--user", admin.Name)
	got := r.details("set-password", "one", "--user", " "+admin.Name+"@Example.org")
	if got.User == nil || got.User.Username != admin.Name || len(got.User.Password) < 20 || got.Announced == nil || !*got.Announced {
		t.Fatalf("%+v", got)
	}

	signIn(admin.Name, testkit.Password, 401)
	anyone.Do("POST", "/api/v1/auth/refresh", lost).Want(401)
	admin.Do("GET", "/api/v1/auth/me", nil).Want(401)
	byKey.Do("GET", "/api/v1/auth/me", nil).Want(200) // API keys stay
	signIn(admin.Name, got.User.Password, 200)
	signIn(reader.Name, got.User.Password, 401)
	anyone.Do("POST", "/api/v1/auth/refresh", stays).Want(200)
	reader.Do("GET", "/api/v1/auth/me", nil).Want(200)
	if n := r.number("select count(*) from account where id = $1 and email_verified and email_claimed", admin.ID); n != 1 {
		t.Error("the command vouches for an address that nobody has confirmed")
	}
}

package identity_test

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/longbox/longbox/shared/domain/identity"
	"github.com/longbox/longbox/shared/domain/tenant"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/ratelimit"
	"github.com/longbox/longbox/shared/testkit"
)

// Passwords are tried in the login's own bucket, whether by signing in or as a credential of any request.
func TestTryingPasswordsIsSlow(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t)
	u := s.User(t, "one", "reader")
	id := identity.New(s.DB.App, s.Tokens)
	api := httpapi.New(httpapi.Config{RateLimit: true}, s.DB.App, ratelimit.New(testkit.Redis(t), slog.Default()), httpapi.Identity{
		Tenant: tenant.NewResolver(s.DB.App, tenant.Config{}).ByHost, Known: id.Known, Resolve: id.Resolve})
	routes(t)(api, s.DB.App)
	srv := httptest.NewServer(api.Router)
	t.Cleanup(srv.Close)
	u = u.At(&testkit.Server{URL: srv.URL})
	known := basic(u, u.Name, testkit.Password)
	known.Do("GET", me, nil).Want(200)

	counts := map[int]int{}
	for i := range 30 {
		wrong := fmt.Sprintf("wrong password %d", i)
		if i%2 == 0 {
			counts[basic(u, u.Name, wrong).Do("GET", me, nil).Status]++
		} else {
			counts[u.Do("POST", "/api/v1/auth/login", map[string]string{"username": u.Name, "password": wrong}).Status]++
		}
	}
	if counts[401] < 15 || counts[401] > 25 || counts[401]+counts[429] != 30 {
		t.Errorf("answers: %v", counts)
	}
	r := basic(u, u.Name, "wrong again").Do("GET", me, nil).Want(429)
	if r.Header.Get("Retry-After") == "" || r.Map()["error"] != "rate_limit_exceeded" {
		t.Errorf("429: %v %s", r.Header, r.Body)
	}
	// Who is recognised already, or brings something that is not guessed, is not held up.
	known.Do("GET", me, nil).Want(200)
	u.Do("GET", me, nil).Want(200)
	_, key := newKey(t, u)
	basic(u, "any", key).Do("GET", me, nil).Want(200)
}

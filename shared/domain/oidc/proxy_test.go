package oidc_test

import (
	"log/slog"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/domain/tenant"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/ratelimit"
	"github.com/longbox/longbox/shared/testkit"
)

// Behind a proxy with https the provider redirects browsers there, and the cookie is bound to that host. Starting a
// sign-in counts like signing in.
func TestBehindAProxy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := httpapi.New(httpapi.Config{RateLimit: true, TrustedProxies: 1}, r.DB.App, ratelimit.New(testkit.Redis(t), slog.Default()),
		httpapi.Identity{Tenant: tenant.NewResolver(r.DB.App, tenant.Config{}).ByHost})
	r.routes(a, r.DB.App)
	srv := httptest.NewServer(a.Router)
	defer srv.Close()
	r.URL = srv.URL
	b := r.browser("one")
	b.Host = "10.0.0.1:8080"
	b.Header.Set("X-Forwarded-Host", "one.test:8443")
	b.Header.Set("X-Forwarded-Proto", "https")
	res := b.do("POST", at+"id/login", object{"redirectUri": "https://one.test:8443/app"}).Want(200)
	address := res.Map()["redirectUrl"].(string)
	u, err := url.Parse(address)
	if err != nil || u.Query().Get("redirect_uri") != "https://one.test:8443"+at+"id/callback" {
		t.Fatal(address, err)
	}
	if c := res.Header.Get("Set-Cookie"); !strings.HasPrefix(c, "__Host-oidc-") || !strings.Contains(c, "; Path=/; Max-Age=300; HttpOnly; Secure; SameSite=Lax") || strings.Contains(c, "Domain") {
		t.Error(c)
	}
	if r.count("select count(*) from oidc_state where expires_at between now() + interval '4 minutes' and now() + interval '5 minutes'") != 1 {
		t.Error("a sign-in does not last five minutes")
	}
	b.do("POST", at+"id/login", object{"redirectUri": "https://one.test/app"}).Want(400)
	b.do("POST", at+"id/login", object{"redirectUri": "http://one.test:8443/app"}).Want(400)
	r.session(b.back(r.idp.authorize(address)), "https://one.test:8443/app")
	if strings.Contains(strings.Join(keys(b.cookies), " "), "oidc") {
		t.Errorf("%v", b.cookies)
	}
	clear(b.cookies)
	for n := 0; ; n++ {
		if res := b.do("POST", at+"id/login", nil); res.Status == 429 {
			break
		} else if n > 40 {
			t.Fatal("nobody counts")
		}
	}
	b.do("GET", at+"providers", nil).Want(200)
	b.do("POST", "/api/v1/auth/login", object{"username": "x", "password": "y"}).Want(429)
}

func keys(of map[string]string) (out []string) {
	for k := range of {
		out = append(out, k)
	}
	return out
}

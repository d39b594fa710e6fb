package oidc_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	functions "github.com/longbox/longbox/shared/app/plugin"
	"github.com/longbox/longbox/shared/domain/account"
	"github.com/longbox/longbox/shared/domain/oidc"
	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/domain/setup"
	"github.com/longbox/longbox/shared/domain/sharing"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/mail"
	"github.com/longbox/longbox/shared/platform/plug"
	"github.com/longbox/longbox/shared/platform/plug/host"
	"github.com/longbox/longbox/shared/platform/seal"
	"github.com/longbox/longbox/shared/testkit"
)

const at = "/api/v1/auth/oidc/"

// rig is a server with the identity provider "id" for tenant one.
type rig struct {
	*testkit.Server
	t      *testing.T
	idp    *idp
	key    *seal.Key
	bump   int
	told   []events.Event
	routes func(a *httpapi.API, d *db.DB)
	asking func() *oidc.Bearer // makes another one that asks providers
}

func newRig(t *testing.T) *rig {
	t.Helper()
	f, err := functions.New(functions.Config{Token: "token", Host: host.Config{Data: t.TempDir(), Processes: 1, Idle: 1e12}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Host.Close)
	h, err := f.Handler()
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	r := &rig{t: t, idp: newIDP(t)}
	if r.key, err = seal.New(seal.Config{Key: strings.Repeat("QUFB", 10) + "QUE="}); err != nil { // 32 bytes
		t.Fatal(err)
	}
	sender, err := mail.New(mail.Config{})
	if err != nil {
		t.Fatal(err)
	}
	bump := func(context.Context, uuid.UUID) { r.bump++ }
	publish := func(_ context.Context, _ uuid.UUID, told ...events.Event) { r.told = append(r.told, told...) }
	r.routes = func(a *httpapi.API, d *db.DB) {
		oidc.Routes(a, d, testkit.Tokens(t), r.key, plug.New(plug.Config{URL: srv.URL, Token: "token"}), publish, bump)
		setup.Routes(a, d, testkit.Tokens(t), bump)
		account.Routes(a, d, testkit.Tokens(t), bump, sender, "http://localhost")
		sharing.Routes(a, d, func(context.Context, uuid.UUID, ...events.Event) {}, bump)
	}
	r.Server = testkit.Serve(t, r.routes)
	r.asking = func() *oidc.Bearer {
		return oidc.NewAskingBearer(r.DB.App, plug.New(plug.Config{URL: srv.URL, Token: "token"}))
	}
	r.Identity.External = r.asking()
	r.User(t, "one", "reader") // set up
	r.set(r.One, nil)
	r.idp.says(object{"sub": "1", "email": "ann@example.org", "email_verified": true, "preferred_username": "ann"})
	return r
}

// set sets a tenant's provider, with changes.
func (r *rig) set(tenant uuid.UUID, change func(*oidc.Provider)) {
	r.t.Helper()
	p := oidc.Provider{Name: "id", DisplayName: "The provider", Issuer: r.idp.URL, ClientID: clientID, GroupsClaim: "groups", CreateUsers: true, Enabled: true}
	if change != nil {
		change(&p)
	}
	if _, err := oidc.Set(r.In(tenant), r.DB.System, r.key, p, oidc.Secret{Text: clientSecret}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) count(sql string, args ...any) (n int) {
	r.t.Helper()
	if err := r.DB.Owner.Pool().QueryRow(context.Background(), sql, args...).Scan(&n); err != nil {
		r.t.Fatal(err)
	}
	return n
}

// browser keeps cookies.
type browser struct {
	*testkit.Client
	r       *rig
	cookies map[string]string
}

func (r *rig) browser(tenant string) *browser {
	return &browser{r.Anonymous(r.t, tenant), r, map[string]string{}}
}

func (b *browser) do(method, path string, body any) *testkit.Response {
	b.r.t.Helper()
	var all []string
	for name, value := range b.cookies {
		all = append(all, name+"="+value)
	}
	b.Header.Set("Cookie", strings.Join(all, "; "))
	res := b.Do(method, path, body)
	for _, c := range (&http.Response{Header: res.Header}).Cookies() {
		if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode {
			b.r.t.Errorf("cookie %s", c.Raw)
		}
		if b.cookies[c.Name] = c.Value; c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		}
	}
	return res
}

// begin starts a sign-in and returns the provider's address.
func (b *browser) begin(body any) string {
	b.r.t.Helper()
	return b.do("POST", at+"id/login", body).Want(200).Map()["redirectUrl"].(string)
}

// back opens the callback address, and returns where that redirects to.
func (b *browser) back(u *url.URL) string {
	b.r.t.Helper()
	res := b.do("GET", u.RequestURI(), nil).Want(303)
	if len(res.Body) != 0 || res.Header.Get("Cache-Control") != "no-store" || res.Header.Get("Referrer-Policy") != "no-referrer" {
		b.r.t.Errorf("%s %v", res.Body, res.Header)
	}
	return res.Header.Get("Location")
}

// signIn performs a complete sign-in.
func (b *browser) signIn() string {
	b.r.t.Helper()
	return b.back(b.r.idp.authorize(b.begin(nil)))
}

// session decodes the session in a redirect.
func (r *rig) session(location, to string) oidc.Session {
	r.t.Helper()
	path, fragment, _ := strings.Cut(location, "#")
	data, err := base64.RawURLEncoding.DecodeString(fragment)
	if err != nil || path != to {
		r.t.Fatalf("%s: %v", location, err)
	}
	var s oidc.Session
	if err := json.Unmarshal(data, &s); err != nil || s.AccessToken == "" {
		r.t.Fatalf("%s: %v", data, err)
	}
	return s
}

// refused checks that a redirect has the reason of a failed sign-in, and that nobody is signed in.
func (b *browser) refused(name, location, to, code, says string) {
	b.r.t.Helper()
	u, err := url.Parse(location)
	if err != nil {
		b.r.t.Fatal(err)
	}
	path, _, _ := strings.Cut(location, "?")
	if path != to || u.Query().Get("error") != code || !strings.Contains(u.Query().Get("error_description"), says) || strings.Contains(location, "#") {
		b.r.t.Errorf("%s: %s, want %s with %s: %s", name, location, to, code, says)
	}
	if b.cookies[httpapi.SessionCookie] != "" {
		b.r.t.Errorf("%s: there is a session", name)
	}
}

func bearer(c *testkit.Client, token string) *testkit.Client {
	other := *c
	other.Header = http.Header{"Authorization": {"Bearer " + token}}
	return &other
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.browser("one")
	m := b.do("GET", at+"providers", nil).Want(200).Map()
	if list := m["providers"].([]any); m["enabled"] != true || len(list) != 1 || list[0].(object)["name"] != "id" ||
		list[0].(object)["displayName"] != "The provider" || list[0].(object)["loginUrl"] != at+"id/login" {
		t.Errorf("%v", m)
	}
	first := r.session(b.signIn(), "/login/oidc/complete")
	if !first.NewAccount || first.Provider != "id" || first.TokenType != "Bearer" || first.ExpiresIn != 3600 || first.User.Username != "ann" ||
		first.User.Email != "ann@example.org" || first.User.Role != "reader" || !first.User.EmailVerified {
		t.Errorf("%+v", first)
	}
	if b.cookies[httpapi.SessionCookie] != first.AccessToken || len(b.cookies) != 1 {
		t.Errorf("cookies %v", b.cookies)
	}
	anybody := r.Anonymous(t, "one")
	if me := bearer(anybody, first.AccessToken).Do("GET", "/api/v1/auth/me", nil).Want(200).Map(); me["id"] != first.User.ID.String() {
		t.Errorf("%v", me)
	}
	anybody.Do("POST", "/api/v1/auth/refresh", object{"refreshToken": first.RefreshToken}).Want(200)
	for _, password := range []string{"x", "ann@example.org"} {
		anybody.Do("POST", "/api/v1/auth/login", object{"username": "ann", "password": password}).Want(401)
	}
	// The next sign-in, with another name and address, yields the same user.
	r.idp.says(object{"sub": "1", "email": "new@example.org", "preferred_username": "anna"})
	again := r.session(r.browser("one").signIn(), "/login/oidc/complete")
	if again.NewAccount || again.User.ID != first.User.ID || again.User.Username != "ann" {
		t.Errorf("%+v", again)
	}
	if n := r.count("select count(*) from oidc_state"); n != 0 {
		t.Errorf("%d states are left", n)
	}
	r.idp.mu.Lock()
	defer r.idp.mu.Unlock()
	if r.idp.asked["/.well-known/openid-configuration"] != 1 || r.idp.asked["/keys"] != 1 {
		t.Errorf("asked %v: what a provider says of itself is remembered", r.idp.asked)
	}
}

// The database contains nothing that would let its reader complete a sign-in, or act as our client.
func TestNothingIsKeptAsItIs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.browser("one")
	q, err := url.Parse(b.begin(object{"redirectUri": "/app"}))
	if err != nil {
		t.Fatal(err)
	}
	var kept string
	if err := r.DB.Owner.Pool().QueryRow(context.Background(), `select (select s::text || encode(s.hash, 'escape') || encode(s.browser, 'escape') from oidc_state s)
		|| (select p::text || encode(p.client_secret, 'escape') from oidc_provider p)`).Scan(&kept); err != nil {
		t.Fatal(err)
	}
	all := []string{q.Query().Get("state"), q.Query().Get("nonce"), clientSecret}
	for _, value := range b.cookies {
		all = append(all, value)
	}
	for _, secret := range all {
		if len(secret) < 20 || strings.Contains(kept, secret) {
			t.Errorf("%q is in the database", secret)
		}
	}
	if len(all) != 4 || !strings.Contains(kept, "/app") {
		t.Errorf("%v %s", all, kept)
	}
}

// A sign-in works once, in the browser that started it, in its tenant, with its provider, for five minutes.
func TestWhoseSignIn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.set(r.One, func(p *oidc.Provider) { p.Name = "other" })
	b := r.browser("one")
	unknown := func(name string, b *browser, u *url.URL) {
		t.Helper()
		b.refused(name, b.back(u), "/login", "invalid_state", "Start again")
	}

	back := r.idp.authorize(b.begin(nil))
	r.session(b.back(back), "/login/oidc/complete")
	delete(b.cookies, httpapi.SessionCookie)
	unknown("used twice", b, back)

	back = r.idp.authorize(b.begin(nil))
	thief := r.browser("one")
	thief.begin(nil)
	unknown("another browser", thief, back)
	unknown("after another browser tried", b, back)

	back = r.idp.authorize(b.begin(nil))
	for name := range b.cookies {
		b.cookies[name] = "guessed"
	}
	unknown("another cookie", b, back)

	back = r.idp.authorize(b.begin(nil))
	r.DB.Exec(t, "update oidc_state set expires_at = now() - interval '1 second'")
	unknown("late", b, back)

	back = r.idp.authorize(b.begin(nil))
	back.Path = at + "other/callback"
	unknown("another provider", b, back)

	// Tabs do not interfere.
	one, two := r.idp.authorize(b.begin(nil)), r.idp.authorize(b.begin(nil))
	r.session(b.back(one), "/login/oidc/complete")
	r.session(b.back(two), "/login/oidc/complete")
	delete(b.cookies, httpapi.SessionCookie)

	// Another tenant, without and with a provider of the same name.
	back = r.idp.authorize(b.begin(nil))
	b.Host = "two.test"
	b.do("GET", back.RequestURI(), nil).Want(400)
	r.set(r.Two, nil)
	unknown("another tenant", b, back)
	if r.count("select count(*) from account where tenant_id = $1", r.Two) != 0 {
		t.Error("there is a user in the other tenant")
	}
	b.Host = "one.test"
	r.session(b.back(back), "/login/oidc/complete") // and it was not consumed

	clear(b.cookies)

	// If the provider was disabled meanwhile.
	back = r.idp.authorize(r.browser("one").begin(nil))
	r.set(r.One, func(p *oidc.Provider) { p.Enabled = false })
	b.do("GET", back.RequestURI(), nil).Want(400)
	b.do("POST", at+"id/login", nil).Want(400)
	for _, name := range []string{"none", "ID", "a%00b", strings.Repeat("a", 100)} {
		b.do("POST", at+name+"/login", nil).Want(400)
		b.do("GET", at+name+"/callback?state=x&code=y", nil).Want(400)
	}
	b.do("GET", at+"other/callback?state=%00", nil).Want(400)
	b.do("GET", at+"other/callback?state="+strings.Repeat("a", 5000), nil).Want(400)
	u, _ := url.Parse(at + "other/callback")
	unknown("nothing said", b, u)
}

// Only a correct response of the provider is accepted.
func TestForgedTokens(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	with := func(name string, value any) func(*testing.T, object) string {
		return func(t *testing.T, all object) string {
			if value == nil {
				delete(all, name)
			} else {
				all[name] = value
			}
			return signed(t, all)
		}
	}
	for name, sign := range map[string]func(*testing.T, object) string{
		"another nonce": with("nonce", "guessed"), "no nonce": with("nonce", nil),
		"another audience": with("aud", "another"), "no audience": with("aud", nil), "issued to another": with("azp", "another"),
		"several audiences, issued to nobody": with("aud", []string{clientID, "another"}),
		"another issuer":                      with("iss", "https://id.example.org"), "no issuer": with("iss", nil),
		"expired": with("exp", 1700000000), "never expires": with("exp", nil), "of the future": with("iat", 4000000000), "not yet": with("nbf", 4000000000),
		"no subject": with("sub", nil), "empty subject": with("sub", ""), "NUL in the subject": with("sub", "1\x00"), "long subject": with("sub", strings.Repeat("1", 256)),
		"alg none": func(t *testing.T, all object) string {
			return token(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, all)
		},
		"HS256 with the client secret": func(t *testing.T, all object) string {
			return token(t, jwt.SigningMethodHS256, []byte(clientSecret), all)
		},
		"HS256 with the public key": func(t *testing.T, all object) string { return token(t, jwt.SigningMethodHS256, publicPEM(t), all) },
		"another key":               func(t *testing.T, all object) string { return token(t, jwt.SigningMethodRS256, foreign, all) },
		"changed afterwards": func(t *testing.T, all object) string {
			parts := strings.Split(signed(t, all), ".")
			all["sub"] = "2"
			return parts[0] + "." + strings.Split(signed(t, all), ".")[1] + "." + parts[2]
		},
		"no token": func(*testing.T, object) string { return "" }, "no token at all": func(*testing.T, object) string { return "a.b.c" },
	} {
		b := r.browser("one")
		back := r.idp.authorize(b.begin(nil))
		r.idp.mu.Lock()
		r.idp.sign = sign
		r.idp.mu.Unlock()
		b.refused(name, b.back(back), "/login", "server_error", "answer is not valid")
	}
	b := r.browser("one")
	back := r.idp.authorize(b.begin(nil)) // another user's code
	q := back.Query()
	q.Set("code", "guessed")
	back.RawQuery = q.Encode()
	b.refused("another code", b.back(back), "/login", "server_error", "answer is not valid")
	for name, value := range map[string]string{"code": "", "iss": "https://id.example.org"} {
		back = r.idp.authorize(b.begin(nil))
		q := back.Query()
		q.Set(name, value)
		back.RawQuery = q.Encode()
		b.refused(name, b.back(back), "/login", "invalid_request", "incomplete")
	}
	if n := r.count("select count(*) from account") + r.count("select count(*) from refresh_token") + r.count("select count(*) from oidc_identity"); n != 1 {
		t.Errorf("%d rows, want the user who was there", n)
	}
	r.idp.says(object{"sub": "1", "email": "ann@example.org", "aud": []string{clientID, "another"}, "azp": clientID, "exp": 4000000000})
	r.session(b.signIn(), "/login/oidc/complete")
}

// An existing account is used for a sign-in only if both sides have verified the address.
func TestWhoSignsIn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ann := r.User(t, "one", "maintainer")
	r.DB.Exec(t, "update account set email = 'Ann@example.org' where id = $1", ann.ID)
	r.User(t, "two", "reader")
	said := func(subject string, verified any) {
		r.idp.says(object{"sub": subject, "email": "ann@example.org", "email_verified": verified, "preferred_username": "ann"})
	}
	for _, verified := range []any{nil, false, "false", 1, []bool{true}} {
		said("1", verified)
		b := r.browser("one")
		b.refused("not verified", b.signIn(), "/login", "access_denied", "not verified")
	}
	r.idp.says(object{"sub": "1", "email": "other@example.org", "mail": "ann@example.org", "email_verified": true})
	r.set(r.One, func(p *oidc.Provider) { p.EmailClaim = "mail" })
	b := r.browser("one")
	b.refused("another claim is verified", b.signIn(), "/login", "access_denied", "not verified")
	r.set(r.One, func(p *oidc.Provider) { p.CreateUsers = false })

	said("1", true)
	r.DB.Exec(t, "update account set email_verified = false where id = $1", ann.ID)
	b.refused("not verified here", b.signIn(), "/login", "access_denied", "not verified")
	r.DB.Exec(t, "update account set email_verified = true, is_active = false where id = $1", ann.ID)
	b.refused("disabled", b.signIn(), "/login", "access_denied", "disabled")
	if n := r.count("select count(*) from oidc_identity"); n != 0 {
		t.Errorf("%d identities of nobody", n)
	}
	r.DB.Exec(t, "update account set is_active = true where id = $1", ann.ID)
	s := r.session(b.signIn(), "/login/oidc/complete")
	if s.NewAccount || s.User.ID != ann.ID || s.User.Role != "maintainer" {
		t.Errorf("%+v", s)
	}
	delete(b.cookies, httpapi.SessionCookie)
	said("2", true) // the address was reassigned to another person
	b.refused("another subject", b.signIn(), "/login", "access_denied", "another account")
	r.idp.says(object{"sub": "3", "email": "new@example.org", "email_verified": true})
	b.refused("nobody here", b.signIn(), "/login", "access_denied", "no account")
	said("1", false)
	r.DB.Exec(t, "update account set is_active = false where id = $1", ann.ID)
	b.refused("disabled later", b.signIn(), "/login", "access_denied", "disabled")
	r.DB.Exec(t, "update account set is_active = true where id = $1", ann.ID)
	if s := r.session(b.signIn(), "/login/oidc/complete"); s.User.ID != ann.ID {
		t.Errorf("%+v", s)
	}
	// Another issuer with the same name has other users: its subject 1 is another person.
	before := r.idp
	r.idp = newIDP(t)
	r.set(r.One, func(p *oidc.Provider) { p.CreateUsers = false })
	said("1", false)
	delete(b.cookies, httpapi.SessionCookie)
	b.refused("another issuer", b.signIn(), "/login", "access_denied", "not verified")
	r.idp = before
}

func TestNewUsers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.DB.Exec(t, "update account set username = 'Ann' where id = $1", r.User(t, "one", "reader").ID)
	r.DB.Exec(t, "update account set username = 'ann-2' where id = $1", r.User(t, "one", "reader").ID)
	for i, c := range []struct{ wish, email, name string }{
		{"ann", "a@example.org", "ann-3"}, {"", "bob@example.org", "bob"}, {"c:a\x07rl", "c@example.org", "carl"}, {"d@example.org", "d@example.org", "d@example.org"},
		{"boss@corp.example", "e@example.org", "boss"}, {" \t", "::@example.org", "user"}, {strings.Repeat("ü", 80), "f@example.org", strings.Repeat("ü", 64)},
		{strings.Repeat("ü", 80), "g@example.org", strings.Repeat("ü", 61) + "-2"}, {"@", "h@example.org", "h"},
	} {
		r.idp.says(object{"sub": "s" + c.email, "email": c.email, "email_verified": i%2 == 0, "preferred_username": c.wish})
		b := r.browser("one")
		location := b.signIn()
		if c.email[0] == ':' { // no address at all
			b.refused(c.email, location, "/login", "access_denied", "needs an e-mail address")
			continue
		}
		if s := r.session(location, "/login/oidc/complete"); s.User.Username != c.name || !s.NewAccount || s.User.EmailVerified != (i%2 == 0) {
			t.Errorf("%q: %+v, want %s", c.wish, s.User, c.name)
		}
	}
	for _, email := range []any{nil, "", "x", "a@b", 7, "a\x00b@example.org", strings.Repeat("a", 300) + "@example.org"} {
		r.idp.says(object{"sub": "x", "email": email, "email_verified": true, "preferred_username": "x"})
		b := r.browser("one")
		b.refused("no address", b.signIn(), "/login", "access_denied", "needs an e-mail address")
	}
	// Two concurrent sign-ins of a new user create one.
	r.idp.says(object{"sub": "twin", "email": "twin@example.org", "preferred_username": "twin"})
	var both [2]oidc.Session
	var wait sync.WaitGroup
	for i := range both {
		wait.Go(func() { both[i] = r.session(r.browser("one").signIn(), "/login/oidc/complete") })
	}
	if wait.Wait(); both[0].User.ID != both[1].User.ID || both[0].NewAccount == both[1].NewAccount {
		t.Errorf("%+v", both)
	}
}

// As long as a tenant has no user, only an administrator can come in: another user would end the set-up without one.
func TestBeforeTheSetup(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.DB.Exec(t, "delete from account")
	r.set(r.One, func(p *oidc.Provider) { p.AdminGroups = []string{"admins"} })
	b := r.browser("one")
	b.refused("a reader", b.signIn(), "/login", "access_denied", "no administrator yet")
	if n := r.count("select count(*) from account"); n != 0 {
		t.Errorf("%d users", n)
	}
	first := object{"username": "root", "email": "root@example.org", "password": "Adm1n!pass"}
	r.Anonymous(t, "one").Do("POST", "/api/v1/setup/initialize", first).Want(201)
	if got := r.session(b.signIn(), "/login/oidc/complete").User.Role; got != "reader" {
		t.Errorf("after the set-up the role is %s", got)
	}

	r.DB.Exec(t, "delete from account")
	r.idp.says(object{"sub": "2", "email": "root@example.org", "groups": []any{"admins"}})
	if got := r.session(r.browser("one").signIn(), "/login/oidc/complete").User.Role; got != "admin" {
		t.Errorf("the first user's role is %s", got)
	}
	r.Anonymous(t, "one").Do("POST", "/api/v1/setup/initialize", first).Want(400)
}

func TestRoles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.set(r.One, func(p *oidc.Provider) {
		p.GroupsClaim, p.AdminGroups, p.MaintainerGroups = "access.groups", []string{"admins"}, []string{"helpers", "staff"}
	})
	role := func(groups any) string {
		t.Helper()
		r.idp.says(object{"sub": "1", "email": "ann@example.org", "email_verified": true, "access": object{"groups": groups}})
		return r.session(r.browser("one").signIn(), "/login/oidc/complete").User.Role
	}
	// The last case: the only administrator stays one.
	for _, c := range []struct {
		groups any
		want   string
	}{{[]any{"x", "staff"}, "maintainer"}, {[]any{"staff", "admins"}, "admin"}, {[]any{}, "admin"}} {
		if got := role(c.groups); got != c.want {
			t.Errorf("%v: %s, want %s", c.groups, got, c.want)
		}
	}
	r.User(t, "one", "admin")
	bumped := r.bump
	for _, c := range []struct {
		groups any
		want   string
	}{{"staff", "maintainer"}, {[]any{"Admins", 7, nil, "a\x00"}, "reader"}, {"admins", "admin"}, {nil, "reader"}} {
		if got := role(c.groups); got != c.want {
			t.Errorf("%v: %s, want %s", c.groups, got, c.want)
		}
	}
	if r.bump != bumped+4 {
		t.Errorf("told %d times of 4 changes", r.bump-bumped)
	}
	// A missing groups claim means no groups, unless the operator says otherwise; a new user gets the default role.
	role("admins")
	silent := func(subject string) string {
		t.Helper()
		r.idp.says(object{"sub": subject, "email": subject + "@example.org", "email_verified": true, "access": object{}})
		return r.session(r.browser("one").signIn(), "/login/oidc/complete").User.Role
	}
	if is := silent("1"); is != "reader" {
		t.Errorf("%s, want reader", is)
	}
	role("admins")
	r.set(r.One, func(p *oidc.Provider) {
		p.GroupsClaim, p.AdminGroups, p.MissingGroups = "access.groups", []string{"admins"}, "keep"
	})
	if is, made := silent("1"), silent("9"); is != "admin" || made != "reader" {
		t.Errorf("%s and %s, want admin and reader", is, made)
	}
	// If no group is mapped to a role, a sign-in changes none.
	r.set(r.One, nil)
	r.DB.Exec(t, "update account set role = 'maintainer' where email = 'ann@example.org'")
	if got := role([]any{"admins"}); got != "maintainer" {
		t.Error(got)
	}
}

// members returns the memberships in access groups.
func members(r *rig) (out string) {
	r.t.Helper()
	if err := r.DB.Owner.Pool().QueryRow(context.Background(), `select coalesce(string_agg(g.name || ' ' || m.source, ', ' order by g.name), '')
		from access_group_member m join access_group g on g.id = m.group_id`).Scan(&out); err != nil {
		r.t.Fatal(err)
	}
	return out
}

func TestGroups(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin := r.User(t, "one", "admin")
	const groups = "/api/v1/access-groups"
	group := func(name string) string {
		t.Helper()
		return admin.Do("POST", groups, object{"name": name}).Want(201).Map()["id"].(string)
	}
	kids, family, manual := group("Kids"), group("Family"), group("Manual")
	add := func(group, name string) string {
		t.Helper()
		m := admin.Do("POST", groups+"/"+group+"/oidc-mappings", object{"oidcGroupName": name}).Want(201).Map()
		if m["oidcGroupName"] != name || m["createdAt"] == nil {
			t.Errorf("%v", m)
		}
		return m["id"].(string)
	}
	add(kids, "small")
	add(kids, "smaller")
	of := add(family, "family")
	add(manual, "small")
	admin.Do("POST", groups+"/"+kids+"/oidc-mappings", object{"oidcGroupName": "small"}).Want(409)
	admin.Do("POST", groups+"/"+kids+"/oidc-mappings", object{"oidcGroupName": " "}).Want(400)
	admin.Do("POST", groups+"/"+kids+"/oidc-mappings", object{"oidcGroupName": ""}).Want(400)
	admin.Do("POST", groups+"/"+uuid.NewString()+"/oidc-mappings", object{"oidcGroupName": "x"}).Want(404)
	admin.Do("DELETE", groups+"/"+kids+"/oidc-mappings/"+of, nil).Want(404)
	if m := admin.Do("GET", groups+"/"+kids, nil).Want(200).Map(); len(m["oidcMappings"].([]any)) != 2 || m["oidcMappings"].([]any)[0].(object)["oidcGroupName"] != "small" {
		t.Errorf("%v", m)
	}
	in := func(said any) string {
		t.Helper()
		r.idp.says(object{"sub": "1", "email": "ann@example.org", "groups": said})
		r.session(r.browser("one").signIn(), "/login/oidc/complete")
		return members(r)
	}
	if got := in([]any{"small", "family", "unknown"}); got != "Family oidc, Kids oidc, Manual oidc" {
		t.Error(got)
	}
	ann := r.session(r.browser("one").signIn(), "/login/oidc/complete").User.ID
	m := admin.Do("POST", groups+"/"+manual+"/members", object{"userIds": []string{ann.String()}}).Want(200)
	if !strings.Contains(string(m.Body), `"source":"manual"`) {
		t.Errorf("%s", m.Body)
	}
	bumped := r.bump
	r.told = nil
	for _, c := range []struct {
		said any
		want string
	}{{[]any{"smaller"}, "Kids oidc, Manual manual"}, {[]any{"smaller"}, "Kids oidc, Manual manual"}, {nil, "Manual manual"}, {"family", "Family oidc, Manual manual"}} {
		if got := in(c.said); got != c.want {
			t.Errorf("%v: %s, want %s", c.said, got, c.want)
		}
	}
	if r.bump != bumped+3 {
		t.Errorf("told %d times of 3 changes", r.bump-bumped)
	}
	resync := events.Resync("access_changed")
	resync.UserID = ann.String()
	if !reflect.DeepEqual(r.told, []events.Event{resync, resync, resync}) {
		t.Errorf("clients are told %+v", r.told)
	}
	admin.Do("DELETE", groups+"/"+family+"/oidc-mappings/"+of, nil).Want(204)
	if got := in("family"); got != "Manual manual" {
		t.Error(got)
	}
	for i := range 99 {
		add(family, strings.Repeat("x", i+1))
	}
	add(family, "last")
	admin.Do("POST", groups+"/"+family+"/oidc-mappings", object{"oidcGroupName": "one more"}).Want(409)
	// A missing groups claim removes the memberships, unless the operator says that it is ignored.
	in([]any{"small"})
	silent := func(want string) {
		t.Helper()
		r.idp.says(object{"sub": "1", "email": "ann@example.org"})
		if got := r.session(r.browser("one").signIn(), "/login/oidc/complete"); got.User.ID != ann || members(r) != want {
			t.Errorf("%s, want %s", members(r), want)
		}
	}
	r.set(r.One, func(p *oidc.Provider) { p.MissingGroups = "keep" })
	silent("Kids oidc, Manual manual")
	r.set(r.One, nil)
	silent("Manual manual")
	// Another provider removes only what it, or a removed provider, had set.
	in([]any{"small"})
	r.idp.says(object{"sub": "2", "email": "ann@example.org", "email_verified": true, "groups": []string{}})
	r.DB.Exec(t, "update account set email_verified = true where id = $1", ann)
	given := func() int { return r.count("select count(*) from access_group_member where source = 'oidc'") }
	r.set(r.One, func(p *oidc.Provider) { p.Name = "other" })
	other := func() {
		t.Helper()
		b := r.browser("one")
		s := r.session(b.back(r.idp.authorize(b.do("POST", at+"other/login", nil).Want(200).Map()["redirectUrl"].(string))), "/login/oidc/complete")
		if s.User.ID != ann {
			t.Errorf("%+v", s.User)
		}
	}
	if other(); given() != 1 {
		t.Errorf("%d memberships after signing in at a provider that knows no groups, want 1", given())
	}
	if err := oidc.Remove(r.In(r.One), r.DB.System, "id"); err != nil {
		t.Fatal(err)
	}
	if other(); given() != 0 {
		t.Errorf("%d memberships that a provider gave which is gone, want 0", given())
	}
	r.set(r.One, nil)
	r.DB.Exec(t, "insert into oidc_identity (tenant_id, provider_id, subject, account_id) select tenant_id, id, '1', $1 from oidc_provider where name = 'id'", ann)
	// If groups are not used, they stay.
	in([]any{"small"})
	r.set(r.One, func(p *oidc.Provider) { p.GroupsClaim = "" })
	if got := in(nil); got != "Kids oidc, Manual manual" {
		t.Error(got)
	}
}

// A session is never sent to a foreign address.
func TestRedirects(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.set(r.One, func(p *oidc.Provider) { p.RedirectURIs = []string{"https://reader.example.org/in", "reader:/in?a=b"} })
	b := r.browser("one")
	for _, to := range []string{"/", "/app?x=1", "http://one.test/app", "HTTP://ONE.test", "https://reader.example.org/in", "reader:/in?a=b"} {
		r.session(b.back(r.idp.authorize(b.begin(object{"redirectUri": to}))), to)
		delete(b.cookies, httpapi.SessionCookie)
		back := r.idp.authorize(b.begin(object{"redirectUri": to}))
		back.RawQuery = url.Values{"error": {"access_denied"}, "error_description": {"<script>"}, "state": back.Query()["state"]}.Encode()
		location := b.back(back)
		path, _, _ := strings.Cut(to, "?")
		if b.refused(to, location, path, "access_denied", "did not sign you in"); strings.Contains(location, "%3C") || strings.Count(location, "?") != 1 {
			t.Error(location)
		}
	}
	for _, to := range []string{"//evil.test", "///evil.test", "/\\evil.test", "\\/evil.test", "/\t/evil.test", "https://one.test/app", "http://one.test:81/", "http://one.test.evil.test/", "http://one.test@evil.test/",
		"http://evil.test/one.test", "http:one.test", "http:///app", "javascript:alert(1)", "app", "?a", "https://reader.example.org/in/more", "https://reader.example.org/in?x",
		"/app#x", "http://two.test/", "%2f/evil.test", "", " /app", "http://a:b@one.test/", "ftp://one.test/", "/a\x00b"} {
		if to == "" {
			continue // is left out
		}
		b.do("POST", at+"id/login", object{"redirectUri": to}).Want(400)
	}
	b.do("POST", at+"id/login", object{"redirectUri": "/" + strings.Repeat("a", 2000)}).Want(400)
	b.do("POST", at+"id/login", object{"redirectUri": 7}).Want(400)
	r.idp.authorize(b.begin(object{"redirectUri": nil}))
	r.idp.authorize(b.begin(object{"redirectUri": ""}))
	r.idp.authorize(b.begin("{}"))
}

func TestProvidersErrors(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.browser("one")
	for said, code := range map[string]string{"access_denied": "access_denied", "login_required": "login_required", "<script>": "access_denied"} {
		back := r.idp.authorize(b.begin(nil))
		back.RawQuery = url.Values{"error": {said}, "state": back.Query()["state"]}.Encode()
		b.refused(said, b.back(back), "/login", code, "did not sign you in")
	}
	back := r.idp.authorize(b.begin(nil))
	r.DB.Exec(t, "update oidc_provider set client_secret = 'other'")
	b.refused("secret of another key", b.back(back), "/login", "server_error", "operator")
	r.set(r.One, nil)
	back = r.idp.authorize(b.begin(nil))
	r.idp.mu.Lock()
	r.idp.answer = func(w http.ResponseWriter, path string) bool {
		_, _ = w.Write(make([]byte, plug.MaxWebBody+1))
		return true
	}
	r.idp.mu.Unlock()
	b.refused("too much", b.back(back), "/login", "temporarily_unavailable", "try again")
	back = func() *url.URL {
		r.idp.mu.Lock()
		r.idp.answer = nil
		r.idp.mu.Unlock()
		return r.idp.authorize(b.begin(nil))
	}()
	r.idp.Close()
	b.refused("away", b.back(back), "/login", "temporarily_unavailable", "try again")
}

// A provider's metadata is validated, and refreshed.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.browser("one")
	for name, m := range map[string]object{
		"another issuer": {"issuer": "https://id.example.org"}, "no page": {"authorization_endpoint": ""}, "script": {"authorization_endpoint": "javascript:alert(1)"},
		"file": {"jwks_uri": "file:///etc/passwd"}, "no token endpoint": {"token_endpoint": nil}, "userinfo": {"userinfo_endpoint": "/userinfo"},
	} {
		r.idp = newIDP(t) // the previous one is known to fail
		r.idp.metadata = m
		r.set(r.One, nil)
		if res := b.do("POST", at+"id/login", nil); res.Status != 503 || res.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", name, res.Status, res.Body)
		}
	}
	// A provider at a public address cannot point to a private one.
	inside := newIDP(t)
	r.idp = newIDP(t)
	r.idp.metadata = object{"token_endpoint": inside.URL + "/token"}
	r.set(r.One, nil)
	b.refused("private", b.signIn(), "/login", "temporarily_unavailable", "try again")
	if len(inside.asked) != 0 {
		t.Errorf("asked %v", inside.asked)
	}
}

// Claims missing in the ID token are requested, for the same subject.
func TestUserInfo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.idp.metadata = object{"userinfo_endpoint": r.idp.URL + "/userinfo"}
	r.set(r.One, func(p *oidc.Provider) { p.MaintainerGroups = []string{"staff"} })
	say := func(token, info object) {
		r.idp.says(token)
		r.idp.mu.Lock()
		r.idp.info = info
		r.idp.mu.Unlock()
	}
	b := r.browser("one")
	say(object{"sub": "1"}, object{"sub": "2", "email": "ann@example.org"})
	b.refused("of somebody else", b.signIn(), "/login", "server_error", "answer is not valid")
	say(object{"sub": "1"}, object{"sub": "1", "email": "ann@example.org", "email_verified": true, "preferred_username": "ann", "groups": []string{"staff"}})
	if s := r.session(b.signIn(), "/login/oidc/complete"); s.User.Username != "ann" || s.User.Role != "maintainer" || !s.User.EmailVerified {
		t.Errorf("%+v", s.User)
	}
	// The address in one response is not verified by the other.
	say(object{"sub": "3", "email": "boss@example.org"}, object{"sub": "3", "email": "mine@example.org", "email_verified": true})
	if s := r.session(b.signIn(), "/login/oidc/complete"); s.User.Email != "boss@example.org" || s.User.EmailVerified {
		t.Errorf("%+v", s.User)
	}
	say(object{"sub": "4", "email_verified": true}, object{"sub": "4", "email": "chief@example.org", "email_verified": false})
	if s := r.session(b.signIn(), "/login/oidc/complete"); s.User.Email != "chief@example.org" || s.User.EmailVerified {
		t.Errorf("%+v", s.User)
	}
}

// An address that a user only claimed at registration is not verified, until an administrator confirms it.
func TestClaimedAddress(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.DB.Set(t, r.One, setting.RegistrationEnabled, "true")
	m := r.Anonymous(t, "one").Do("POST", "/api/v1/auth/register", object{"username": "mallory", "email": "Ann@example.org", "password": "longer than eight"}).Want(201).Map()
	id := m["user"].(object)["id"].(string)
	b := r.browser("one")
	b.refused("claimed", b.signIn(), "/login", "access_denied", "not verified")
	admin := r.User(t, "one", "admin")
	admin.Do("PATCH", "/api/v1/users/"+id, object{"username": "ann"}).Want(200)
	b.refused("claimed by another name", b.signIn(), "/login", "access_denied", "not verified")
	admin.Do("PATCH", "/api/v1/users/"+id, object{"isActive": false}).Want(200)
	b.refused("disabled", b.signIn(), "/login", "access_denied", "not verified")
	admin.Do("PATCH", "/api/v1/users/"+id, object{"isActive": true}).Want(200)
	if s := r.session(b.signIn(), "/login/oidc/complete"); s.NewAccount || s.User.ID.String() != id {
		t.Errorf("%+v", s)
	}
}

// Nor is an address that a manager without SystemAdmin sets for a user whose password or sessions they control: a
// sign-in through the provider would bring that person's role.
func TestAddressOfAManager(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	manager := r.User(t, "one", "reader", auth.UsersRead, auth.UsersWrite)
	admin := r.User(t, "one", "admin")
	made := manager.Do("POST", "/api/v1/users", object{"username": "x", "email": "ann@example.org", "password": "longer than eight"}).Want(201).Map()
	b := r.browser("one")
	b.refused("made", b.signIn(), "/login", "access_denied", "not verified")
	admin.Do("PATCH", "/api/v1/users/"+made["id"].(string), object{"email": "x@example.org"}).Want(200)
	at := "/api/v1/users/" + manager.ID.String()
	manager.Do("PATCH", at, object{"email": "ann@example.org"}).Want(200)
	b.refused("changed", b.signIn(), "/login", "access_denied", "not verified")
	manager.Do("PATCH", at, object{"isActive": true}).Want(200)
	b.refused("enabled", b.signIn(), "/login", "access_denied", "not verified")
	admin.Do("PATCH", at, object{"isActive": true}).Want(200)
	if s := r.session(b.signIn(), "/login/oidc/complete"); s.User.ID != manager.ID {
		t.Errorf("%+v", s)
	}
}

// An administrator who corrects an address that a manager has set does not vouch for the user: the manager may know the
// password.
func TestAddressCorrectedByAnAdministrator(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	manager, admin := r.User(t, "one", "reader", auth.UsersRead, auth.UsersWrite), r.User(t, "one", "admin")
	made := manager.Do("POST", "/api/v1/users", object{"username": "x", "email": "an@example.org", "password": "longer than eight"}).Want(201).Map()
	at := "/api/v1/users/" + made["id"].(string)
	admin.Do("PATCH", at, object{"email": "ann@example.org"}).Want(200)
	b := r.browser("one")
	b.refused("corrected", b.signIn(), "/login", "access_denied", "not verified")
	admin.Do("PATCH", at, object{"isActive": true}).Want(200)
	if s := r.session(b.signIn(), "/login/oidc/complete"); s.User.ID.String() != made["id"] {
		t.Errorf("%+v", s)
	}
}

// A manager who has set the password of a user knows it: a sign-in through the provider must not bring that user a role
// until an administrator has enabled the user again.
func TestPasswordOfAManager(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.set(r.One, func(p *oidc.Provider) { p.AdminGroups = []string{"admins"} })
	admin, manager := r.User(t, "one", "admin"), r.User(t, "one", "reader", auth.UsersRead, auth.UsersWrite)
	anyone := r.Anonymous(t, "one")
	ann := object{"username": "ann", "password": "longer than eight"}
	role := func(c *testkit.Client) any { return c.Do("GET", "/api/v1/auth/me", nil).Want(200).Map()["role"] }
	login := func() *testkit.Client {
		return bearer(anyone, anyone.Do("POST", "/api/v1/auth/login", ann).Want(200).Map()["access_token"].(string))
	}
	says := func(groups ...string) {
		r.idp.says(object{"sub": "1", "email": "ann@example.org", "email_verified": true, "groups": groups})
	}
	signIn := func() account.UserInfo { return r.session(r.browser("one").signIn(), "/login/oidc/complete").User }
	at := "/api/v1/users/" + admin.Do("POST", "/api/v1/users", object{"username": "ann", "email": "ann@example.org", "password": "of her own"}).Want(201).Map()["id"].(string)

	says("admins")
	manager.Do("PATCH", at, ann).Want(200)
	b := r.browser("one")
	b.refused("not linked", b.signIn(), "/login", "access_denied", "not verified")
	admin.Do("PATCH", at, object{"isActive": true}).Want(200)
	if u := signIn(); at != "/api/v1/users/"+u.ID.String() || u.Role != "admin" {
		t.Errorf("%+v", u)
	}

	says()
	if u := signIn(); u.Role != "reader" {
		t.Errorf("%+v", u)
	}
	manager.Do("PATCH", at, ann).Want(200)
	session := login()
	says("admins")
	if u := signIn(); u.Role != "reader" || role(session) != "reader" || role(login()) != "reader" {
		t.Errorf("linked: %+v, the session %v", u, role(session))
	}
	admin.Do("PATCH", at, object{"isActive": true, "password": "of her own"}).Want(200)
	if u := signIn(); u.Role != "admin" {
		t.Errorf("after an administrator has enabled her: %+v", u)
	}
	session.Do("GET", "/api/v1/auth/me", nil).Want(401)
	anyone.Do("POST", "/api/v1/auth/login", ann).Want(401)

	// Managers know their own passwords.
	r.DB.Exec(t, "update account set email = 'boss@example.org' where id = $1", manager.ID)
	manager.Do("PATCH", "/api/v1/users/"+manager.ID.String(), object{"password": "longer than eight"}).Want(200)
	r.idp.says(object{"sub": "2", "email": "boss@example.org", "email_verified": true, "groups": "admins"})
	if u := signIn(); u.ID != manager.ID || u.Role != "admin" {
		t.Errorf("a manager: %+v", u)
	}
}

// A manager who enables a user does not confirm the address: neither of somebody who has registered with another
// person's, blocked by an administrator or not, nor of a user whose provider has not verified it.
func TestEnabledByAManager(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin, manager := r.User(t, "one", "admin"), r.User(t, "one", "reader", auth.UsersRead, auth.UsersWrite)
	r.DB.Set(t, r.One, setting.RegistrationEnabled, "true")
	r.DB.Set(t, r.One, setting.ConfirmEmail, "true")
	registered := func(name string) string {
		email := name + "@example.org"
		r.Anonymous(t, "one").Do("POST", "/api/v1/auth/register", object{"username": name, "email": email, "password": "longer than eight"})
		r.idp.says(object{"sub": name, "email": email, "email_verified": true})
		var id string
		if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select id::text from account where email = $1 and not email_verified", email).Scan(&id); err != nil {
			t.Fatal(err)
		}
		return "/api/v1/users/" + id
	}
	for _, c := range []struct {
		name    string
		blocked bool
	}{{"ann", false}, {"boss", true}} {
		at, b := registered(c.name), r.browser("one")
		if c.blocked {
			admin.Do("PATCH", at, object{"isActive": false}).Want(200)
		}
		manager.Do("PATCH", at, object{"isActive": true}).Want(200)
		b.refused(c.name, b.signIn(), "/login", "access_denied", "not verified")
		admin.Do("PATCH", at, object{"isActive": true}).Want(200)
		if s := r.session(b.signIn(), "/login/oidc/complete"); at != "/api/v1/users/"+s.User.ID.String() {
			t.Errorf("%s: %+v", c.name, s)
		}
	}

	r.idp.says(object{"sub": "3", "email": "chief@example.org"})
	s := r.session(r.browser("one").signIn(), "/login/oidc/complete")
	manager.Do("PATCH", "/api/v1/users/"+s.User.ID.String(), object{"isActive": true}).Want(200)
	r.idp.says(object{"sub": "4", "email": "chief@example.org", "email_verified": true})
	r.set(r.One, func(p *oidc.Provider) { p.Name = "other" })
	b := r.browser("one")
	b.refused("of another provider", b.back(r.idp.authorize(b.do("POST", at+"other/login", nil).Want(200).Map()["redirectUrl"].(string))),
		"/login", "access_denied", "not verified")
}

// A user whose address the provider has not verified cannot be taken over by the owner of that mailbox, disabled or
// not.
func TestUnverifiedIsNotWaiting(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.idp.says(object{"sub": "1", "email": "boss@example.org"})
	b := r.browser("one")
	s := r.session(b.signIn(), "/login/oidc/complete")
	for _, active := range []bool{true, false} {
		r.DB.Exec(t, "update account set is_active = $2 where id = $1", s.User.ID, active)
		r.Anonymous(t, "one").Do("POST", "/api/v1/auth/resend-verification", object{"email": "boss@example.org"}).Want(200)
		var tokens int
		if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from verification_token where account_id = $1", s.User.ID).Scan(&tokens); err != nil || tokens != 0 {
			t.Errorf("active %v: %d tokens, %v", active, tokens, err)
		}
	}
}

// A concurrent change does not fail the sign-in.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ann, ctx := r.User(t, "one", "reader"), context.Background()
	r.DB.Exec(t, "update account set email = 'ann@example.org' where id = $1", ann.ID)
	while := func(sql string, args ...any) (*browser, string) {
		t.Helper()
		b := r.browser("one")
		back := r.idp.authorize(b.begin(nil))
		tx, err := r.DB.Owner.Pool().Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(ctx) }()
		if _, err := tx.Exec(ctx, sql, args...); err != nil {
			t.Fatal(err)
		}
		var res *testkit.Response
		var wait sync.WaitGroup
		wait.Go(func() { res = b.do("GET", back.RequestURI(), nil) })
		r.DB.AwaitLock(t)
		if err := tx.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		wait.Wait()
		return b, res.Want(303).Header.Get("Location")
	}
	b, location := while("insert into oidc_identity (tenant_id, provider_id, subject, account_id) select tenant_id, id, 'rival', $1 from oidc_provider", ann.ID)
	b.refused("another subject with the same address", location, "/login", "access_denied", "another account")

	r.DB.Exec(t, "delete from oidc_identity")
	_, location = while("delete from account where id = $1", ann.ID)
	if s := r.session(location, "/login/oidc/complete"); !s.NewAccount || r.count("select count(*) from oidc_identity where account_id = $1", s.User.ID) != 1 {
		t.Errorf("%+v", s)
	}

	admin := r.User(t, "one", "admin")
	group := admin.Do("POST", "/api/v1/access-groups", object{"name": "Kids"}).Want(201).Map()["id"].(string)
	admin.Do("POST", "/api/v1/access-groups/"+group+"/oidc-mappings", object{"oidcGroupName": "small"}).Want(201)
	r.idp.says(object{"sub": "1", "groups": "small"})
	_, location = while("delete from access_group where id = $1", group)
	r.session(location, "/login/oidc/complete")
}

func TestForget(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.set(r.Two, nil)
	for _, tenant := range []string{"one", "two", "two"} {
		r.browser(tenant).begin(nil)
	}
	r.DB.Exec(t, "update oidc_state set expires_at = now() - interval '1 second' where hash in (select hash from oidc_state where tenant_id = $1 limit 1) or tenant_id = $2", r.Two, r.One)
	if n, err := oidc.Forget(context.Background(), r.DB.App); err != nil || n != 0 {
		t.Errorf("the restricted role reaches across tenants: %d, %v", n, err)
	}
	for _, want := range []int64{2, 0} {
		if n, err := oidc.Forget(context.Background(), r.DB.System); err != nil || n != want {
			t.Errorf("forgot %d, want %d: %v", n, want, err)
		}
	}
	// The api cannot change providers; only the operator can.
	if _, err := oidc.Set(r.In(r.One), r.DB.App, r.key, oidc.Provider{Name: "mine", Issuer: r.idp.URL, ClientID: "x"}, oidc.Secret{None: true}); err == nil {
		t.Error("the restricted role sets providers")
	}
}

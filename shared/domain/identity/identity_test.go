package identity_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/account"
	"github.com/longbox/longbox/shared/domain/apikey"
	"github.com/longbox/longbox/shared/domain/catalog"
	"github.com/longbox/longbox/shared/domain/identity"
	"github.com/longbox/longbox/shared/domain/komga"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/mail"
	"github.com/longbox/longbox/shared/testkit"
)

const (
	me     = "/api/v1/auth/me"
	stream = "/api/v1/auth/stream"
)

func routes(t *testing.T) func(a *httpapi.API, d *db.DB) {
	return func(a *httpapi.API, d *db.DB) {
		sender, err := mail.New(mail.Config{})
		if err != nil {
			t.Fatal(err)
		}
		bump := func(context.Context, uuid.UUID) {}
		account.Routes(a, d, testkit.Tokens(t), bump, sender, "http://localhost")
		apikey.Routes(a, d, bump)
		catalog.Routes(a, d)
		komga.Routes(a, d, func(context.Context, uuid.UUID) {})
	}
}

func with(c *testkit.Client, header, value string) *testkit.Client {
	other := *c
	other.Header = http.Header{header: {value}}
	return &other
}

func basic(c *testkit.Client, user, password string) *testkit.Client {
	return with(c, "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
}

func newKey(t *testing.T, c *testkit.Client) (id, key string) {
	t.Helper()
	m := c.Do("POST", "/api/v1/api-keys", `{"name":"k"}`).Want(201).Map()
	return m["id"].(string), m["key"].(string)
}

func TestEveryCredential(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes(t))
	u := s.User(t, "one", "reader")
	_, key := newKey(t, u)
	token := strings.TrimPrefix(u.Header.Get("Authorization"), "Bearer ")
	for name, c := range map[string]*testkit.Client{
		"token":             u,
		"token, lower case": with(u, "Authorization", "bearer "+token),
		"key":               with(u, "X-Api-Key", key),
		"key as bearer":     with(u, "Authorization", "Bearer "+key),
		"key as password":   basic(u, "anything", key),
		"user name":         basic(u, u.Name, testkit.Password),
		"e-mail":            basic(u, u.Name+"@example.org", testkit.Password),
	} {
		who(t, name, c, me, "id", u.ID)
	}
	// The cookie works for streams and what a browser loads by itself.
	who(t, "cookie", with(u, "Cookie", "auth_token="+token), stream, "userId", u.ID)
}

// A cached name and password apply only in their tenant, and not to another pair with the same concatenation.
func TestSameWordsOfOthers(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes(t))
	one, two := s.User(t, "one", "reader"), s.User(t, "two", "reader")
	s.DB.Exec(t, "update account set username = $1 where id = any($2)", one.Name, []uuid.UUID{one.ID, two.ID})
	for range 2 {
		for _, u := range []*testkit.Client{one, two} {
			if m := basic(u, one.Name, testkit.Password).Do("GET", me, nil).Want(200).Map(); m["id"] != u.ID.String() {
				t.Errorf("%v, want %s", m, u.ID)
			}
		}
	}
	last := len(one.Name) - 1
	basic(one, one.Name[:last], one.Name[last:]+testkit.Password).Do("GET", me, nil).Want(401)
}

// who checks that the field of the response names the user, and that the credential works only in its tenant.
func who(t *testing.T, name string, c *testkit.Client, path, member string, id uuid.UUID) {
	t.Helper()
	for range 2 { // looked up, then cached
		if m := c.Do("GET", path, nil).Want(200).Map(); m[member] != id.String() {
			t.Errorf("%s: %v", name, m)
		}
	}
	foreign := *c
	foreign.Host = "two.test"
	if r := foreign.Do("GET", path, nil); r.Status != 401 {
		t.Errorf("%s in another tenant: %d", name, r.Status)
	}
}

func TestBadCredentials(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes(t))
	u := s.User(t, "one", "admin")
	_, key := newKey(t, u)
	last := "0"
	if strings.HasSuffix(key, "0") {
		last = "1"
	}
	sign := func(tenant uuid.UUID, id uuid.UUID, generation int32, at time.Time) string {
		token, err := s.Tokens.Sign(tenant, id, generation, at)
		if err != nil {
			t.Fatal(err)
		}
		return "Bearer " + token
	}
	now := time.Now()
	token := sign(s.One, u.ID, 1, now)
	parts := strings.Split(token, ".")
	none := "Bearer " + base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + parts[1] + "."
	bodies := map[string]bool{}
	for name, header := range map[string][2]string{
		"alg none":            {"Authorization", none},
		"empty signature":     {"Authorization", parts[0] + "." + parts[1] + "."},
		"expired":             {"Authorization", sign(s.One, u.ID, 1, now.Add(-2*time.Hour))},
		"not yet valid":       {"Authorization", sign(s.One, u.ID, 1, now.Add(time.Hour))},
		"other tenant":        {"Authorization", sign(s.Two, u.ID, 1, now)},
		"old generation":      {"Authorization", sign(s.One, u.ID, 0, now)},
		"future generation":   {"Authorization", sign(s.One, u.ID, 2, now)},
		"unknown user":        {"Authorization", sign(s.One, uuid.New(), 1, now)},
		"key, last byte":      {"X-Api-Key", key[:len(key)-1] + last},
		"key, unknown prefix": {"X-Api-Key", "lbx_" + strings.Repeat("0", 16) + key[20:]},
		"key, prefix alone":   {"X-Api-Key", key[:20]},
		"token as key":        {"X-Api-Key", "nonsense"},
		"empty bearer":        {"Authorization", "Bearer "},
		"broken basic":        {"Authorization", "Basic !!!"},
		"basic, no password":  {"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(u.Name))},
		"basic, not text":     {"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("\xff\x00:x"))},
		"other scheme":        {"Authorization", "Digest x"},
		"stale cookie":        {"Cookie", "auth_token=x"},
		"long":                {"Authorization", "Bearer " + strings.Repeat("a", 10000)},
	} {
		path := me
		if header[0] == "Cookie" {
			path = stream
		}
		r := with(u, header[0], header[1]).Do("GET", path, nil)
		if r.Status != 401 {
			t.Errorf("%s: %d %s", name, r.Status, r.Body)
		}
		if strings.HasPrefix(name, "key, last") || strings.HasPrefix(name, "key, unknown") {
			bodies[string(r.Body)] = true
		}
	}
	if len(bodies) != 1 {
		t.Errorf("a wrong key is told from an unknown one: %v", bodies)
	}
	u.Do("GET", me, nil).Want(200)

	// An invalid credential does not prevent a sign-in.
	with(u, "Authorization", "Bearer expired").Do("POST", "/api/v1/auth/login",
		map[string]string{"username": u.Name, "password": testkit.Password}).Want(200)
}

// A cached token is valid only until its own expiry.
func TestRememberedTokenEnds(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes(t))
	u := s.User(t, "one", "reader")
	token, err := s.Tokens.Sign(s.One, u.ID, 1, time.Now().Add(5*time.Second-s.Tokens.Life()))
	if err != nil {
		t.Fatal(err)
	}
	brief := with(u, "Authorization", "Bearer "+token)
	brief.Do("GET", me, nil).Want(200)
	testkit.Eventually(t, 40*time.Second, func() bool { return brief.Do("GET", me, nil).Status == 401 })
}

// A change on one server takes effect with the next request on every other, although both cache credentials.
func TestChangesReachEveryServer(t *testing.T) {
	t.Parallel()
	one := testkit.Serve(t, routes(t))
	two := one.Beside(t, routes(t))
	admin := one.User(t, "one", "admin")

	u := one.User(t, "one", "admin")
	_, key := newKey(t, u)
	all := []*testkit.Client{u, with(u, "X-Api-Key", key), basic(u, u.Name, testkit.Password)}
	expect := func(status int, path string) {
		t.Helper()
		for i, c := range all {
			for j, s := range []*testkit.Server{one, two} {
				if r := c.At(s).Do("GET", path, nil); r.Status != status {
					t.Errorf("credential %d, server %d: %d, want %d", i, j+1, r.Status, status)
				}
			}
		}
	}
	at := "/api/v1/users/" + u.ID.String()
	expect(200, "/api/v1/users")
	admin.Do("PATCH", at, `{"role":"reader"}`).Want(200)
	expect(403, "/api/v1/users")
	expect(200, me)
	admin.At(two).Do("PATCH", at, `{"permissions":["UsersRead"]}`).Want(200)
	expect(200, "/api/v1/users")
	admin.At(two).Do("DELETE", at, nil).Want(204)
	expect(401, me)

	v := one.User(t, "one", "reader")
	id, key := newKey(t, v)
	byKey := with(v, "X-Api-Key", key)
	byKey.At(one).Do("GET", me, nil).Want(200)
	byKey.At(two).Do("GET", me, nil).Want(200)
	v.At(one).Do("DELETE", "/api/v1/api-keys/"+id, nil).Want(204)
	byKey.At(two).Do("GET", me, nil).Want(401)
	byKey.At(one).Do("GET", me, nil).Want(401)
	v.At(two).Do("GET", me, nil).Want(200)
}

// Not parallel: it measures the allocations of the whole program, and one password hash takes 19 MiB.
func TestUnknownUserCostsTheSame(t *testing.T) {
	s := testkit.Serve(t)
	u := s.User(t, "one", "reader")
	off := s.User(t, "one", "reader")
	if _, err := s.DB.Owner.Pool().Exec(context.Background(), "update account set is_active = false where id = $1", off.ID); err != nil {
		t.Fatal(err)
	}
	check := func(name, password string) (bool, uint64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := identity.CheckPassword(s.In(s.One), s.DB.App, name, password)
		runtime.ReadMemStats(&after)
		if err != nil && !fault.Is(err, fault.Unauthorized) {
			t.Fatal(err)
		}
		return err == nil, after.TotalAlloc - before.TotalAlloc
	}
	for _, c := range []struct {
		name, password string
		ok             bool
	}{{u.Name, testkit.Password, true}, {u.Name, "wrong", false}, {"nobody", "wrong", false}, {off.Name, testkit.Password, false}} {
		ok, used := check(c.name, c.password)
		if ok != c.ok || used < 19<<20 || used > 24<<20 {
			t.Errorf("%s, %s: %v with %d bytes, want one derivation of 19 MiB", c.name, c.password, ok, used)
		}
	}
}

func TestNamesComeBeforeAddresses(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t)
	a, b := s.User(t, "one", "reader"), s.User(t, "one", "reader")
	// Rows as an older version may have left them: the name of one user is the address of another.
	if _, err := s.DB.Owner.Pool().Exec(context.Background(), "update account set username = $2 where id = $1", a.ID, b.Name+"@example.org"); err != nil {
		t.Fatal(err)
	}
	found, err := identity.CheckPassword(s.In(s.One), s.DB.App, b.Name+"@example.org", testkit.Password)
	if err != nil || found.ID != a.ID {
		t.Errorf("found %v, %v", found, err)
	}
	if _, err := identity.CheckPassword(s.In(s.Two), s.DB.App, b.Name, testkit.Password); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("another tenant's user signs in: %v", err)
	}
	for _, name := range []string{"", "a\x00b", "\xff", strings.Repeat("x", 400)} {
		if _, err := identity.CheckPassword(s.In(s.One), s.DB.App, name, "x"); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Auto-completion adds a space after the name. A user who registered that way has no space in the name, and can sign in
// with it.
func TestSpacesAroundNames(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t)
	u := s.User(t, "one", "reader")
	for _, name := range []string{u.Name + " ", "\t" + u.Name, " " + u.Name + "@example.org\u00a0"} {
		if found, err := identity.CheckPassword(s.In(s.One), s.DB.App, name, testkit.Password); err != nil || found.ID != u.ID {
			t.Errorf("%q: found %v, %v", name, found, err)
		}
	}
	for _, name := range []string{" ", u.Name[:1] + " " + u.Name[1:]} {
		if _, err := identity.CheckPassword(s.In(s.One), s.DB.App, name, testkit.Password); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

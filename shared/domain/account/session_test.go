package account_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/account"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/testkit"
)

func TestLogin(t *testing.T) {
	t.Parallel()
	s := serve(t)
	u := s.User(t, "one", "maintainer", auth.UsersRead)
	anyone := s.Anonymous(t, "one")
	r := anyone.Do("POST", "/api/v1/auth/login", map[string]string{"username": strings.ToUpper(u.Name), "password": testkit.Password}).Want(200)
	if got := keys(t, r); got != "access_token expires_in refresh_token token_type user" {
		t.Errorf("login response has %s", got)
	}
	m := r.Map()
	if m["token_type"] != "Bearer" || m["expires_in"] != 3600.0 {
		t.Errorf("login: %v", m)
	}
	user := m["user"].(map[string]any)
	if user["id"] != u.ID.String() || user["role"] != "maintainer" || user["emailVerified"] != true || user["permissions"].([]any)[0] != auth.UsersRead {
		t.Errorf("user: %v", user)
	}
	cookie := (&http.Response{Header: r.Header}).Cookies()[0]
	if cookie.Name != "auth_token" || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/" ||
		cookie.Secure || cookie.MaxAge != 3600 || cookie.Value != m["access_token"] {
		t.Errorf("cookie: %v", cookie)
	}
	if r.Header.Get("Cache-Control") != "no-store" {
		t.Error("a session may be cached")
	}
	anyone.Do("POST", "/api/v1/auth/refresh", map[string]any{"refreshToken": m["refresh_token"]}).Want(200)
	var kept, traced int
	if err := s.DB.Owner.Pool().QueryRow(t.Context(), "select count(*), count(*) filter (where ip <> '' or user_agent <> '') from refresh_token").Scan(&kept, &traced); err != nil || kept != 2 || traced != 0 {
		t.Errorf("%d of %d refresh tokens say from where they were asked for, %v", traced, kept, err)
	}
	me := bearer(anyone, m["access_token"].(string)).Do("GET", "/api/v1/auth/me", nil).Want(200)
	if got := keys(t, me); got != "email emailVerified id permissions role username" {
		t.Errorf("me has %s", got)
	}
	signIn(t, anyone, u.Name+"@EXAMPLE.org", testkit.Password)
	detail := u.Do("GET", "/api/v1/user", nil).Want(200)
	if got := keys(t, detail); got != "createdAt email emailVerified id isActive lastLoginAt permissions role sharingTags updatedAt username" {
		t.Errorf("user has %s", got)
	}
	if at, err := time.Parse(time.RFC3339, detail.Map()["lastLoginAt"].(string)); err != nil || time.Since(at) > time.Minute || !strings.HasSuffix(detail.Map()["lastLoginAt"].(string), "Z") {
		t.Errorf("lastLoginAt: %v, %v", detail.Map()["lastLoginAt"], err)
	}

	// The cookie works for requests that a browser makes by itself, and for reading who is signed in.
	byCookie := with(anyone, "Cookie", "auth_token="+cookie.Value)
	byCookie.Do("GET", "/api/v1/auth/stream", nil).Want(200)
	if got := byCookie.Do("GET", "/api/v1/auth/me", nil).Want(200).Map()["id"]; got != u.ID.String() {
		t.Errorf("the cookie is of %v", got)
	}
	byCookie.Do("GET", "/api/v1/user", nil).Want(401)
	byCookie.Do("POST", "/api/v1/auth/logout", nil).Want(401)

	w, overHTTPS := httptest.NewRecorder(), httptest.NewRequest("POST", "https://one.test/api/v1/auth/login",
		strings.NewReader(`{"username":"`+u.Name+`","password":"`+testkit.Password+`"}`))
	overHTTPS.Header.Set("Content-Type", "application/json")
	if s.API.Router.ServeHTTP(w, overHTTPS); !strings.Contains(w.Header().Get("Set-Cookie"), "; Secure") {
		t.Errorf("over https: %d, %v", w.Code, w.Header())
	}
}

// User name and password are typed in two forms, depending on how a device encodes accents.
func TestLoginInEitherForm(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin, anyone := s.User(t, "one", "admin"), s.Anonymous(t, "one")
	user := func(name, password string) map[string]string {
		return map[string]string{"username": name, "email": "zoe@example.org", "password": password, "role": "reader"}
	}
	const composed, apart = "Zo\u00eb", "Zoe\u0308"
	if m := admin.Do("POST", "/api/v1/users", user(apart, "Secret-1"+apart)).Want(201).Map(); m["username"] != composed {
		t.Errorf("stored as %q", m["username"])
	}
	admin.Do("POST", "/api/v1/users", map[string]string{"username": composed, "email": "other@example.org", "password": "Secret-1!", "role": "reader"}).Want(409)
	for _, form := range []string{composed, apart} {
		anyone.Do("POST", "/api/v1/auth/login", map[string]string{"username": form, "password": "Secret-1" + composed}).Want(200)
		anyone.Do("POST", "/api/v1/auth/login", map[string]string{"username": form, "password": "Secret-1" + apart}).Want(200)
	}
}

func TestLoginRefused(t *testing.T) {
	t.Parallel()
	s := serve(t)
	u, off := s.User(t, "one", "reader"), s.User(t, "one", "reader")
	s.exec(t, "update account set is_active = false where id = $1", off.ID)
	anyone := s.Anonymous(t, "one")
	var first string
	for _, c := range []struct{ name, username, password string }{
		{"wrong password", u.Name, "wrong password"},
		{"unknown user", "nobody", testkit.Password},
		{"disabled user", off.Name, testkit.Password},
		{"NUL", "a\x00b", testkit.Password},
	} {
		r := anyone.Do("POST", "/api/v1/auth/login", map[string]string{"username": c.username, "password": c.password}).Want(401)
		if first == "" {
			first = string(r.Body)
		}
		if string(r.Body) != first {
			t.Errorf("%s is told apart: %s", c.name, r.Body)
		}
	}
	s.Anonymous(t, "two").Do("POST", "/api/v1/auth/login", map[string]string{"username": u.Name, "password": testkit.Password}).Want(401)
	with(anyone, "Authorization", "Basic AGEAOmI=").Do("GET", "/api/v1/auth/me", nil).Want(401) // NUL in the name
	field(t, anyone.Do("POST", "/api/v1/auth/login", `{"username":"a"}`).Want(400), "password")
	field(t, anyone.Do("POST", "/api/v1/auth/login", map[string]string{"username": "a", "password": strings.Repeat("x", 1025)}).Want(400), "password")
	anyone.Do("POST", "/api/v1/auth/login", `[]`).Want(400)
	anyone.Do("GET", "/api/v1/auth/me", nil).Want(401)
}

func TestRefreshRotates(t *testing.T) {
	t.Parallel()
	s := serve(t)
	u := s.User(t, "one", "reader")
	anyone := s.Anonymous(t, "one")
	renew := func(c *testkit.Client, token string) *testkit.Response {
		return c.Do("POST", "/api/v1/auth/refresh", map[string]string{"refresh_token": token})
	}
	first := signIn(t, anyone, u.Name, testkit.Password)
	other := signIn(t, anyone, u.Name, testkit.Password)
	var second, third pair
	r := renew(bearer(anyone, "an expired token"), first.RefreshToken).Want(200)
	if got := keys(t, r); got != "accessToken expiresIn refreshToken tokenType" {
		t.Errorf("refresh response has %s", got)
	}
	if m := r.Map(); m["tokenType"] != "Bearer" || m["expiresIn"] != 3600.0 || !strings.Contains(r.Header.Get("Set-Cookie"), m["accessToken"].(string)) {
		t.Errorf("refresh: %v, cookie %q", m, r.Header.Get("Set-Cookie"))
	}
	r.JSON(&second)
	if second.RefreshToken == first.RefreshToken {
		t.Fatal("the refresh token did not change")
	}
	bearer(anyone, second.AccessToken).Do("GET", "/api/v1/auth/me", nil).Want(200)
	anyone.Do("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": second.RefreshToken}).Want(200).JSON(&third)

	renew(s.Anonymous(t, "two"), third.RefreshToken).Want(401)
	renew(anyone, first.RefreshToken).Want(401) // used before: the family ends
	renew(anyone, third.RefreshToken).Want(401)
	var next pair
	renew(anyone, other.RefreshToken).Want(200).JSON(&next) // another session continues
	s.exec(t, "update refresh_token set expires_at = now() - interval '1 second' where account_id = $1", u.ID)
	renew(anyone, next.RefreshToken).Want(401)
	renew(anyone, "unknown").Want(401)
	field(t, anyone.Do("POST", "/api/v1/auth/refresh", `{}`).Want(400), "refreshToken")
}

// A session lasts for 30 days after its last refresh.
func TestSessionsLast(t *testing.T) {
	t.Parallel()
	s := serve(t)
	u, anyone := s.User(t, "one", "reader"), s.Anonymous(t, "one")
	l := signIn(t, anyone, u.Name, testkit.Password)
	s.lasts(t, "refresh_token", "720 hours")
	s.exec(t, "update refresh_token set expires_at = now() + interval '1 minute'")
	anyone.Do("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": l.RefreshToken}).Want(200)
	s.exec(t, "delete from refresh_token where used_at is not null")
	s.lasts(t, "refresh_token", "720 hours")
}

func TestRefreshRace(t *testing.T) {
	t.Parallel()
	s := serve(t)
	u := s.User(t, "one", "reader")
	anyone := s.Anonymous(t, "one")
	for range 5 {
		l := signIn(t, anyone, u.Name, testkit.Password)
		var mu sync.Mutex
		var won []pair
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				r := anyone.Do("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": l.RefreshToken})
				if r.Status == 401 {
					return
				}
				var next pair
				if err := json.Unmarshal(r.Body, &next); r.Status != 200 || err != nil {
					t.Errorf("status %d, %v: %s", r.Status, err, r.Body)
					return
				}
				mu.Lock()
				won = append(won, next)
				mu.Unlock()
			})
		}
		group.Wait()
		if len(won) != 1 {
			t.Fatalf("%d requests renewed with one token", len(won))
		}
		// Seven requests came with a used token: the holder of the new one must sign in again.
		anyone.Do("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": won[0].RefreshToken}).Want(401)
	}
	if n := s.count(t, "select count(*) from refresh_token where account_id = $1", u.ID); n != 0 {
		t.Errorf("%d tokens are left", n)
	}
}

func TestTokensAreBounded(t *testing.T) {
	t.Parallel()
	s := serve(t)
	u := s.User(t, "one", "reader")
	s.exec(t, `insert into refresh_token (tenant_id, id, account_id, family_id, hash, expires_at, created_at)
		select $1, gen_random_uuid(), $2, gen_random_uuid(), sha256(i::text::bytea), now() + interval '1 day', now() - interval '1 hour'
		from generate_series(1, 700) i`, s.One, u.ID)
	l := signIn(t, s.Anonymous(t, "one"), u.Name, testkit.Password)
	if n := s.count(t, "select count(*) from refresh_token where account_id = $1", u.ID); n != 500 {
		t.Errorf("%d tokens are kept", n)
	}
	s.Anonymous(t, "one").Do("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": l.RefreshToken}).Want(200)
}

// A client that refreshes often leaves used tokens; the sessions of other devices outlast them.
func TestUsedTokensGoFirst(t *testing.T) {
	t.Parallel()
	s := serve(t)
	u := s.User(t, "one", "reader")
	idle := signIn(t, s.Anonymous(t, "one"), u.Name, testkit.Password)
	s.exec(t, `insert into refresh_token (tenant_id, id, account_id, family_id, hash, expires_at, created_at, used_at)
		select $1, gen_random_uuid(), $2, gen_random_uuid(), sha256(i::text::bytea), now() + interval '1 day', now() + interval '1 second', now() from generate_series(1, 600) i`, s.One, u.ID)
	signIn(t, s.Anonymous(t, "one"), u.Name, testkit.Password)
	if n := s.count(t, "select count(*) from refresh_token where account_id = $1", u.ID); n != 500 {
		t.Errorf("%d tokens are kept", n)
	}
	s.Anonymous(t, "one").Do("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": idle.RefreshToken}).Want(200)
}

func TestLogout(t *testing.T) {
	t.Parallel()
	s := serve(t)
	u, thief := s.User(t, "one", "reader"), s.User(t, "one", "reader")
	anyone := s.Anonymous(t, "one")
	l, stays := signIn(t, anyone, u.Name, testkit.Password), signIn(t, anyone, u.Name, testkit.Password)
	body := map[string]string{"refreshToken": l.RefreshToken}
	thief.Do("POST", "/api/v1/auth/logout", body).Want(200) // another user's token: nothing ends
	if n := s.count(t, "select count(*) from refresh_token where account_id = $1", u.ID); n != 2 {
		t.Fatalf("%d sessions after somebody else's logout", n)
	}
	r := bearer(anyone, l.AccessToken).Do("POST", "/api/v1/auth/logout", body).Want(200)
	if c := r.Header.Get("Set-Cookie"); !strings.Contains(c, "auth_token=;") || !strings.Contains(c, "Max-Age=0") {
		t.Errorf("cookie: %q", c)
	}
	anyone.Do("POST", "/api/v1/auth/refresh", body).Want(401)
	anyone.Do("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": stays.RefreshToken}).Want(200)
	u.Do("POST", "/api/v1/auth/logout", nil).Want(200)
	u.Do("POST", "/api/v1/auth/logout", `{}`).Want(200)
	anyone.Do("POST", "/api/v1/auth/logout", nil).Want(401)
}

func TestStreamAccess(t *testing.T) {
	t.Parallel()
	s := serve(t)
	u := s.User(t, "one", "reader", auth.TasksRead, auth.BooksRead)
	m := u.Do("GET", "/api/v1/auth/stream", nil).Want(200).Map()
	want := slices.Sorted(slices.Values(append(auth.RolePermissions(auth.Reader), auth.TasksRead)))
	if m["tenantId"] != s.One.String() || m["userId"] != u.ID.String() || fmt.Sprint(m["permissions"]) != fmt.Sprint(append(want, events.SeesAll)) {
		t.Errorf("stream access: %v", m)
	}
	ends, err := time.Parse(time.RFC3339, m["expiresAt"].(string))
	if err != nil || time.Until(ends) < 55*time.Minute || time.Until(ends) > time.Hour {
		t.Errorf("expiresAt: %v, %v", m["expiresAt"], err)
	}

	key, prefix, hash := auth.NewAPIKey()
	s.exec(t, `insert into api_key (tenant_id, id, account_id, name, prefix, hash, permissions, expires_at)
		values ($1, gen_random_uuid(), $2, 'k', $3, $4, array['LibrariesRead', 'UsersRead'], '2099-01-02T03:04:05Z')`, s.One, u.ID, prefix, hash)
	m = with(u, "X-API-Key", key).Do("GET", "/api/v1/auth/stream", nil).Want(200).Map()
	if p := m["permissions"].([]any); fmt.Sprint(p) != "[LibrariesRead SeesAll]" || m["expiresAt"] != "2099-01-02T03:04:05Z" {
		t.Errorf("by key: %v", m)
	}
	s.exec(t, "update api_key set expires_at = null, permissions = array['BooksRead'] where account_id = $1", u.ID)
	with(u, "X-API-Key", key).Do("GET", "/api/v1/auth/stream", nil).Want(403)
	s.exec(t, "update api_key set permissions = array['LibrariesRead'] where account_id = $1", u.ID)
	if m = with(u, "X-API-Key", key).Do("GET", "/api/v1/auth/stream", nil).Want(200).Map(); m["expiresAt"] != nil {
		t.Errorf("a key that does not end: %v", m)
	}
	s.exec(t, `with t as (insert into sharing_tag (tenant_id, id, name) values ($1, gen_random_uuid(), 'some') returning *)
		insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) select tenant_id, gen_random_uuid(), id, $2, 'deny' from t`, s.One, u.ID)
	if m = with(u, "X-API-Key", key).Do("GET", "/api/v1/auth/stream", nil).Want(200).Map(); fmt.Sprint(m["permissions"]) != "[LibrariesRead]" {
		t.Errorf("of somebody from whom series are hidden: %v", m)
	}
}

// The account decides, between the password check and storing the session, and if a stale row exists.
func TestSessionOfAChangedAccount(t *testing.T) {
	t.Parallel()
	s := serve(t)
	u := s.User(t, "one", "reader")
	l := signIn(t, s.Anonymous(t, "one"), u.Name, testkit.Password)
	refused := func(what string, tenant uuid.UUID, generation int32) {
		t.Helper()
		if _, err := account.StartSession(s.In(tenant), s.DB.App, s.Tokens, u.ID, generation); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := account.SignIn(s.In(tenant), s.DB.App, s.Tokens, u.ID, generation); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s, without a refresh token: %v", what, err)
		}
	}
	refused("signed in with an old generation", s.One, 0)
	refused("signed in to another tenant", s.Two, 1)
	s.exec(t, "update account set is_active = false where id = $1", u.ID)
	refused("a disabled user signed in", s.One, 1)
	s.Anonymous(t, "one").Do("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": l.RefreshToken}).Want(401)
	if n := s.count(t, "select count(*) from refresh_token where account_id = $1", u.ID); n != 1 {
		t.Errorf("%d tokens", n)
	}
}

// A refresh concurrent with a password change leaves no session that outlives the change, whichever comes first, and
// neither fails.
func TestRenewalAtTheMomentOfTheChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		first   func(renew, change func()) (one, two func())
		renewed int
	}{
		{"renewal first", func(renew, change func()) (one, two func()) { return renew, change }, 200},
		{"change first", func(renew, change func()) (one, two func()) { return change, renew }, 401},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			admin, u := s.User(t, "one", "admin"), s.User(t, "one", "reader")
			anyone := s.Anonymous(t, "one")
			l := signIn(t, anyone, u.Name, testkit.Password)
			held := s.holdExpired(t, u.ID)
			one, two := c.first(
				func() {
					anyone.Do("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": l.RefreshToken}).Want(c.renewed)
				},
				func() {
					admin.Do("PATCH", "/api/v1/users/"+u.ID.String(), map[string]string{"password": "another password"}).Want(200)
				})
			var both sync.WaitGroup
			both.Go(one)
			s.waiting(t, 1)
			both.Go(two)
			s.waiting(t, 2)
			if err := held.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			both.Wait()
			if n := s.count(t, "select count(*) from refresh_token where account_id = $1", u.ID); n != 0 {
				t.Errorf("%d refresh tokens outlived the password", n)
			}
		})
	}
}

// A renewal that is under way when its session ends leaves no token.
func TestRenewalAtTheMomentOfTheEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(c *testkit.Client, used, current string){
		"logout": func(c *testkit.Client, _, current string) {
			c.Do("POST", "/api/v1/auth/logout", map[string]string{"refreshToken": current}).Want(200)
		},
		"used token": func(c *testkit.Client, used, _ string) {
			c.Do("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": used}).Want(401)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			u := s.User(t, "one", "reader")
			renew := func(token string) *testkit.Response {
				return s.Anonymous(t, "one").Do("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": token}).Want(200)
			}
			used := signIn(t, s.Anonymous(t, "one"), u.Name, testkit.Password).RefreshToken
			current := renew(used).Map()["refreshToken"].(string)
			held := s.holdExpired(t, u.ID)
			var both sync.WaitGroup
			both.Go(func() { renew(current) })
			s.waiting(t, 1)
			both.Go(func() { end(u, used, current) })
			s.waiting(t, 2)
			if err := held.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			both.Wait()
			if n := s.count(t, "select count(*) from refresh_token where account_id = $1", u.ID); n != 0 {
				t.Errorf("%d refresh tokens outlived the session", n)
			}
		})
	}
}

// holdExpired gives the user an expired token and locks it. Who deletes the user's old tokens waits for it within their
// transaction.
func (s *server) holdExpired(t *testing.T, user uuid.UUID) pgx.Tx {
	t.Helper()
	s.exec(t, `insert into refresh_token (tenant_id, id, account_id, family_id, hash, expires_at)
		values ($1, gen_random_uuid(), $2, gen_random_uuid(), 'expired', now() - interval '1 hour')`, s.One, user)
	held, err := s.DB.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := held.Exec(t.Context(), "select from refresh_token where hash = 'expired' for update"); err != nil {
		t.Fatal(err)
	}
	return held
}

// waiting returns when that many sessions wait for another's lock.
func (s *server) waiting(t *testing.T, n int) {
	t.Helper()
	for s.count(t, `select count(distinct pid) from pg_locks where not granted
		and pid in (select pid from pg_stat_activity where datname = current_database())`) < n {
		if t.Context().Err() != nil {
			t.Fatal("nobody waits")
		}
	}
}

// The scheduler finds the few expired tokens of all tenants by an index.
func TestExpiredTokensAreFoundByIndex(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.DB.Exec(t, `insert into refresh_token (tenant_id, id, account_id, family_id, hash, expires_at)
		select $1, gen_random_uuid(), $2, gen_random_uuid(), decode(md5(n::text), 'hex'), now() + n * interval '1 min' from generate_series(-10, 10000) n`,
		s.One, s.User(t, "one", "reader").ID)
	s.DB.Exec(t, "analyze refresh_token")
	var plan string
	if err := s.DB.System.Pool().QueryRow(t.Context(), "explain (format json) delete from refresh_token where expires_at < now()").Scan(&plan); err != nil || !strings.Contains(plan, "refresh_token_expires") {
		t.Errorf("%s, %v", plan, err)
	}
}

func TestForgetTokens(t *testing.T) {
	t.Parallel()
	s := serve(t)
	one, two := s.User(t, "one", "reader"), s.User(t, "two", "reader")
	for _, u := range []*testkit.Client{one, two} {
		c := s.Anonymous(t, strings.TrimSuffix(u.Host, ".test"))
		signIn(t, c, u.Name, testkit.Password)
		signIn(t, c, u.Name, testkit.Password)
		s.exec(t, `update refresh_token set expires_at = now() - interval '1 second'
			where id = (select id from refresh_token where account_id = $1 limit 1)`, u.ID)
		s.exec(t, `insert into verification_token (tenant_id, account_id, hash, expires_at) values ($1, $2, '\x00', now() - interval '1 second')`, u.Tenant, u.ID)
	}
	waits := s.User(t, "one", "reader")
	s.exec(t, `insert into verification_token (tenant_id, account_id, hash, expires_at) values ($1, $2, '\x01', now() + interval '1 minute')`, s.One, waits.ID)
	if n, err := account.ForgetTokens(context.Background(), s.DB.App); err != nil || n != 0 {
		t.Errorf("the restricted role reaches across tenants: %d, %v", n, err)
	}
	for _, want := range []int64{4, 0} {
		if n, err := account.ForgetTokens(context.Background(), s.DB.System); err != nil || n != want {
			t.Errorf("forgot %d tokens, want %d; %v", n, want, err)
		}
	}
	if n := s.count(t, "select count(*) from refresh_token") + s.count(t, "select count(*) from verification_token"); n != 3 {
		t.Errorf("%d tokens are left", n)
	}
}

package setup_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/account"
	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/domain/setup"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/mail"
	"github.com/longbox/longbox/shared/testkit"
)

func serve(t *testing.T) *testkit.Server {
	t.Helper()
	return testkit.Serve(t, routes(t))
}

func routes(t *testing.T) func(a *httpapi.API, d *db.DB) {
	return func(a *httpapi.API, d *db.DB) {
		setup.Routes(a, d, testkit.Tokens(t), func(context.Context, uuid.UUID) {})
		sender, err := mail.New(mail.Config{})
		if err != nil {
			t.Fatal(err)
		}
		account.Routes(a, d, testkit.Tokens(t), func(context.Context, uuid.UUID) {}, sender, "http://localhost")
	}
}

func admin(name string) map[string]string {
	return map[string]string{"username": name, "email": name + "@example.org", "password": testkit.Password}
}

func TestSetup(t *testing.T) {
	t.Parallel()
	s := serve(t)
	anyone := s.Anonymous(t, "one")
	status := anyone.Do("GET", "/api/v1/setup/status", nil).Want(200).Map()
	if len(status) != 3 || status["setupRequired"] != true || status["hasUsers"] != false || status["registrationEnabled"] != false {
		t.Errorf("before: %v", status)
	}
	r := anyone.Do("POST", "/api/v1/setup/initialize", admin("ann")).Want(201)
	m := r.Map()
	for _, k := range []string{"accessToken", "tokenType", "expiresIn", "user", "message"} {
		if m[k] == nil {
			t.Errorf("%s is missing: %v", k, m)
		}
	}
	if len(m) != 5 {
		t.Errorf("more than that: %v", m)
	}
	if u := m["user"].(map[string]any); u["role"] != "admin" || u["username"] != "ann" || u["emailVerified"] != true {
		t.Errorf("user: %v", u)
	}
	if c := (&http.Response{Header: r.Header}).Cookies(); len(c) != 1 || c[0].Value != m["accessToken"] {
		t.Errorf("cookies: %v", c)
	}
	anyone.Header.Set("Authorization", "Bearer "+m["accessToken"].(string))
	anyone.Do("GET", "/api/v1/users", nil).Want(200)

	anonymous := s.Anonymous(t, "one")
	if e := anonymous.Do("POST", "/api/v1/setup/initialize", admin("eve")).Want(400).Map(); !strings.Contains(e["message"].(string), "already set up") {
		t.Errorf("second time: %v", e)
	}
	status = anonymous.Do("GET", "/api/v1/setup/status", nil).Want(200).Map()
	if status["setupRequired"] != false || status["hasUsers"] != true {
		t.Errorf("after: %v", status)
	}
	// Each tenant is set up on its own.
	two := s.Anonymous(t, "two")
	if status = two.Do("GET", "/api/v1/setup/status", nil).Want(200).Map(); status["setupRequired"] != true {
		t.Errorf("other tenant: %v", status)
	}
	two.Do("POST", "/api/v1/setup/initialize", admin("ann")).Want(201)
}

func TestSetupInput(t *testing.T) {
	t.Parallel()
	s := serve(t)
	anyone := s.Anonymous(t, "one")
	for _, c := range []struct {
		name, value, field string
		says               []string
	}{
		{"password", "abc", "password", []string{"8 characters", "upper-case", "digit", "special"}},
		{"password", "ABCDEFGH", "password", []string{"lower-case", "digit", "special"}},
		{"password", "Abcdefg1", "password", []string{"special"}},
		{"password", "Abcdefg!", "password", []string{"a digit"}},
		{"password", "", "password", []string{"8 characters"}},
		{"password", strings.Repeat("Aa1!", 300), "password", []string{"1024"}},
		{"username", " ", "username", []string{"required"}},
		{"email", "ann", "email", []string{"e-mail address"}},
	} {
		body := admin("ann")
		body[c.name] = c.value
		var p struct {
			Details []struct{ Field, Message string }
		}
		anyone.Do("POST", "/api/v1/setup/initialize", body).Want(400).JSON(&p)
		if len(p.Details) != 1 || p.Details[0].Field != c.field {
			t.Errorf("%s %q: %v", c.name, c.value, p.Details)
			continue
		}
		for _, says := range c.says {
			if !strings.Contains(p.Details[0].Message, says) {
				t.Errorf("%s %q: %q does not say %q", c.name, c.value, p.Details[0].Message, says)
			}
		}
	}
	anyone.Do("POST", "/api/v1/setup/initialize", `{}`).Want(400)
	if m := anyone.Do("GET", "/api/v1/setup/status", nil).Want(200).Map(); m["hasUsers"] != false {
		t.Errorf("a refused set-up left a user: %v", m)
	}
}

func TestSetupRace(t *testing.T) {
	t.Parallel()
	s := serve(t)
	second := s.Beside(t, routes(t))
	ctx := context.Background()
	// Requests that have seen no user wait at a gate before the insert: without a lock around both, all would succeed.
	if _, err := s.DB.Owner.Pool().Exec(ctx, `create function gate() returns trigger language plpgsql as $$
			begin perform pg_advisory_xact_lock_shared(42); return new; end $$;
		create trigger gate before insert on account for each row execute function gate()`); err != nil {
		t.Fatal(err)
	}
	gate, err := s.DB.Owner.Pool().Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = gate.Rollback(ctx) }() // after the commit below there is nothing to undo
	if _, err := gate.Exec(ctx, "select pg_advisory_xact_lock(42)"); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	counts := map[int]int{}
	var group sync.WaitGroup
	for i := range 20 {
		c := s.Anonymous(t, "one")
		if i%2 == 1 {
			c = second.Anonymous(t, "one")
		}
		group.Go(func() {
			r := c.Do("POST", "/api/v1/setup/initialize", admin(fmt.Sprintf("ann%d", i)))
			if r.Status != 201 && !strings.Contains(string(r.Body), "already set up") {
				t.Errorf("status %d: %s", r.Status, r.Body)
			}
			mu.Lock()
			counts[r.Status]++
			mu.Unlock()
		})
	}
	answered := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(counts)
	}
	for waiting := 0; waiting < 2 && answered() == 0; { // two are before the insert, unless one has failed
		if err := s.DB.Owner.Pool().QueryRow(ctx, `select count(*) from pg_locks where not granted
			and database = (select oid from pg_database where datname = current_database())`).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	if err := gate.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	group.Wait()
	if counts[201] != 1 || counts[400] != 19 {
		t.Errorf("answers: %v", counts)
	}
	var users int
	if err := s.DB.Owner.Pool().QueryRow(ctx, "select count(*) from account").Scan(&users); err != nil || users != 1 {
		t.Errorf("%d users, %v", users, err)
	}
}

func TestCreateAdmin(t *testing.T) {
	t.Parallel()
	s := serve(t)
	one := s.In(s.One)
	for _, c := range []struct{ username, password, says string }{
		{"ann", "short", "password"},
		{"", "long enough", "username"},
	} {
		if err := setup.CreateAdmin(one, s.DB.App, c.username, c.password); err == nil || !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%v: %v", c, err)
		}
	}
	for range 2 {
		if err := setup.CreateAdmin(one, s.DB.App, "ann", "long enough"); err != nil {
			t.Fatal(err)
		}
	}
	if err := setup.CreateAdmin(one, s.DB.App, "bob", "long enough"); err != nil {
		t.Fatal(err)
	}
	if err := setup.CreateAdmin(s.In(s.Two), s.DB.App, "Ann of the house", "long enough"); err != nil {
		t.Fatal(err)
	}
	var got []string
	rows, err := s.DB.Owner.Pool().Query(context.Background(), "select username || ' ' || email || ' ' || role from account order by 1")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		got = append(got, line)
	}
	if len(got) != 2 || got[0] != "Ann of the house admin@localhost.localdomain admin" || got[1] != "ann ann@localhost.localdomain admin" {
		t.Errorf("users: %q", got)
	}
	s.Anonymous(t, "one").Do("POST", "/api/v1/auth/login", `{"username":"ann","password":"long enough"}`).Want(200)
	s.Anonymous(t, "one").Do("POST", "/api/v1/setup/initialize", admin("eve")).Want(400)
}

func TestFirstSettings(t *testing.T) {
	t.Parallel()
	var bumps atomic.Int32
	s := testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		bump := func(context.Context, uuid.UUID) { bumps.Add(1) }
		setup.Routes(a, d, testkit.Tokens(t), bump)
		setting.Routes(a, d, bump)
	})
	admin := s.User(t, "one", "admin")
	const path = "/api/v1/setup/settings"
	patch := func(body string, configured float64) {
		t.Helper()
		if m := admin.Do("PATCH", path, body).Want(200).Map(); m["settingsConfigured"] != configured || m["message"] == "" {
			t.Errorf("%s: %v, want %v", body, m, configured)
		}
	}
	value := func(c *testkit.Client, key string) any {
		t.Helper()
		return c.Do("GET", "/api/v1/admin/settings/"+key, nil).Want(200).Map()["value"]
	}
	patch(`{"settings":{"application.name":"Comics","auth.registration_enabled":"true","no.such":"x"},"skipConfiguration":false}`, 2)
	if value(admin, "application.name") != "Comics" || value(admin, "auth.registration_enabled") != "true" || bumps.Load() != 1 {
		t.Errorf("stored: %v, %v, told %d times", value(admin, "application.name"), value(admin, "auth.registration_enabled"), bumps.Load())
	}
	patch(`{"settings":{"application.name":"Other"},"skip_configuration":true}`, 0)
	patch(`{"settings":{"no.such":"x"}}`, 0)
	patch(`{"settings":{}}`, 0)
	patch(`{}`, 0)
	if value(admin, "application.name") != "Comics" || bumps.Load() != 1 {
		t.Errorf("nothing was to be stored: %v, told %d times", value(admin, "application.name"), bumps.Load())
	}
	many := map[string]string{}
	for i := range 201 {
		many[fmt.Sprint("key", i)] = "x"
	}
	for _, c := range []struct {
		body  any
		field string
	}{
		{`{"settings":{"application.name":"Fine","scanner.batch_size":"9"}}`, "settings.scanner.batch_size"},
		{`{"settings":{"application.name":null}}`, "settings.application.name: must be a string"},
		{`{"settings":[]}`, "settings"},
		{`{"skipConfiguration":"perhaps"}`, "skipConfiguration"},
		{map[string]any{"settings": many}, "settings"},
		{`[]`, ""},
	} {
		m := admin.Do("PATCH", path, c.body).Want(400).Map()
		if !strings.Contains(m["message"].(string), c.field) {
			t.Errorf("%v: %v", c.body, m)
		}
	}
	if value(admin, "application.name") != "Comics" {
		t.Errorf("a refused request stored %v", value(admin, "application.name"))
	}
	history := admin.Do("GET", "/api/v1/admin/settings/application.name/history", nil).Want(200).Map()
	if line := history["data"].([]any)[0].(map[string]any); history["total"] != 1.0 || line["changeReason"] != "Setup" || line["changedBy"] != admin.ID.String() {
		t.Errorf("%v", history)
	}
	for _, body := range []string{`{"settings":{"application.name":"Theirs"}}`, `{"skipConfiguration":true}`, `{"settings":{}}`} {
		s.Anonymous(t, "one").Do("PATCH", path, body).Want(401)
		s.User(t, "one", "maintainer").Do("PATCH", path, body).Want(403)
		s.User(t, "two", "admin").Do("PATCH", path, body).Want(200)
	}
	if value(admin, "application.name") != "Comics" {
		t.Errorf("another's request stored %v", value(admin, "application.name"))
	}
}

package account_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/testkit"
)

func newUser(name string) map[string]any {
	return map[string]any{"username": name, "email": name + "@example.org", "password": "longer than eight"}
}

func TestUsers(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin := s.User(t, "one", "admin")
	r := admin.Do("POST", "/api/v1/users", map[string]any{"username": "  Ann  ", "email": "ann@example.org", "password": "longer than eight",
		"permissions": []string{"tasks:read", "TasksRead", "books-write"}}).Want(201)
	if got := keys(t, r); got != "createdAt email emailVerified id isActive lastLoginAt permissions role updatedAt username" {
		t.Errorf("user has %s", got)
	}
	m := r.Map()
	if m["username"] != "Ann" || m["role"] != "reader" || m["isActive"] != true || m["lastLoginAt"] != nil ||
		!strings.HasSuffix(m["createdAt"].(string), "Z") {
		t.Errorf("created: %v", m)
	}
	if p := m["permissions"].([]any); len(p) != 2 || p[0] != auth.TasksRead || p[1] != auth.BooksWrite {
		t.Errorf("permissions: %v", p)
	}
	at := "/api/v1/users/" + m["id"].(string)
	signIn(t, s.Anonymous(t, "one"), "ann", "longer than eight")

	// Only the sent fields change, with both methods.
	m = admin.Do("PUT", at, `{"role":"maintainer"}`).Want(200).Map()
	if m["role"] != "maintainer" || m["username"] != "Ann" || len(m["permissions"].([]any)) != 2 {
		t.Errorf("after PUT: %v", m)
	}
	m = admin.Do("PATCH", at, `{"permissions":null,"username":"Anna"}`).Want(200).Map()
	if m["role"] != "maintainer" || m["username"] != "Anna" || len(m["permissions"].([]any)) != 0 {
		t.Errorf("after PATCH: %v", m)
	}
	if s.bumped() != 2 {
		t.Errorf("%d bumps after two changes", s.bumped())
	}

	for _, c := range []struct{ method, path, body string }{
		{"POST", "/api/v1/users", `{"username":"ANNA","email":"other@example.org","password":"longer than eight"}`},
		{"POST", "/api/v1/users", `{"username":"other","email":"ANN@example.org","password":"longer than eight"}`},
		{"PATCH", "/api/v1/users/" + admin.ID.String(), `{"username":"anna"}`},
	} {
		if m := admin.Do(c.method, c.path, c.body).Want(409).Map(); m["error"] != "Conflict" {
			t.Errorf("duplicate: %v", m)
		}
	}
	list := admin.Do("GET", "/api/v1/users?role=maintainer&page_size=1", nil).Want(200).Map()
	if list["total"] != 1.0 || list["data"].([]any)[0].(map[string]any)["username"] != "Anna" {
		t.Errorf("list: %v", list)
	}
	admin.Do("GET", "/api/v1/users?role=king", nil).Want(400)
	before := s.bumped()
	admin.Do("DELETE", at, nil).Want(204)
	if s.bumped() != before+2 {
		t.Error("nobody is told that a user was disabled and deleted")
	}
	admin.Do("GET", at, nil).Want(404)
	admin.Do("DELETE", at, nil).Want(404)
	admin.Do("GET", "/api/v1/users/not-an-id", nil).Want(400)
}

// Users are listed by name, whether in capitals or not.
func TestUsersByName(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin := s.User(t, "one", "admin")
	for _, name := range []string{"cid", "Bea", "ann"} {
		admin.Do("POST", "/api/v1/users", newUser(name)).Want(201)
	}
	for page, want := range map[string]string{"1": "ann Bea", "2": "cid"} {
		var list struct{ Data []struct{ Username string } }
		admin.Do("GET", "/api/v1/users?role=reader&pageSize=2&page="+page, nil).Want(200).JSON(&list)
		names := make([]string, len(list.Data))
		for i, u := range list.Data {
			names[i] = u.Username
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("page %s: %s, want %s", page, got, want)
		}
	}
}

func TestUserInput(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin := s.User(t, "one", "admin")
	u := s.User(t, "one", "reader")
	for _, c := range []struct {
		field string
		value any
	}{
		{"username", ""}, {"username", "  "}, {"username", strings.Repeat("x", 65)}, {"username", "a\nb"}, {"username", "a\u202eb"}, {"username", nil},
		{"username", "somebody@else.org"}, {"username", "a:b"},
		{"email", ""}, {"email", "x"}, {"email", "x@y"}, {"email", "X <x@y.zz>"}, {"email", "x@y.zz\r\nBcc: z@y.zz"}, {"email", strings.Repeat("x", 250) + "@y.zz"},
		{"email", nil},
		{"password", "short"}, {"password", strings.Repeat("x", 1025)}, {"password", nil},
		{"role", "king"}, {"permissions", []string{"Everything"}}, {"permissions", "BooksRead"},
	} {
		body := newUser("bob")
		body[c.field] = c.value
		if c.value == nil {
			delete(body, c.field)
		}
		r := admin.Do("POST", "/api/v1/users", body).Want(400)
		field(t, r, c.field)
		r = admin.Do("PATCH", "/api/v1/users/"+u.ID.String(), map[string]any{c.field: c.value}).Want(400)
		field(t, r, c.field)
	}
	field(t, admin.Do("PATCH", "/api/v1/users/"+u.ID.String(), `{"isActive":null}`).Want(400), "isActive")
	old := s.User(t, "one", "reader") // created before a rule existed
	if _, err := s.DB.Owner.Pool().Exec(t.Context(), "update account set username = 'o:d' where id = $1", old.ID); err != nil {
		t.Fatal(err)
	}
	admin.Do("PATCH", "/api/v1/users/"+old.ID.String(), `{"email":"o@d.example"}`).Want(200)
	admin.Do("PATCH", "/api/v1/users/"+old.ID.String(), `{"username":"o:d"}`).Want(200)
	field(t, admin.Do("PATCH", "/api/v1/users/"+old.ID.String(), `{"username":"o:e"}`).Want(400), "username")
	if n := s.count(t, "select count(*) from account where tenant_id = $1", s.One); n != 3 {
		t.Errorf("%d users", n)
	}
	// A user name may be the user's own address.
	body := newUser("bob")
	body["username"] = "Bob@example.org"
	admin.Do("POST", "/api/v1/users", body).Want(201)
	// It may not be another user's, however similar it looks to the own one: for the database, ſ is not s.
	body = newUser("ſam")
	body["username"] = "sam@example.org"
	field(t, admin.Do("POST", "/api/v1/users", body).Want(400), "username")
}

func TestUsersNeedPermission(t *testing.T) {
	t.Parallel()
	s := serve(t)
	u := s.User(t, "one", "reader")
	at := "/api/v1/users/" + u.ID.String()
	ops := []struct {
		method, path string
		body         any
	}{{"GET", "/api/v1/users", nil}, {"POST", "/api/v1/users", newUser("bob")}, {"GET", at, nil},
		{"PUT", at, `{"role":"admin"}`}, {"PATCH", at, `{"password":"longer than eight"}`}, {"DELETE", at, nil}}
	for _, op := range ops {
		s.User(t, "one", "maintainer").Do(op.method, op.path, op.body).Want(403)
		s.Anonymous(t, "one").Do(op.method, op.path, op.body).Want(401)
		if op.path == at {
			s.User(t, "two", "admin").Do(op.method, op.path, op.body).Want(404)
		}
	}
	// A caller without the permission is not told what is wrong with the input.
	u.Do("POST", "/api/v1/users", `{}`).Want(403)
	u.Do("PATCH", at, `{"password":"x"}`).Want(403)
	if list := s.User(t, "two", "admin").Do("GET", "/api/v1/users?role=reader", nil).Want(200).Map(); list["total"] != 0.0 {
		t.Errorf("another tenant's users: %v", list)
	}
	u.Do("GET", "/api/v1/user", nil).Want(200)
}

func TestLastAdmin(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin := s.User(t, "one", "admin")
	manager := s.User(t, "one", "reader", auth.AllPermissions()...) // has all permissions, but is no administrator
	disabled := s.User(t, "one", "admin")
	s.exec(t, "update account set is_active = false where id = $1", disabled.ID)
	at := "/api/v1/users/" + admin.ID.String()
	for _, body := range []string{`{"role":"maintainer"}`, `{"isActive":false}`} {
		for _, c := range []*testkit.Client{admin, manager} {
			if m := c.Do("PATCH", at, body).Want(409).Map(); !strings.Contains(m["message"].(string), "last active administrator") {
				t.Errorf("message: %v", m)
			}
		}
	}
	manager.Do("DELETE", at, nil).Want(409)
	if m := admin.Do("DELETE", at, nil).Want(400).Map(); !strings.Contains(m["message"].(string), "yourself") {
		t.Errorf("message: %v", m)
	}
	manager.Do("DELETE", "/api/v1/users/"+disabled.ID.String(), nil).Want(204)
	s.User(t, "one", "admin")
	admin.Do("PATCH", at, `{"role":"maintainer"}`).Want(200)
}

func TestAdminsRemoveEachOther(t *testing.T) {
	t.Parallel()
	s := serve(t)
	manager := s.User(t, "one", "reader", auth.AllPermissions()...)
	for i := range 5 {
		a, b := s.User(t, "one", "admin"), s.User(t, "one", "admin")
		var group sync.WaitGroup
		var statuses [2]int
		for j, target := range []uuid.UUID{a.ID, b.ID} {
			group.Go(func() {
				if i%2 == 0 {
					statuses[j] = manager.Do("DELETE", "/api/v1/users/"+target.String(), nil).Status
				} else {
					statuses[j] = manager.Do("PATCH", "/api/v1/users/"+target.String(), `{"isActive":false}`).Status
				}
			})
		}
		group.Wait()
		if n := s.count(t, "select count(*) from account where tenant_id = $1 and role = 'admin' and is_active", s.One); n != 1 {
			t.Fatalf("%d administrators are left; answers %v", n, statuses)
		}
		s.exec(t, "delete from account where tenant_id = $1 and role = 'admin'", s.One)
	}
}

func TestNobodyRisesAboveThemselves(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin, reader := s.User(t, "one", "admin"), s.User(t, "one", "reader")
	manager := s.User(t, "one", "reader", auth.UsersRead, auth.UsersWrite, auth.UsersDelete)
	for _, change := range []map[string]any{{"role": "admin"}, {"role": "maintainer"}, {"permissions": []string{"SystemAdmin"}}, {"permissions": []string{"TasksRead"}}} {
		body := newUser("bob")
		for k, v := range change {
			body[k] = v
		}
		manager.Do("POST", "/api/v1/users", body).Want(403)
		manager.Do("PATCH", "/api/v1/users/"+reader.ID.String(), change).Want(403)
		manager.Do("PATCH", "/api/v1/users/"+manager.ID.String(), change).Want(403)
	}
	at := "/api/v1/users/" + admin.ID.String()
	manager.Do("PATCH", at, `{"password":"taking over"}`).Want(403)
	manager.Do("PATCH", at, `{"email":"mine@example.org"}`).Want(403)
	manager.Do("PATCH", at, `{"role":"reader","permissions":[]}`).Want(403)
	manager.Do("DELETE", at, nil).Want(403)
	manager.Do("POST", "/api/v1/users", newUser("bob")).Want(201)
	manager.Do("PATCH", "/api/v1/users/"+reader.ID.String(), `{"permissions":["UsersRead"]}`).Want(200)

	// A user who does not see everything can neither create nor become one who does.
	tag := uuid.New()
	s.exec(t, "insert into sharing_tag (tenant_id, id, name) values ($1, $2, 'hidden')", s.One, tag)
	s.exec(t, "insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) values ($1, gen_random_uuid(), $2, $3, 'deny')", s.One, tag, manager.ID)
	manager.Do("POST", "/api/v1/users", newUser("carl")).Want(403)
	manager.Do("PATCH", "/api/v1/users/"+reader.ID.String(), `{"password":"taking over"}`).Want(403)

	// A key that may only manage users cannot take over its owner's account by a new password.
	key, prefix, hash := auth.NewAPIKey()
	s.exec(t, `insert into api_key (tenant_id, id, account_id, name, prefix, hash, permissions)
		values ($1, gen_random_uuid(), $2, 'k', $3, $4, array['UsersRead', 'UsersWrite'])`, s.One, admin.ID, prefix, hash)
	byKey := with(admin, "X-API-Key", key)
	byKey.Do("GET", at, nil).Want(200)
	byKey.Do("PATCH", at, `{"password":"taking over"}`).Want(403)
	byKey.Do("POST", "/api/v1/users", map[string]any{"username": "eve", "email": "eve@example.org", "password": "longer than eight", "role": "admin"}).Want(403)
}

// After a restore of a backup, two statements of the guides end all sessions of before; those that come later can end
// too. A later change of the password gives the account no generation that a token of before has.
func TestSessionsEndAfterARestore(t *testing.T) {
	t.Parallel()
	s := serve(t)
	u, anyone := s.User(t, "one", "reader"), s.Anonymous(t, "one")
	at := "/api/v1/users/" + u.ID.String()
	l := signIn(t, anyone, u.Name, testkit.Password)
	for _, sql := range []string{"delete from refresh_token", "update account set generation = extract(epoch from now())::integer"} {
		if _, err := s.DB.Owner.Pool().Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	ended := func() {
		t.Helper()
		bearer(anyone, l.AccessToken).Do("GET", "/api/v1/auth/me", nil).Want(401)
		anyone.Do("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": l.RefreshToken}).Want(401)
	}
	ended()
	admin := s.User(t, "one", "admin")
	l = signIn(t, anyone, u.Name, testkit.Password)
	bearer(anyone, l.AccessToken).Do("GET", "/api/v1/auth/me", nil).Want(200)
	admin.Do("PATCH", at, `{"password":"another password"}`).Want(200)
	ended()
}

func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin := s.User(t, "one", "admin")
	anyone := s.Anonymous(t, "one")
	password := testkit.Password
	for _, c := range []struct{ name, body string }{
		{"password", `{"password":"another password"}`},
		{"disabled", `{"isActive":false}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := s.User(t, "one", "reader")
			l := signIn(t, anyone, u.Name, password)
			basic := with(anyone, "Authorization", "Basic "+basicOf(u.Name, password))
			basic.Do("GET", "/api/v1/auth/me", nil).Want(200)
			at := "/api/v1/users/" + u.ID.String()
			admin.Do("PATCH", at, c.body).Want(200)
			bearer(anyone, l.AccessToken).Do("GET", "/api/v1/auth/me", nil).Want(401)
			u.Do("GET", "/api/v1/auth/me", nil).Want(401)
			basic.Do("GET", "/api/v1/auth/me", nil).Want(401)
			anyone.Do("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": l.RefreshToken}).Want(401)
			admin.Do("PATCH", at, `{"isActive":true}`).Want(200) // an ended session stays ended
			bearer(anyone, l.AccessToken).Do("GET", "/api/v1/auth/me", nil).Want(401)
			anyone.Do("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": l.RefreshToken}).Want(401)
			admin.Do("PATCH", at, map[string]any{"password": password}).Want(200)
			basic.Do("GET", "/api/v1/auth/me", nil).Want(200)
			signIn(t, anyone, u.Name, password)
		})
	}
}

package apikey_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/apikey"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

const path = "/api/v1/api-keys"

func serve(t *testing.T) (*testkit.Server, *atomic.Int64) {
	t.Helper()
	var bumps atomic.Int64
	return testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		apikey.Routes(a, d, func(context.Context, uuid.UUID) { bumps.Add(1) })
	}), &bumps
}

type created struct {
	ID          string
	Key         string
	Permissions []string
	ExpiresAt   *time.Time `json:"expires_at"`
}

func create(t *testing.T, c *testkit.Client, body any) created {
	t.Helper()
	var k created
	c.Do("POST", path, body).Want(201).JSON(&k)
	return k
}

func with(c *testkit.Client, header, value string) *testkit.Client {
	other := *c
	other.Header = http.Header{header: {value}}
	return &other
}

// TestUseIsNotedWithoutWaiting serves a request with a key while another one, which has recorded its use, is still
// running.
func TestUseIsNotedWithoutWaiting(t *testing.T) {
	t.Parallel()
	s, _ := serve(t)
	u := s.User(t, "one", "reader")
	k := create(t, u, `{"name":"k"}`)
	long := db.In(t.Context(), &auth.Caller{Tenant: s.One, AccountID: u.ID, KeyHash: auth.HashSecret(k.Key)})
	err := s.DB.App.Tx(long, func(context.Context, pgx.Tx) error {
		with(u, "X-Api-Key", k.Key).Do("GET", path, nil).Want(200)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The use of a key is recorded at most every five minutes: otherwise each request with it would write.
func TestUseIsNotedSeldom(t *testing.T) {
	t.Parallel()
	s, _ := serve(t)
	u := s.User(t, "one", "reader")
	k := create(t, u, `{"name":"k"}`)
	used := func() (at time.Time) {
		t.Helper()
		with(u, "X-API-Key", k.Key).Do("GET", path, nil).Want(200)
		if err := s.DB.Owner.Pool().QueryRow(t.Context(), "select last_used_at from api_key").Scan(&at); err != nil {
			t.Fatal(err)
		}
		return at
	}
	last := used()
	if again := used(); !again.Equal(last) {
		t.Errorf("used at %s, and recorded again at %s", last, again)
	}
	for age, recorded := range map[string]bool{"4 minutes": false, "6 minutes": true} {
		s.DB.Exec(t, "update api_key set last_used_at = now() - $1::interval", age)
		if at := used(); at.Before(last) == recorded {
			t.Errorf("last used %s ago: recorded %v", age, !recorded)
		}
	}
}

func keys(t *testing.T, body []byte) string {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatal(err)
	}
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestKeys(t *testing.T) {
	t.Parallel()
	s, _ := serve(t)
	u := s.User(t, "one", "reader", auth.TasksRead)
	r := u.Do("POST", path, `{"name":" Reader app ","permissions":["books:read","BooksRead","api-keys-read"]}`).Want(201)
	if got := keys(t, r.Body); got != "created_at expires_at id is_active key key_prefix last_used_at name permissions updated_at user_id" {
		t.Errorf("create response has %s", got)
	}
	if kept := r.Header.Get("Cache-Control"); kept != "no-store" {
		t.Errorf("the answer that shows the key may be kept: %q", kept)
	}
	m := r.Map()
	key := m["key"].(string)
	if prefix, ok := auth.APIKeyPrefix(key); !ok || prefix != m["key_prefix"] || m["name"] != "Reader app" || m["expires_at"] != nil ||
		m["user_id"] != u.ID.String() || m["is_active"] != true || m["last_used_at"] != nil || m["updated_at"] != m["created_at"] {
		t.Errorf("created: %v", m)
	}
	if p := m["permissions"].([]any); len(p) != 2 || p[0] != auth.BooksRead || p[1] != auth.APIKeysRead {
		t.Errorf("permissions: %v", p)
	}
	var inDatabase int
	if err := s.DB.Owner.Pool().QueryRow(context.Background(),
		"select count(*) from api_key k where k::text like '%' || $1 || '%'", key[len(key)-32:]).Scan(&inDatabase); err != nil || inDatabase != 0 {
		t.Errorf("the secret is in the database: %d, %v", inDatabase, err)
	}

	// The same key works in every form; it may only read.
	for _, c := range []*testkit.Client{with(u, "X-API-Key", key), with(u, "Authorization", "Bearer "+key)} {
		list := c.Do("GET", path, nil).Want(200)
		if got := list.Map(); got["total"] != 1.0 || strings.Contains(string(list.Body), key) {
			t.Errorf("list: %v", got)
		}
		c.Do("POST", path, `{"name":"x"}`).Want(403)
	}
	at := path + "/" + m["id"].(string)
	got := u.Do("GET", at, nil).Want(200)
	if k := keys(t, got.Body); k != "createdAt expiresAt id isActive keyPrefix lastUsedAt name permissions updatedAt userId" {
		t.Errorf("record has %s", k)
	}
	record := got.Map()
	if record["userId"] != u.ID.String() || record["isActive"] != true || record["expiresAt"] != nil ||
		!strings.HasSuffix(record["lastUsedAt"].(string), "Z") || !strings.HasSuffix(record["createdAt"].(string), "Z") {
		t.Errorf("record: %v", record)
	}

	// Only the sent fields change, with both methods; null clears.
	if m = u.Do("PUT", at, `{"name":"Other","expires_at":"2099-01-02T03:04:05+02:00"}`).Want(200).Map(); m["name"] != "Other" || m["expiresAt"] != "2099-01-02T01:04:05Z" || len(m["permissions"].([]any)) != 2 {
		t.Errorf("after PUT: %v", m)
	}
	if m = u.Do("PATCH", at, `{"expiresAt":null,"permissions":["ApiKeysRead"]}`).Want(200).Map(); m["name"] != "Other" || m["expiresAt"] != nil || len(m["permissions"].([]any)) != 1 {
		t.Errorf("after PATCH: %v", m)
	}
	byKey := with(u, "X-API-Key", key)
	byKey.Do("GET", path, nil).Want(200)
	u.Do("PATCH", at, `{"isActive":false}`).Want(200)
	byKey.Do("GET", path, nil).Want(401)
	u.Do("PATCH", at, `{"isActive":true}`).Want(200)
	byKey.Do("GET", path, nil).Want(200)
	for ends, status := range map[string]int{"now()": 401, "now() + interval '1 hour'": 200} {
		if _, err := s.DB.Owner.Pool().Exec(t.Context(), "update api_key set expires_at = "+ends+" where id = $1", m["id"]); err != nil {
			t.Fatal(err)
		}
		byKey.Do("GET", path, nil).Want(status)
	}
	u.Do("DELETE", at, nil).Want(204)
	byKey.Do("GET", path, nil).Want(401)
	u.Do("DELETE", at, nil).Want(404)

	// Without a list the key may do all that the user may.
	all := create(t, u, `{"name":"all","permissions":null}`)
	if want := append(auth.RolePermissions(auth.Reader), auth.TasksRead); len(all.Permissions) != len(want) {
		t.Errorf("permissions: %v", all.Permissions)
	}
}

// Whoever caches what users may do is told of each change of a key, and of nothing else.
func TestChangesAreAnnounced(t *testing.T) {
	t.Parallel()
	s, bumps := serve(t)
	u := s.User(t, "one", "reader")
	at := path + "/" + create(t, u, `{"name":"k"}`).ID
	for _, c := range []struct {
		method, path string
		body         any
		status       int
		bumps        int64
	}{
		{"POST", path, `{"name":"another"}`, 201, 1}, {"POST", path, `{"name":""}`, 400, 0},
		{"PUT", at, `{"name":"renamed"}`, 200, 1}, {"PATCH", at, `{"isActive":false}`, 200, 1},
		{"PATCH", at, `{"name":""}`, 400, 0}, {"PUT", at, `{"permissions":["SystemAdmin"]}`, 403, 0},
		{"DELETE", at, nil, 204, 1}, {"DELETE", at, nil, 404, 0},
	} {
		before := bumps.Load()
		u.Do(c.method, c.path, c.body).Want(c.status)
		if n := bumps.Load() - before; n != c.bumps {
			t.Errorf("%s %v: %d bumps, want %d", c.method, c.body, n, c.bumps)
		}
	}
}

func TestKeyInput(t *testing.T) {
	t.Parallel()
	s, _ := serve(t)
	u := s.User(t, "one", "reader")
	k := create(t, u, `{"name":"k"}`)
	for _, c := range []struct{ field, body string }{
		{"name", `{"name":" "}`},
		{"name", `{"name":"` + strings.Repeat("x", 101) + `"}`},
		{"name", `{"name":"a\u0000b"}`},
		{"name", `{"name":"a\u202eb"}`},
		{"permissions", `{"name":"k","permissions":["Everything"]}`},
		{"permissions", `{"name":"k","permissions":[]}`},
		{"permissions", `{"name":"k","permissions":"BooksRead"}`},
		{"expiresAt", `{"name":"k","expiresAt":"2020-01-01T00:00:00Z"}`},
		{"expiresAt", `{"name":"k","expiresAt":"soon"}`},
		// In UTC, which responses use, this is a year that JSON cannot represent.
		{"expiresAt", `{"name":"k","expiresAt":"9999-12-31T23:59:59-14:00"}`},
	} {
		for _, do := range [][2]string{{"POST", path}, {"PATCH", path + "/" + k.ID}} {
			var p struct{ Details []struct{ Field string } }
			u.Do(do[0], do[1], c.body).Want(400).JSON(&p)
			if len(p.Details) != 1 || p.Details[0].Field != c.field {
				t.Errorf("%s %s: %v", do[0], c.body, p.Details)
			}
		}
	}
	long := strings.Repeat("x", 63)
	if m := u.Do("POST", path, `{"name":"k","permissions":["`+long+`é"]}`).Want(400).Map(); m["message"] != `permissions: there is no permission "`+long+`…"` {
		t.Errorf("a permission that is cut within a character: %q", m["message"])
	}
	u.Do("POST", path, `{}`).Want(400)
	u.Do("PATCH", path+"/"+k.ID, `{"isActive":null}`).Want(400)
	var made atomic.Int32
	var all sync.WaitGroup
	for range 8 { // concurrent requests cannot exceed the limit
		all.Go(func() {
			for u.Do("POST", path, `{"name":"k"}`).Status == 201 {
				made.Add(1)
			}
		})
	}
	all.Wait()
	if made.Load() != 99 {
		t.Errorf("%d more keys, want 99", made.Load())
	}
	u.Do("POST", path, `{"name":"k"}`).Want(409)
	first := u.Do("GET", path+"?pageSize=1", nil).Want(200).Map()["data"].([]any)[0].(map[string]any)
	if first["id"] != k.ID {
		t.Errorf("the oldest key is not the first of the list: %v", first)
	}
	if m := u.Do("GET", path+"?pageSize=30&page=4", nil).Want(200).Map(); m["total"] != 100.0 || m["totalPages"] != 4.0 || len(m["data"].([]any)) != 10 {
		t.Errorf("page 4: %v", m)
	}
}

func TestNoMoreThanOneself(t *testing.T) {
	t.Parallel()
	s, _ := serve(t)
	u := s.User(t, "one", "maintainer")
	u.Do("POST", path, `{"name":"k","permissions":["SystemAdmin"]}`).Want(403)
	small := create(t, u, `{"name":"small","permissions":["ApiKeysWrite","ApiKeysRead","BooksRead"],"expiresAt":"2099-01-01T00:00:00Z"}`)
	byKey := with(u, "X-API-Key", small.Key)
	byKey.Do("POST", path, `{"name":"more","permissions":["BooksWrite"]}`).Want(403)
	byKey.Do("PATCH", path+"/"+small.ID, `{"permissions":["ApiKeysWrite","BooksWrite"]}`).Want(403)
	byKey.Do("POST", path, `{"name":"longer","expiresAt":null}`).Want(403)
	byKey.Do("POST", path, `{"name":"longer","expiresAt":"2099-01-01T00:00:01Z"}`).Want(403)
	byKey.Do("PATCH", path+"/"+small.ID, `{"expiresAt":null}`).Want(403)
	byKey.Do("PATCH", path+"/"+small.ID, `{"name":"still small"}`).Want(200)
	same := create(t, byKey, `{"name":"same"}`)
	if len(same.Permissions) != 3 || same.ExpiresAt == nil || same.ExpiresAt.Year() != 2099 {
		t.Errorf("made by a key: %+v", same)
	}
	byKey.Do("DELETE", path+"/"+small.ID, nil).Want(403) // no ApiKeysDelete

	// Nor can it restore a more powerful key.
	great := create(t, u, `{"name":"great","permissions":["BooksWrite"],"expiresAt":"2098-01-01T00:00:00Z"}`)
	forever := create(t, u, `{"name":"forever","permissions":["BooksRead"]}`)
	for _, id := range []string{great.ID, forever.ID} {
		u.Do("PATCH", path+"/"+id, `{"isActive":false}`).Want(200)
		byKey.Do("PATCH", path+"/"+id, `{"isActive":true}`).Want(403)
	}
	byKey.Do("PATCH", path+"/"+great.ID, `{"expiresAt":"2098-01-01T00:00:01Z"}`).Want(403)
	byKey.Do("PATCH", path+"/"+great.ID, `{"expiresAt":"2097-01-01T00:00:00Z","isActive":false}`).Want(200)
	byKey.Do("PATCH", path+"/"+forever.ID, `{"isActive":true,"expiresAt":"2099-01-01T00:00:00Z"}`).Want(200)
	u.Do("PATCH", path+"/"+great.ID, `{"isActive":true,"expiresAt":null}`).Want(200)

	// Nor can it grant permissions to a key that outlives it.
	lasting := create(t, u, `{"name":"lasting","permissions":["ApiKeysRead","ApiKeysWrite"]}`)
	byKey.Do("PATCH", path+"/"+lasting.ID, `{"permissions":["ApiKeysRead","BooksRead"]}`).Want(403)
	byKey.Do("PATCH", path+"/"+lasting.ID, `{"permissions":["ApiKeysRead"]}`).Want(200)
	byKey.Do("PATCH", path+"/"+lasting.ID, `{"permissions":["ApiKeysRead","BooksRead"],"expiresAt":"2099-01-01T00:00:00Z"}`).Want(200)

	// A user who loses a permission loses it on every key.
	k := create(t, u, `{"name":"k","permissions":["ApiKeysRead","TasksRead","ApiKeysWrite"]}`)
	if _, err := s.DB.Owner.Pool().Exec(context.Background(), "update account set role = 'reader' where id = $1", u.ID); err != nil {
		t.Fatal(err)
	}
	with(u, "X-API-Key", k.Key).Do("POST", path, `{"name":"x","permissions":["TasksRead"]}`).Want(403)
}

// An owner renames or wakes a key that an administrator is disabling: what the owner may do depends on the key as it is
// then.
func TestKeyIsDisabledDuringAnUpdate(t *testing.T) {
	t.Parallel()
	s, _ := serve(t)
	u := s.User(t, "one", "maintainer")
	k := create(t, u, `{"name":"k","permissions":["BooksWrite"]}`)
	s.DB.Exec(t, "update account set role = 'reader' where id = $1", u.ID) // may not give this permission any more
	for body, want := range map[string]int{`{"isActive":true}`: 403, `{"name":"other"}`: 200} {
		s.DB.Exec(t, "update api_key set is_active = true")
		tx, err := s.DB.Owner.Pool().Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(context.Background())
		if _, err := tx.Exec(t.Context(), "update api_key set is_active = false, updated_at = now()"); err != nil {
			t.Fatal(err)
		}
		done := make(chan *testkit.Response, 1)
		go func() { done <- u.Do("PATCH", path+"/"+k.ID, body) }()
		s.DB.AwaitLock(t)
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		(<-done).Want(want)
		if m := u.Do("GET", path+"/"+k.ID, nil).Want(200).Map(); m["isActive"] != false {
			t.Errorf("%s: the key is active again", body)
		}
	}
	admin := s.User(t, "one", "admin")
	admin.Do("DELETE", path+"/"+k.ID, nil).Want(204)
	u.Do("PATCH", path+"/"+k.ID, `{"name":"gone"}`).Want(404)
}

func TestOthersKeys(t *testing.T) {
	t.Parallel()
	s, _ := serve(t)
	u, admin := s.User(t, "one", "reader"), s.User(t, "one", "admin")
	looks := s.User(t, "one", "reader", auth.UsersRead)
	k := create(t, u, `{"name":"k"}`)
	at := path + "/" + k.ID
	for _, op := range []struct{ method, body string }{{"GET", ""}, {"PUT", `{"name":"x"}`}, {"PATCH", `{"name":"x"}`}, {"DELETE", ""}} {
		var body any
		if op.body != "" {
			body = op.body
		}
		s.User(t, "one", "maintainer").Do(op.method, at, body).Want(404)
		s.User(t, "two", "admin").Do(op.method, at, body).Want(404)
		s.Anonymous(t, "one").Do(op.method, at, body).Want(401)
		if op.method != "GET" {
			looks.Do(op.method, at, body).Want(403)
		}
	}
	s.Anonymous(t, "one").Do("GET", path, nil).Want(401)
	s.Anonymous(t, "one").Do("POST", path, `{"name":"x"}`).Want(401)
	looks.Do("GET", at, nil).Want(200)
	if m := admin.Do("GET", path, nil).Want(200).Map(); m["total"] != 0.0 || len(m["data"].([]any)) != 0 {
		t.Errorf("others' keys in the list: %v", m)
	}
	writes, deletes := s.User(t, "one", "reader", auth.UsersRead, auth.UsersWrite), s.User(t, "one", "reader", auth.UsersRead, auth.UsersDelete)
	writes.Do("PATCH", at, `{"name":"x"}`).Want(200)
	writes.Do("DELETE", at, nil).Want(403)
	deletes.Do("PATCH", at, `{"name":"y"}`).Want(403)
	deletes.Do("DELETE", path+"/"+create(t, u, `{"name":"other"}`).ID, nil).Want(204)
	admin.Do("PATCH", at, `{"isActive":false}`).Want(200)
	with(u, "X-API-Key", k.Key).Do("GET", path, nil).Want(401)
	admin.Do("DELETE", at, nil).Want(204)
	u.Do("GET", at, nil).Want(404)
	none := create(t, admin, `{"name":"none","permissions":["SystemHealth"]}`)
	with(admin, "X-API-Key", none.Key).Do("GET", path, nil).Want(403)
	u.Do("GET", path+"/not-an-id", nil).Want(400)
}

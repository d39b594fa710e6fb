package account_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/account"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/mail"
	"github.com/longbox/longbox/shared/testkit"
)

// server is a test server that records mails and bumps.
type server struct {
	*testkit.Server
	mu    sync.Mutex
	mails []mail.Message
	bumps int

	broken atomic.Bool // no mail can be sent
}

func (s *server) Send(_ context.Context, m mail.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken.Load() {
		return errors.New("no mail can be sent")
	}
	s.mails = append(s.mails, m)
	return nil
}

func (s *server) sent() []mail.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mails)
}

func (s *server) bumped() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bumps
}

func serve(t *testing.T) *server {
	t.Helper()
	s := &server{}
	s.Server = testkit.Serve(t, s.routes(t))
	return s
}

func (s *server) routes(t *testing.T) func(a *httpapi.API, d *db.DB) {
	return func(a *httpapi.API, d *db.DB) {
		bump := func(context.Context, uuid.UUID) { s.mu.Lock(); s.bumps++; s.mu.Unlock() }
		account.Routes(a, d, testkit.Tokens(t), bump, s, "https://{tenant}.example.org/")
	}
}

func (s *server) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	s.DB.Exec(t, sql, args...)
}

func (s *server) count(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	if err := s.DB.Owner.Pool().QueryRow(context.Background(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// lasts checks that the only token in a table expires that long after it was made.
func (s *server) lasts(t *testing.T, table, life string) {
	t.Helper()
	if s.count(t, "select count(*) from "+table) != 1 || s.count(t, "select count(*) from "+table+`
		where expires_at - created_at between $1::interval - interval '1 minute' and $1::interval + interval '1 minute'`, life) != 1 {
		t.Errorf("want one %s that lasts %s", table, life)
	}
}

func (s *server) set(t *testing.T, key, value string) {
	t.Helper()
	s.exec(t, "insert into setting (tenant_id, key, value) values ($1, $2, $3)", s.One, key, value)
}

type login struct {
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
}

// pair is a refreshed session.
type pair struct{ AccessToken, RefreshToken string }

func signIn(t *testing.T, c *testkit.Client, username, password string) login {
	t.Helper()
	var l login
	c.Do("POST", "/api/v1/auth/login", map[string]string{"username": username, "password": password}).Want(200).JSON(&l)
	return l
}

// with returns a client that sends one header.
func with(c *testkit.Client, name, value string) *testkit.Client {
	other := *c
	other.Header = http.Header{name: {value}}
	return &other
}

func bearer(c *testkit.Client, token string) *testkit.Client {
	return with(c, "Authorization", "Bearer "+token)
}

// field checks that the response names the invalid field.
func field(t *testing.T, r *testkit.Response, name string) {
	t.Helper()
	var p struct {
		Error   string
		Details []struct{ Field, Message string }
	}
	r.JSON(&p)
	for _, d := range p.Details {
		if d.Field == name {
			return
		}
	}
	t.Errorf("no detail about %q: %s", name, r.Body)
}

func keys(t *testing.T, r *testkit.Response) string {
	t.Helper()
	var m map[string]json.RawMessage
	r.JSON(&m)
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

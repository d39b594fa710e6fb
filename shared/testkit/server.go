package testkit

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/identity"
	"github.com/longbox/longbox/shared/domain/tenant"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Server serves a slice's routes behind the real middleware, with tenants "one" and "two". The host of a client selects
// the tenant.
type Server struct {
	URL      string
	DB       *Databases
	One, Two uuid.UUID
	Tokens   *auth.Tokens
	API      *httpapi.API
	Identity *identity.Identifier
}

// Password is the password of all users that Server.User creates.
const Password = "Str0ng!password"

var passwordHash = sync.OnceValue(func() string { return auth.HashPassword(Password) })

// Serve starts a server with the routes of the slices under test.
func Serve(t testing.TB, routes ...func(a *httpapi.API, d *db.DB)) *Server {
	t.Helper()
	d := DB(t)
	s := &Server{DB: d, One: d.Tenant(t, "one"), Two: d.Tenant(t, "two"), Tokens: Tokens(t)}
	s.listen(t, routes)
	return s
}

// Beside starts another server on the same database, like a second process.
func (s *Server) Beside(t testing.TB, routes ...func(a *httpapi.API, d *db.DB)) *Server {
	t.Helper()
	other := &Server{DB: s.DB, One: s.One, Two: s.Two, Tokens: s.Tokens}
	other.listen(t, routes)
	return other
}

// At returns the same client for another server.
func (c *Client) At(s *Server) *Client {
	other := *c
	other.base = s.URL
	return &other
}

func (s *Server) listen(t testing.TB, routes []func(a *httpapi.API, d *db.DB)) {
	d := s.DB
	resolver := tenant.NewResolver(d.App, tenant.Config{})
	id := identity.New(d.App, s.Tokens)
	s.Identity = id
	s.API = httpapi.New(httpapi.Config{RateLimit: true}, d.App, nil, httpapi.Identity{
		Tenant: resolver.ByHost, Known: id.Known, Resolve: id.Resolve, Tokens: s.Tokens})
	for _, add := range routes {
		add(s.API, d.App)
	}
	srv := httptest.NewServer(s.API.Router)
	t.Cleanup(srv.Close)
	s.URL = srv.URL
}

// Tokens returns a signer of access tokens with a fixed key.
func Tokens(t testing.TB) *auth.Tokens {
	t.Helper()
	tokens, err := auth.NewTokens(auth.Config{SigningKey: base64.StdEncoding.EncodeToString(make([]byte, 32)), TokenLife: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// In returns a context in a tenant, for reading the effects of a test.
func (s *Server) In(tenant uuid.UUID) context.Context {
	return db.In(context.Background(), db.Tenant(tenant))
}

// User adds a user to a tenant ("one" or "two") and signs in.
func (s *Server) User(t testing.TB, tenantName, role string, extra ...string) *Client {
	t.Helper()
	id, tenantID := uuid.New(), s.One
	if tenantName == "two" {
		tenantID = s.Two
	}
	name := role + "-" + id.String()[:8]
	_, err := s.DB.Owner.Pool().Exec(context.Background(), `insert into account
		(tenant_id, id, username, email, password_hash, role, permissions) values ($1, $2, $3, $4, $5, $6, $7)`,
		tenantID, id, name, name+"@example.org", passwordHash(), role, append([]string{}, extra...))
	if err != nil {
		t.Fatalf("add user: %v", err)
	}
	token, err := s.Tokens.Sign(tenantID, id, 1, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &Client{t: t, base: s.URL, Host: tenantName + ".test", Header: http.Header{"Authorization": {"Bearer " + token}},
		ID: id, Name: name, Tenant: tenantID}
}

// Anonymous returns a client without a credential.
func (s *Server) Anonymous(t testing.TB, tenantName string) *Client {
	return &Client{t: t, base: s.URL, Host: tenantName + ".test", Header: http.Header{}}
}

// Client sends requests as one user.
type Client struct {
	t      testing.TB
	base   string
	Host   string
	Header http.Header
	ID     uuid.UUID
	Name   string
	Tenant uuid.UUID
}

// Response is a response with its whole body.
type Response struct {
	t      testing.TB
	Status int
	Header http.Header
	Body   []byte
}

// Do sends a request; body is nil, a string sent as it is, or a value sent as JSON. An answer that does not come fails
// the test and has the status 0: a goroutine that asks still says so to who waits for it.
func (c *Client) Do(method, path string, body any) *Response {
	c.t.Helper()
	var r io.Reader
	contentType := "application/json"
	switch b := body.(type) {
	case nil:
	case Form:
		r, contentType = b.encode(c.t)
	case string:
		r = bytes.NewBufferString(b)
	default:
		data, err := json.Marshal(b)
		if err != nil {
			c.t.Fatal(err)
		}
		r = bytes.NewReader(data)
	}
	req, err := http.NewRequest(method, c.base+path, r)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header = c.Header.Clone()
	req.Host = c.Host
	if body != nil {
		req.Header.Set("Content-Type", contentType)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		c.t.Errorf("%s %s: %v", method, path, err)
		return &Response{t: c.t}
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Errorf("%s %s: %v", method, path, err)
		return &Response{t: c.t}
	}
	return &Response{t: c.t, Status: res.StatusCode, Header: res.Header, Body: data}
}

// Want fails the test if the status is another one.
func (r *Response) Want(status int) *Response {
	r.t.Helper()
	if r.Status != status {
		r.t.Fatalf("status %d, want %d: %s", r.Status, status, r.Body)
	}
	return r
}

// JSON decodes the body into v.
func (r *Response) JSON(v any) *Response {
	r.t.Helper()
	if err := json.Unmarshal(r.Body, v); err != nil {
		r.t.Fatalf("decode %s: %v", r.Body, err)
	}
	return r
}

// Map returns the body as a JSON object.
func (r *Response) Map() map[string]any {
	r.t.Helper()
	m := map[string]any{}
	r.JSON(&m)
	return m
}

package testkit

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
)

// Key returns a client for the same user with an API key that has only the given permissions.
func (s *Server) Key(t testing.TB, c *Client, permissions ...string) *Client {
	t.Helper()
	key, prefix, hash := auth.NewAPIKey()
	_, err := s.DB.Owner.Pool().Exec(context.Background(), `insert into api_key
		(tenant_id, id, account_id, name, prefix, hash, permissions) values ($1, $2, $3, 'test', $4, $5, $6)`,
		c.Tenant, uuid.New(), c.ID, prefix, hash, append([]string{}, permissions...))
	if err != nil {
		t.Fatalf("add API key: %v", err)
	}
	limited := *c
	limited.t = t
	limited.Header = http.Header{"X-Api-Key": {key}}
	return &limited
}

package health_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/testkit"
)

// limitedKey creates an API key of the user that may only read books.
func limitedKey(t *testing.T, s *testkit.Server, c *testkit.Client) string {
	t.Helper()
	key, prefix, hash := auth.NewAPIKey()
	exec(t, s, "insert into api_key (tenant_id, id, account_id, name, prefix, hash, permissions) values ($1, $2, $3, 'k', $4, $5, '{BooksRead}')",
		c.Tenant, uuid.New(), c.ID, prefix, hash)
	return key
}

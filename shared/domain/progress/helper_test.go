package progress_test

import (
	"context"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/testkit"
)

// callerContext returns a context with the client as caller, as in a request.
func callerContext(c *testkit.Client) context.Context {
	generation := int32(1)
	return db.In(context.Background(), &auth.Caller{Tenant: c.Tenant, AccountID: c.ID, Generation: &generation, Permission: auth.BooksRead})
}

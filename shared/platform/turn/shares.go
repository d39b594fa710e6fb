package turn

import (
	"context"

	"github.com/google/uuid"
)

// Shares gives turns to tenants and, within a tenant, to its accounts, so that no user keeps the others waiting for
// more than a round.
type Shares struct{ Tenants, Accounts Turns }

// Take waits for n turns of the account (uuid.Nil: of none) and of the tenant; give ends them. It returns Unavailable
// if too many of one are waiting. n must not exceed what one may have.
func (s *Shares) Take(ctx context.Context, tenant, account uuid.UUID, n int64) (give func(), err error) {
	if account == uuid.Nil {
		return s.Tenants.Take(ctx, tenant, n)
	}
	own, err := s.Accounts.Take(ctx, account, n)
	if err != nil {
		return nil, err
	}
	common, err := s.Tenants.Take(ctx, tenant, n)
	if err != nil {
		own()
		return nil, err
	}
	return func() { common(); own() }, nil
}

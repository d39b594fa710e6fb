package account

import (
	"context"
	"fmt"

	"github.com/longbox/longbox/shared/platform/db"
)

// ForgetTokens deletes the expired refresh and verification tokens of every tenant. The scheduler calls it, with the
// role that sees all tenants.
func ForgetTokens(ctx context.Context, system *db.DB) (int64, error) {
	refresh, err := system.Pool().Exec(ctx, "delete from refresh_token where expires_at < now()")
	if err != nil {
		return 0, fmt.Errorf("delete expired refresh tokens: %w", err)
	}
	verification, err := system.Pool().Exec(ctx, "delete from verification_token where expires_at < now()")
	if err != nil {
		return refresh.RowsAffected(), fmt.Errorf("delete expired verification tokens: %w", err)
	}
	return refresh.RowsAffected() + verification.RowsAffected(), nil
}

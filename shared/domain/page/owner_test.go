package page

import (
	"testing"

	"github.com/longbox/longbox/shared/domain/operator"
)

// After an exchange of a tenant's keys, and before it is deleted, the operator's clean-up waits until nobody knows the
// old keys, so that no picture is stored after it.
func TestOwnersAreForgottenBeforeTheCleanUp(t *testing.T) {
	t.Parallel()
	if rememberOwner >= operator.DefaultSettle {
		t.Errorf("owners are remembered for %s, the clean-up waits for %s", rememberOwner, operator.DefaultSettle)
	}
}

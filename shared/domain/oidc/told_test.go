package oidc

import (
	"errors"
	"strings"
	"testing"
)

// A provider's response page does not flood the log.
func TestTold(t *testing.T) {
	t.Parallel()
	cause := errors.New("502:\n" + strings.Repeat("ü", 1<<20))
	err := told{cause}
	if text := err.Error(); len(text) > maxTold+3 || !strings.HasPrefix(text, "502:; ü") || strings.ContainsRune(text, '\ufffd') || !errors.Is(err, cause) {
		t.Errorf("%d %.50s", len(text), text)
	}
}

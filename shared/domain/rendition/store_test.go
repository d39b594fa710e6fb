package rendition

import (
	"context"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/format/imaging"
)

// A picture that makes the renderer panic fails only its request, not the process.
func TestAPanicEndsOnlyItsPicture(t *testing.T) {
	t.Parallel()
	var m Maker // without Redis, looking for others panics
	load := func(context.Context) ([]byte, error) { return nil, nil }
	if _, err := m.render(t.Context(), "key", imaging.Spec{}, false, load, func(context.Context) bool { return false }); err == nil || !strings.HasPrefix(err.Error(), "panic: ") {
		t.Errorf("%v, want that it panicked", err)
	}
}

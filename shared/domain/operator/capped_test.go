package operator

import (
	"bytes"
	"testing"

	"github.com/longbox/longbox/shared/platform/fault"
)

func TestExportThatIsTooLarge(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := &capped{&out, 5}
	if _, err := w.Write([]byte("12345")); err != nil {
		t.Error(err)
	}
	if _, err := w.Write([]byte("6")); !fault.Is(err, fault.Conflict) || out.String() != "12345" {
		t.Errorf("%v, written %q", err, out.String())
	}
}

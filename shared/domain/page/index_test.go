package page

import (
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/platform/fault"
)

// The error for a missing page contains the reason.
func TestMissingPageSaysWhy(t *testing.T) {
	t.Parallel()
	broken := "the archive is encrypted"
	for want, i := range map[string]Index{
		"encrypted":         {Error: &broken},
		"not been analysed": {},
		"read it as a file": {Analyzed: true},
		"has 3":             {Analyzed: true, Count: 3},
	} {
		_, err := i.Entry(4)
		if !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", i, err)
		}
	}
}

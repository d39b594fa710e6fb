package fault_test

import (
	"errors"
	"testing"

	"github.com/longbox/longbox/shared/platform/fault"
)

func TestErrorSaysEverythingOnce(t *testing.T) {
	cause := errors.New("page 3 is broken")
	for want, err := range map[string]error{
		"No pack":                         fault.New(fault.Conflict, "No pack"),
		"No pack: page 3 is broken":       fault.Wrap(cause, fault.Conflict, "No pack"),
		"No page: page 3 is broken":       fault.Wrap(cause, fault.Conflict, "No page: %v", cause),
		"page 3 is broken":                fault.Wrap(cause, fault.Conflict, "%v", cause),
		"No page: page 3 is broken: why":  fault.Wrap(errors.New("page 3 is broken: why"), fault.Conflict, "No page: page 3 is broken"),
		"page 3: page 3 is broken, again": fault.Wrap(errors.New("page 3 is broken, again"), fault.Conflict, "page 3"),
	} {
		if got := err.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestLine(t *testing.T) {
	if got := fault.Line(errors.Join(errors.New("one"), nil, errors.New("two\r\n\n  and a half\n"), errors.New("three")).Error()); got != "one; two; and a half; three" {
		t.Errorf("%q", got)
	}
}

package fault_test

import (
	"errors"
	"fmt"
	"strings"
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

func TestGuarded(t *testing.T) {
	out, err := fault.Guarded(func() (any, error) { return 1, nil })()
	if out != 1 || err != nil {
		t.Errorf("%v, %v", out, err)
	}
	if out, err = fault.Guarded(func() (any, error) { panic("lost") })(); out != nil || err == nil || !strings.HasPrefix(err.Error(), "panic: lost\n") {
		t.Errorf("%v, %v", out, err)
	}
}

func TestFromStatus(t *testing.T) {
	for status, want := range map[int]fault.Code{404: fault.NotFound, 429: fault.TooManyRequests, 503: fault.Unavailable, 418: fault.BadRequest, 499: fault.BadRequest,
		200: fault.Internal, 399: fault.Internal, 500: fault.Internal, 599: fault.Internal} {
		if got := fault.FromStatus(status); got != want {
			t.Errorf("%d is %s, want %s", status, got.Word(), want.Word())
		}
	}
}

// Internal errors are hidden from the client.
func TestFrom(t *testing.T) {
	secret := errors.New("password of the database")
	if got := fault.From(fmt.Errorf("wrapped: %w", secret)); got.Code != fault.Internal || strings.Contains(got.Message, "password") || !errors.Is(got, secret) {
		t.Errorf("%+v", got)
	}
	if got := fault.From(fmt.Errorf("wrapped: %w", fault.Missing("Book"))); got.Code != fault.NotFound || got.Message != "Book not found" {
		t.Errorf("%+v", got)
	}
	if fault.InvalidFields(nil) != nil {
		t.Error("no field is at fault")
	}
	if got := fault.From(fault.InvalidFields([]fault.Field{{Field: "a", Message: "is odd"}, {Field: "b", Message: "is even"}})); got.Code != fault.BadRequest || got.Message != "a: is odd" || len(got.Fields) != 2 {
		t.Errorf("%+v", got)
	}
}

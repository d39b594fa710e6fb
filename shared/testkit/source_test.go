package testkit

import (
	"errors"
	"strings"
	"testing"
)

func TestSource(t *testing.T) {
	s := source{setting: "TEST_SOURCE_URL", program: func() string { return "/bin/service" },
		run:   func(program string) (string, error) { return "run " + program, nil },
		image: func() (string, error) { return "container", nil }}
	want := func(address string) {
		t.Helper()
		if got, err := s.address(); err != nil || got != address {
			t.Errorf("%q, %v; want %q", got, err, address)
		}
	}
	t.Setenv("TEST_SOURCE_URL", "http://elsewhere")
	want("http://elsewhere")
	t.Setenv("TEST_SOURCE_URL", "")
	want("run /bin/service")
	s.program = func() string { return "" }
	want("container")
	s.image = func() (string, error) { return "", errors.New("no Docker") }
	if _, err := s.address(); err == nil || !strings.Contains(err.Error(), "TEST_SOURCE_URL") || !strings.Contains(err.Error(), "no Docker") {
		t.Errorf("%v", err)
	}
	s.program, s.run = func() string { return "/bin/broken" }, func(string) (string, error) { return "", errors.New("does not start") }
	if _, err := s.address(); err == nil || !strings.Contains(err.Error(), "does not start") {
		t.Errorf("a broken program must not be hidden by a container: %v", err)
	}
}

package testkit

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/caarlos0/env/v11"
)

// Settings checks that a configuration follows the rules of all: an empty environment gives the same defaults as the
// zero value in code, and 0 and less are refused by name for every number and duration with a default.
func Settings[C interface {
	comparable
	Validate() error
}](t *testing.T, defaults C) {
	t.Helper()
	parse := func(variables map[string]string) C {
		c, err := env.ParseAsWithOptions[C](env.Options{Environment: variables})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	var zero C
	for what, c := range map[string]C{"the zero value": zero, "the defaults": defaults} {
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got := parse(map[string]string{}); got != defaults {
		t.Errorf("an empty environment gives %+v, the defaults are %+v", got, defaults)
	}
	settings, err := env.GetFieldParams(&zero)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range settings {
		wrong := []string{"0", "-1"}
		if _, err := time.ParseDuration(s.DefaultValue); err == nil {
			wrong = []string{"0s", "-1s"}
		}
		for _, value := range wrong {
			if s.DefaultValue == "" {
				continue
			}
			if err := parse(map[string]string{s.Key: value}).Validate(); err == nil || !strings.Contains(err.Error(), s.Key) {
				t.Errorf("%s=%s: %v, want an error that names it", s.Key, value, err)
			}
		}
	}
}

// Bound holds valid values of a setting, including the first and the last, and invalid ones.
type Bound struct{ In, Out []string }

// Bounds checks the bounds of settings: with the environment, each valid value is accepted, and each invalid one gives
// an error that starts with the setting's name.
func Bounds[C interface{ Validate() error }](t *testing.T, environment map[string]string, settings map[string]Bound) {
	t.Helper()
	validate := func(name, value string) error {
		variables := maps.Clone(environment)
		if variables == nil {
			variables = map[string]string{}
		}
		variables[name] = value
		c, err := env.ParseAsWithOptions[C](env.Options{Environment: variables})
		if err != nil {
			t.Fatal(err)
		}
		return c.Validate()
	}
	for name, b := range settings {
		for _, value := range b.In {
			if err := validate(name, value); err != nil {
				t.Errorf("%s=%s: %v", name, value, err)
			}
		}
		for _, value := range b.Out {
			if err := validate(name, value); err == nil || !strings.HasPrefix(err.Error(), name+":") {
				t.Errorf("%s=%s: %v, want an error that begins with the name", name, value, err)
			}
		}
	}
}

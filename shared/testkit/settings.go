package testkit

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/caarlos0/env/v11"
)

// Settings holds a configuration to what is promised of all: an empty environment gives the defaults, those of the code
// where nothing is set, and of every number and duration with a default 0 and less are refused by name.
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

// Bound is what a setting may be, with the first and the last values that it may have, and what it may not.
type Bound struct{ In, Out []string }

// Bounds holds a configuration to the bounds of its settings: beside the environment, each value in a setting's bounds
// is accepted, and each outside is refused by an error that begins with the setting's name.
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

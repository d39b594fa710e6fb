package app

import (
	"strings"
	"testing"
)

func TestLogLevel(t *testing.T) {
	for level, wrong := range map[string]bool{"debug": false, "WARN": false, "": false, "loud": true} {
		t.Setenv("LOG_LEVEL", level)
		_, err := Parse[struct{}]()
		if err != nil != wrong || wrong && !strings.Contains(err.Error(), "LOG_LEVEL") {
			t.Errorf("%q: %v", level, err)
		}
	}
}

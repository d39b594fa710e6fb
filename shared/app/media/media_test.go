package media

import (
	"testing"
	"time"
)

// In Lambda a request waits for a cover longer than a page may take to draw, and is answered before CloudFront and the
// function render end it after a minute.
func TestCoverPatience(t *testing.T) {
	t.Setenv("AWS_LAMBDA_RUNTIME_API", "")
	if d := coverPatience(); d != 0 {
		t.Errorf("%s on a machine", d)
	}
	t.Setenv("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:1")
	if d := coverPatience(); d < 30*time.Second || d > 50*time.Second {
		t.Errorf("%s in Lambda", d)
	}
}

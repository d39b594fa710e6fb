package plugin_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/app/plugin"
	"github.com/longbox/longbox/shared/platform/plug/host"
)

func newFunction(t *testing.T, token string) *plugin.Function {
	t.Helper()
	f, err := plugin.New(plugin.Config{Host: host.Config{Data: t.TempDir(), Processes: 1, Idle: time.Minute}, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Host.Close)
	return f
}

// Only callers with the token may run programs.
func TestCallsNeedTheToken(t *testing.T) {
	t.Parallel()
	h, err := newFunction(t, "s3cret").Handler()
	if err != nil {
		t.Fatal(err)
	}
	for authorization, want := range map[string]int{"": 401, "s3cret": 401, "Bearer ": 401, "Bearer wrong!": 401, "Bearer s3cre": 401,
		"Bearer s3cret!": 401, "Bearer s3cret": 200} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/call", strings.NewReader(`{"folders": {}}`))
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%q: %d %s, want %d", authorization, w.Code, w.Body, want)
		}
	}
}

// Without a token, nothing is served.
func TestTheTokenIsRequired(t *testing.T) {
	t.Parallel()
	if _, err := newFunction(t, "").Handler(); err == nil {
		t.Error("everybody may call")
	}
}

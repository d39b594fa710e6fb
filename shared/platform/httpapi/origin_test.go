package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/platform/httpapi"
)

func TestOriginGuard(t *testing.T) {
	t.Parallel()
	first, second := strings.Repeat("a", 32), strings.Repeat("b", 40)
	for _, c := range []struct {
		secrets []string
		shown   string
		want    int
	}{
		{nil, "", 200}, {nil, "x", 200},
		{[]string{first}, "", 403}, {[]string{first}, first[1:], 403}, {[]string{first}, first, 200},
		{[]string{first, second}, second, 200}, {[]string{first, second}, first, 200}, {[]string{first, second}, first + "," + second, 403},
	} {
		h := httpapi.Origin{Secrets: c.secrets}.Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c.secrets != nil && r.Header.Get(httpapi.OriginHeader) != "" {
				t.Error("the secret goes on")
			}
		}))
		r := httptest.NewRequest("GET", "/api/v1/auth/me", nil)
		if c.shown != "" {
			r.Header.Set(httpapi.OriginHeader, c.shown)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.want || (c.want == 403 && !strings.Contains(w.Body.String(), `"error":"Forbidden"`)) {
			t.Errorf("%q with %q: %d %s", c.secrets, c.shown, w.Code, w.Body)
		}
	}
	for path, want := range map[string]int{"/health": 200, "/health/": 403, "/api/v1/health": 403} { // probes have no secret
		w := httptest.NewRecorder()
		httpapi.Origin{Secrets: []string{first}}.Guard(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if passed := w.Code == http.StatusNotFound; passed != (want == 200) {
			t.Errorf("%s without a secret: %d", path, w.Code)
		}
	}
	if err := (httpapi.Origin{Secrets: []string{first, second}}).Validate(); err != nil {
		t.Error(err)
	}
	for _, bad := range [][]string{{"short"}, {first[1:]}, {first, first, first}} {
		if err := (httpapi.Origin{Secrets: bad}).Validate(); err == nil || !strings.HasPrefix(err.Error(), "ORIGIN_SECRET") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

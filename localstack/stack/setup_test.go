package stack

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// If somebody sets another administrator or another password at a later start, Longbox does not say that it is used.
func TestSignsIn(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch user, password, _ := r.BasicAuth(); {
		case user == "busy":
			w.WriteHeader(http.StatusServiceUnavailable)
		case user == "waits":
			w.WriteHeader(http.StatusForbidden)
		case user != "ann" || password != "a:b c":
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer api.Close()
	for admin, want := range map[string]string{
		"ann:a:b c": "true <nil>", "ann:other": "false <nil>", "bob:a:b c": "false <nil>", "waits:x": "false <nil>",
		"busy:x": "false " + api.URL + " answers 503 Service Unavailable",
	} {
		can, err := signsIn(t.Context(), api.URL, admin)
		if got := fmt.Sprint(can, " ", err); got != want {
			t.Errorf("%s: %s, want %s", admin, got, want)
		}
	}
}

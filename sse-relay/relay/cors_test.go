package relay

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// A web client of another host reads streams, and why it is refused, where its origin is let in.
func TestWebClientsOfOtherHosts(t *testing.T) {
	s := newStage(t, func(c *Config) { c.CORSOrigins = []string{"https://read.example"} })
	token, _ := s.account(uuid.New())
	for _, c := range []struct {
		method, origin, authorization string
		status                        int
		allowed                       string
	}{
		{"OPTIONS", "https://read.example", "", 204, "https://read.example"},
		{"GET", "https://read.example", token, 200, "https://read.example"},
		{"GET", "https://read.example", "Authorization: Bearer unknown", 401, "https://read.example"},
		{"GET", "https://other.example", token, 200, ""},
		{"OPTIONS", "https://other.example", "", 405, ""},
		{"GET", "", token, 200, ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+s.addr+"/api/v1/events/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", c.origin)
		if c.method == "OPTIONS" {
			r.Header.Set("Access-Control-Request-Method", "GET")
		}
		if _, credential, ok := strings.Cut(c.authorization, ": "); ok {
			r.Header.Set("Authorization", credential)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		status, got := answer.StatusCode, answer.Header
		if status != c.status || got.Get("Access-Control-Allow-Origin") != c.allowed {
			t.Errorf("%s from %q: %d %v", c.method, c.origin, status, got)
		}
		if got.Get("Vary") != "Origin" || c.allowed != "" && got.Get("Access-Control-Allow-Credentials") != "true" {
			t.Errorf("%s from %q: %v", c.method, c.origin, got)
		}
		if status == 200 && got.Get("Content-Type") != "text/event-stream" {
			t.Errorf("%s from %q: %v", c.method, c.origin, got)
		}
	}
}

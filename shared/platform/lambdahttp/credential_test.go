package lambdahttp

import (
	"net/http"
	"testing"
)

func TestClientsOwnCredential(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ sent, forwarded, want string }{
		{"Bearer a", "", "Bearer a"},
		{"AWS4-HMAC-SHA256 Credential=x", "", ""},
		{"AWS4-HMAC-SHA256 Credential=x", "Bearer b", "Bearer b"},
		{"", "Basic c", "Basic c"},
		{"", "", ""},
	} {
		h := http.Header{}
		if c.sent != "" {
			h.Set("Authorization", c.sent)
		}
		if c.forwarded != "" {
			h.Set("X-Forwarded-Authorization", c.forwarded)
		}
		got := clientsOwn(h)
		if got.Get("Authorization") != c.want || got.Get("X-Forwarded-Authorization") != "" {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

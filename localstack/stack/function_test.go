package stack

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/longbox/longbox/localstack/front"
)

// The front answers at the address that is printed.
func TestPublicURL(t *testing.T) {
	t.Parallel()
	for bind, host := range map[string]string{"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "127.0.0.1": "127.0.0.1", "127.0.0.2": "127.0.0.2", "::1": "[::1]", "localhost": "localhost"} {
		f, err := front.Listen(bind, 0)
		if err != nil {
			if bind == "::1" {
				continue // this machine has no IPv6
			}
			t.Fatal(err)
		}
		s := &Stack{config: Config{Bind: bind}, front: f}
		if want := fmt.Sprintf("http://%s:%d", host, f.Port()); s.publicURL() != want {
			t.Errorf("BIND=%s: %s, want %s", bind, s.publicURL(), want)
		}
		if res, err := http.Get(s.publicURL()); err != nil {
			t.Errorf("BIND=%s: %v", bind, err)
		} else {
			res.Body.Close()
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := (&Stack{config: Config{PublicURL: "https://books.example.org"}}).publicURL(); got != "https://books.example.org" {
		t.Errorf("PUBLIC_URL: %s", got)
	}
}

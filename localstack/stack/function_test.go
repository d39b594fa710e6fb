package stack

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/longbox/longbox/localstack/front"
	"github.com/longbox/longbox/localstack/supervise"
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

// Links in mail lead a reader to the reader's own device if the address comes from BIND and is of this machine.
func TestSaysWhereLinksInMailLead(t *testing.T) {
	t.Parallel()
	f, err := front.Listen("127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	here := fmt.Sprintf("Longbox: links in mail will lead to http://127.0.0.1:%d, each reader's own device: set PUBLIC_URL ", f.Port())
	for _, c := range []struct{ smtp, bind, public, want string }{
		{"mail.example.org", "", "", here},
		{"mail.example.org", "0.0.0.0", "", here},
		{"mail.example.org", "::", "", here},
		{"mail.example.org", "127.0.0.1", "", here},
		{"mail.example.org", "localhost", "", fmt.Sprintf("Longbox: links in mail will lead to http://localhost:%d, each reader's own device: set PUBLIC_URL ", f.Port())},
		{"mail.example.org", "192.168.1.5", "", ""},
		{"mail.example.org", "nas.lan", "", ""},
		{"mail.example.org", "0.0.0.0", "http://nas.lan:8080", ""},
		{"", "0.0.0.0", "", ""},
	} {
		var out bytes.Buffer
		s := &Stack{config: Config{Bind: c.bind, PublicURL: c.public}, front: f, console: supervise.NewConsole(&out)}
		s.sayMailLinks(c.smtp)
		s.console.Flush()
		if said := out.String(); c.want == "" && said != "" || !strings.HasPrefix(said, c.want) {
			t.Errorf("SMTP_HOST=%s BIND=%s PUBLIC_URL=%s: said %q, want %q", c.smtp, c.bind, c.public, said, c.want)
		}
	}
}

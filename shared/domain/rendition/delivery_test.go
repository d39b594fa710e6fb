package rendition

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/domain/page"
	"github.com/longbox/longbox/shared/platform/cdn"
)

// A browser stops using a CDN address before it expires.
func TestAddressesAreNotKeptToTheirEnd(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	var now time.Time
	clock := func() time.Time { return now }
	signer, err := cdn.NewSigner(cdn.Config{Delivery: cdn.Redirect, URL: "https://images.example.org", KeyID: "K2JCJMDEHXQW5F",
		PrivateKey: string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))}, clock)
	if err != nil {
		t.Fatal(err)
	}
	d := redirect{signer, clock}
	hour := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, after := range []time.Duration{0, 30 * time.Minute, time.Hour - time.Second} {
		now = hour.Add(after)
		_, expires, err := signer.Object("/a")
		if err != nil {
			t.Fatal(err)
		}
		for _, most := range []time.Duration{maxKeep, brief} {
			w := httptest.NewRecorder()
			if err := d.to(w, "a", most); err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf("private, max-age=%d", int(min(expires.Sub(now)-time.Minute, most)/time.Second))
			if got := w.Header().Get("Cache-Control"); got != want {
				t.Errorf("%s after the hour, at most %s: %q, want %q", after, most, got, want)
			}
		}
	}
}

// A browser keeps pages for a year, so a book with another file has other addresses.
func TestAddressesOfAnotherFile(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, print := range []string{"", "short", "0123456789abcdef", "fedcba9876543210"} {
		a, err := direct{}.address(t.Context(), &page.Index{Fingerprint: print})
		if err != nil {
			t.Fatal(err)
		}
		for _, template := range []string{a.Original, a.Resized} {
			if u, err := url.Parse(template); err != nil || seen[template] || !strings.HasSuffix(u.Path, "/pages/{pageNumber}") || len(u.Query().Get("v")) > 8 {
				t.Errorf("%q: %s, %v; before: %t", print, template, err, seen[template])
			}
			seen[template] = true
		}
	}
}

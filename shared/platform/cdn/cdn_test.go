package cdn_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"sync"
	"testing"
	"time"

	edge "github.com/longbox/longbox/localstack/cdn"
	"github.com/longbox/longbox/shared/platform/cdn"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

func pemOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func pkcs8(t *testing.T, key any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pemOf("PRIVATE KEY", der)
}

func good() cdn.Config {
	return cdn.Config{Delivery: cdn.Redirect, URL: "https://images.example.org", KeyID: "K2JCJMDEHXQW5F",
		PrivateKey: pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey())), Origin: httpapi.Origin{Secrets: []string{strings.Repeat("s", 32)}}}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pem1 := good().PrivateKey
	for name, c := range map[string]struct {
		change func(c *cdn.Config)
		want   string // what the error names; "" is none
	}{
		"as it is":           {func(*cdn.Config) {}, ""},
		"pkcs8":              {func(c *cdn.Config) { c.PrivateKey = pkcs8(t, rsaKey()) }, ""},
		"one line":           {func(c *cdn.Config) { c.PrivateKey = strings.ReplaceAll(pem1, "\n", `\n`) }, ""},
		"with a slash":       {func(c *cdn.Config) { c.URL += "/" }, ""},
		"two secrets":        {func(c *cdn.Config) { c.Origin.Secrets = append(c.Origin.Secrets, strings.Repeat("t", 40)) }, ""},
		"direct needs none":  {func(c *cdn.Config) { *c = cdn.Config{Delivery: "direct"} }, ""},
		"nothing is direct":  {func(c *cdn.Config) { *c = cdn.Config{} }, ""},
		"unknown delivery":   {func(c *cdn.Config) { c.Delivery = "cdn" }, "DELIVERY"},
		"no url":             {func(c *cdn.Config) { c.URL = "" }, "CDN_URL"},
		"no scheme":          {func(c *cdn.Config) { c.URL = "images.example.org" }, "CDN_URL"},
		"a path":             {func(c *cdn.Config) { c.URL += "/a" }, "CDN_URL"},
		"a query":            {func(c *cdn.Config) { c.URL += "?a=b" }, "CDN_URL"},
		"a fragment":         {func(c *cdn.Config) { c.URL += "#a" }, "CDN_URL"},
		"a user":             {func(c *cdn.Config) { c.URL = "https://a@images.example.org" }, "CDN_URL"},
		"another scheme":     {func(c *cdn.Config) { c.URL = "ftp://images.example.org" }, "CDN_URL"},
		"no host":            {func(c *cdn.Config) { c.URL = "https:///a" }, "CDN_URL"},
		"a wildcard":         {func(c *cdn.Config) { c.URL = "https://*.example.org" }, "CDN_URL"},
		"no key id":          {func(c *cdn.Config) { c.KeyID = "" }, "CDN_KEY_ID"},
		"key id with a sign": {func(c *cdn.Config) { c.KeyID = "K&x=1" }, "CDN_KEY_ID"},
		"no key":             {func(c *cdn.Config) { c.PrivateKey = " " }, "CDN_PRIVATE_KEY"},
		"no pem":             {func(c *cdn.Config) { c.PrivateKey = "MIIE" }, "CDN_PRIVATE_KEY"},
		"cut":                {func(c *cdn.Config) { c.PrivateKey = pemOf("RSA PRIVATE KEY", []byte("MIIE")) }, "CDN_PRIVATE_KEY"},
		"public": {func(c *cdn.Config) {
			c.PrivateKey = pemOf("PUBLIC KEY", x509.MarshalPKCS1PublicKey(&rsaKey().PublicKey))
		}, "CDN_PRIVATE_KEY"},
		"too small":    {func(c *cdn.Config) { c.PrivateKey = pkcs8(t, small) }, "1024"},
		"not RSA":      {func(c *cdn.Config) { c.PrivateKey = pkcs8(t, curve) }, "RSA"},
		"no secret":    {func(c *cdn.Config) { c.Origin.Secrets = nil }, "ORIGIN_SECRET"},
		"short secret": {func(c *cdn.Config) { c.Origin.Secrets = []string{"short"} }, "ORIGIN_SECRET"},
	} {
		cfg := good()
		c.change(&cfg)
		err := cfg.Validate()
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		case err != nil && (strings.Contains(err.Error(), "MII") || strings.Contains(err.Error(), "BEGIN RSA")):
			t.Errorf("%s: the error tells the key: %v", name, err)
		}
	}
}

// A URL is the same for its hour, valid for 15 to 75 minutes, and accepted by an independent check.
func TestAddressesKeepForAnHour(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	now := at
	s, err := cdn.NewSigner(good(), func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	check := edge.Verifier{Scheme: "https", Keys: map[string]*rsa.PublicKey{good().KeyID: &rsaKey().PublicKey}, Now: func() time.Time { return now }}
	verify := func(url string) error { return check.Verify("images.example.org", strings.TrimPrefix(url, good().URL)) }
	object := func() (string, time.Time) {
		u, end, err := s.Object("/a/page/b/c/1/original")
		if err != nil {
			t.Fatal(err)
		}
		return u, end
	}
	tree := func() string {
		u, _, err := s.Tree("/a/page/b/c", "{pageNumber}/original")
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	first, end := object()
	folder := tree()
	if want := at.Add(75 * time.Minute); !end.Equal(want) {
		t.Errorf("ends %s, want %s", end, want)
	}
	now = at.Add(time.Hour - time.Second)
	if again, _ := object(); again != first || tree() != folder {
		t.Error("another address within the hour")
	}
	for _, u := range []string{first, strings.Replace(folder, "{pageNumber}", "17", 1)} {
		if err := verify(u); err != nil {
			t.Errorf("%s: %v", u, err)
		}
		for _, bad := range []string{strings.Replace(u, "/c/", "/d/", 1), strings.Replace(u, "/b/", "/b/../", 1), u + "x"} {
			if verify(bad) == nil {
				t.Errorf("accepted: %s", bad)
			}
		}
	}
	now = at.Add(time.Hour)
	if next, _ := object(); next == first || tree() == folder {
		t.Error("the same address in the next hour")
	}
	now = end
	if verify(first) == nil || verify(strings.Replace(folder, "{pageNumber}", "1", 1)) == nil {
		t.Error("accepted after its end")
	}
	for _, path := range []string{"", "a", "/a*", "/a?b", "/a b", "/a%2f", `/a\b`} {
		if u, _, err := s.Object(path); err == nil {
			t.Errorf("%q was signed: %s", path, u)
		}
	}
}

func TestManyAddresses(t *testing.T) {
	t.Parallel()
	s, err := cdn.NewSigner(good(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 20 {
				if _, _, err := s.Object("/" + strings.Repeat("x", n+1)); err != nil {
					t.Errorf("%d: %v", i, err)
				}
			}
		})
	}
	all.Wait()
}

func BenchmarkSign(b *testing.B) {
	for name, fresh := range map[string]bool{"signed": true, "remembered": false} {
		b.Run(name, func(b *testing.B) {
			now := time.Now()
			s, err := cdn.NewSigner(good(), func() time.Time { return now })
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if fresh {
					now = now.Add(time.Hour)
				}
				if _, _, err := s.Object("/a"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

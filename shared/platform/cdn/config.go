// Package cdn signs URLs of the content delivery network with CloudFront's scheme, RSA over SHA-1. The edge checks the
// signature on every request, also on cache hits. A URL stays the same for an hour, so that browser caches work, and
// expires at most 75 minutes after it was issued.
package cdn

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/longbox/longbox/shared/lazyregexp"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Ways to deliver images.
const (
	Direct   = "direct"   // through the media function
	Redirect = "redirect" // from the CDN, with a signed URL
)

// Config sets how images are delivered.
type Config struct {
	Delivery   string `env:"DELIVERY" envDefault:"direct"`
	URL        string `env:"CDN_URL"`
	KeyID      string `env:"CDN_KEY_ID"`
	PrivateKey string `env:"CDN_PRIVATE_KEY"` // PEM
	Origin     httpapi.Origin
}

var keyID = lazyregexp.New(`^[A-Za-z0-9]{1,64}$`)

// Validate returns an error that names a missing or invalid setting. With DELIVERY=direct the other settings are
// ignored.
func (c Config) Validate() error {
	switch c.Delivery {
	case "", Direct:
		return nil
	case Redirect:
	default:
		return fmt.Errorf("DELIVERY: must be %s or %s, is %q", Direct, Redirect, c.Delivery)
	}
	if _, err := c.address(); err != nil {
		return err
	}
	if !keyID.MatchString(c.KeyID) {
		return fmt.Errorf("CDN_KEY_ID: must be the id of the public key at the CDN (letters and digits), is %q", c.KeyID)
	}
	if _, err := c.key(); err != nil {
		return err
	}
	if len(c.Origin.Secrets) == 0 {
		return errors.New("ORIGIN_SECRET: required with DELIVERY=redirect: the secret that the CDN sends to the media function")
	}
	return c.Origin.Validate()
}

// address returns the CDN's scheme and host, without a trailing slash.
func (c Config) address() (string, error) {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http"):
		return "", fmt.Errorf("CDN_URL: must be an address such as https://images.example.org, is %q", c.URL)
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return "", fmt.Errorf("CDN_URL: must be only a scheme and a host, without path, query or user, is %q", c.URL)
	case strings.ContainsAny(u.Host, "*?"): // wildcards in a signed policy
		return "", fmt.Errorf("CDN_URL: the host must not contain * or ?, is %q", u.Host)
	}
	return u.Scheme + "://" + u.Host, nil
}

// PublicKey returns the key with which the CDN checks signatures.
func (c Config) PublicKey() (*rsa.PublicKey, error) {
	k, err := c.key()
	if err != nil {
		return nil, err
	}
	return &k.PublicKey, nil
}

// key parses the private key. Its errors never contain the key.
func (c Config) key() (*rsa.PrivateKey, error) {
	if strings.TrimSpace(c.PrivateKey) == "" {
		return nil, errors.New("CDN_PRIVATE_KEY: required with DELIVERY=redirect: an RSA key in PEM")
	}
	// Secret stores with one-line values write line ends as \n.
	block, _ := pem.Decode([]byte(strings.ReplaceAll(c.PrivateKey, `\n`, "\n")))
	if block == nil {
		return nil, errors.New(`CDN_PRIVATE_KEY: is not PEM: it must begin with -----BEGIN and keep its lines (or \n in their place)`)
	}
	var k any
	var err error
	switch block.Type {
	case "RSA PRIVATE KEY":
		k, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "PRIVATE KEY":
		k, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	default:
		return nil, fmt.Errorf("CDN_PRIVATE_KEY: is a %q; it must be a PRIVATE KEY (PKCS #8) or an RSA PRIVATE KEY (PKCS #1), without a password", block.Type)
	}
	if err != nil {
		return nil, errors.New("CDN_PRIVATE_KEY: the PEM block cannot be read as a private key; it may be incomplete")
	}
	r, ok := k.(*rsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("CDN_PRIVATE_KEY: must be an RSA key, is a %T", k)
	}
	if n := r.N.BitLen(); n != 2048 {
		return nil, fmt.Errorf("CDN_PRIVATE_KEY: must have 2048 bits, as CloudFront requires, has %d", n)
	}
	return r, nil
}

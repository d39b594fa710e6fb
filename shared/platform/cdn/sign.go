package cdn

import (
	"crypto/rsa"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/cloudfront/sign"
)

const (
	period    = time.Hour
	grace     = 15 * time.Minute // minimum validity of a new URL
	maxSigned = 10_000           // cached URLs of one hour, about 700 bytes each
)

// Signer signs URLs and caches them for their hour: a signature takes a millisecond.
type Signer struct {
	base  string
	keyID string
	key   *rsa.PrivateKey
	urls  *sign.URLSigner
	now   func() time.Time

	mu      sync.Mutex
	expires time.Time // of all cached URLs
	signed  map[string]string
}

// NewSigner makes a signer from a validated Config. now is time.Now, except in tests.
func NewSigner(c Config, now func() time.Time) (*Signer, error) {
	base, err := c.address()
	if err != nil {
		return nil, err
	}
	key, err := c.key()
	if err != nil {
		return nil, err
	}
	return &Signer{base: base, keyID: c.KeyID, key: key, urls: sign.NewURLSigner(c.KeyID, key), now: now, signed: map[string]string{}}, nil
}

// Object returns the URL of one object and its expiry. path begins with a slash.
func (s *Signer) Object(path string) (url string, expires time.Time, err error) {
	return s.remember(path, func(expires time.Time) (string, error) { return s.urls.Sign(s.base+path, expires) })
}

// Tree returns a URL for everything below a folder, including path/, and its expiry. rest is appended to the path after
// signing. What a client puts in its place must stay below the folder.
//
// The policy's wildcard stands at the end only, because it matches any characters, even a query. A wildcard before the
// folder's name would allow the name in the query of a URL for another tenant.
func (s *Signer) Tree(folder, rest string) (url string, expires time.Time, err error) {
	query, expires, err := s.remember(folder+"/*", func(expires time.Time) (string, error) {
		p := sign.NewCannedPolicy(s.base+folder+"/*", expires) // one statement with an end
		signature, policy, err := p.Sign(s.key)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("?Policy=%s&Signature=%s&Key-Pair-Id=%s", policy, signature, s.keyID), nil
	})
	if err != nil {
		return "", time.Time{}, err
	}
	return s.base + folder + "/" + rest + query, expires, nil
}

func (s *Signer) remember(path string, make func(expires time.Time) (string, error)) (string, time.Time, error) {
	if !strings.HasPrefix(path, "/") || strings.ContainsAny(strings.TrimSuffix(path, "/*"), "*?#%\\ ") {
		return "", time.Time{}, fmt.Errorf("cdn: the path %q cannot be signed", path)
	}
	expires := s.now().Truncate(period).Add(period + grace)
	s.mu.Lock()
	if !s.expires.Equal(expires) || len(s.signed) >= maxSigned {
		clear(s.signed)
		s.expires = expires
	}
	known, ok := s.signed[path]
	s.mu.Unlock()
	if ok {
		return known, expires, nil
	}
	made, err := make(expires)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("cdn: sign: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expires.Equal(expires) {
		s.signed[path] = made
	}
	return made, expires, nil
}

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
	grace     = 15 * time.Minute // the shortest that a new address is good for
	maxSigned = 10_000           // remembered addresses of one hour, of about 700 bytes
)

// Signer signs addresses and remembers them for their hour: a signature costs a millisecond.
type Signer struct {
	base  string
	keyID string
	key   *rsa.PrivateKey
	urls  *sign.URLSigner
	now   func() time.Time

	mu      sync.Mutex
	expires time.Time // of all that is remembered
	signed  map[string]string
}

// NewSigner makes a signer of a Config that was validated. now is time.Now, save in tests.
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

// Object is the address of one object, and when it ends. path begins with a slash.
func (s *Signer) Object(path string) (url string, expires time.Time, err error) {
	return s.remember(path, func(expires time.Time) (string, error) { return s.urls.Sign(s.base+path, expires) })
}

// Tree is an address for everything below a folder, path/ included, and when it ends. rest is appended to the path
// after signing: what a client puts in place of it must stay below the folder.
//
// The wildcard of the policy stands at its end and nowhere else: it matches any characters, a query too, so that
// one in front of the folder's name would let the name be given in the query of another tenant's address.
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
		return "", time.Time{}, fmt.Errorf("cdn: %q is no path that can be signed", path)
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

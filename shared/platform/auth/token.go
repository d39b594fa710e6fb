package auth

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
)

// Config sets how access tokens are signed and how long they are valid.
type Config struct {
	SigningKey string        `env:"AUTH_SIGNING_KEY,required"` // base64 of a 32-byte Ed25519 seed
	Previous   []string      `env:"AUTH_PREVIOUS_KEYS"`        // former signing keys, whose tokens are still accepted
	TokenLife  time.Duration `env:"AUTH_TOKEN_LIFE" envDefault:"24h"`
}

// maxPrevious limits the keys that are tried for a token: each try costs a signature check.
const maxPrevious = 4

// clockAhead is how far the clock of the machine that signed a token may be ahead of ours.
const clockAhead = 10 * time.Second

// Tokens signs and checks access tokens: JWT with EdDSA (RFC 8037) only.
type Tokens struct {
	keys   func() keys // derived from the seeds on first use: a millisecond each, saved at the start
	life   time.Duration
	parser *jwt.Parser
}

// NewTokens reads the signing keys. An error names the setting.
func NewTokens(c Config) (*Tokens, error) {
	seed, err := seedOf("AUTH_SIGNING_KEY:", c.SigningKey)
	if err != nil {
		return nil, err
	}
	if c.TokenLife < time.Minute {
		return nil, fmt.Errorf("AUTH_TOKEN_LIFE: must be at least 1m, is %s", c.TokenLife)
	}
	if len(c.Previous) > maxPrevious {
		return nil, fmt.Errorf("AUTH_PREVIOUS_KEYS: has %d keys, at most %d are allowed; leave out those older than AUTH_TOKEN_LIFE", len(c.Previous), maxPrevious)
	}
	var previous [][]byte
	for i, text := range c.Previous {
		seed, err := seedOf(fmt.Sprintf("AUTH_PREVIOUS_KEYS: key %d", i+1), text)
		if err != nil {
			return nil, err
		}
		previous = append(previous, seed)
	}
	return &Tokens{
		keys: sync.OnceValue(func() keys { return keysOf(seed, previous) }),
		life: c.TokenLife,
		parser: jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}),
			jwt.WithExpirationRequired(), jwt.WithStrictDecoding()),
	}, nil
}

// keys holds the signing key, and the accepted public keys: its own and the former ones.
type keys struct {
	private ed25519.PrivateKey
	ring    jwt.VerificationKeySet
}

func keysOf(seed []byte, previous [][]byte) keys {
	k := keys{private: ed25519.NewKeyFromSeed(seed)}
	k.ring.Keys = append(k.ring.Keys, k.private.Public())
	for _, p := range previous {
		k.ring.Keys = append(k.ring.Keys, ed25519.NewKeyFromSeed(p).Public())
	}
	return k
}

func seedOf(key, text string) ([]byte, error) {
	seed, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("%s must be 32 random bytes in base64 (openssl rand -base64 32)", key)
	}
	return seed, nil
}

// Claims name the tenant, the account and the generation of its credentials. Permissions are looked up on every
// request.
type Claims struct {
	jwt.RegisteredClaims
	Generation int32 `json:"gen"`
}

// Life returns how long a token is valid.
func (t *Tokens) Life() time.Duration { return t.life }

// Sign makes an access token.
func (t *Tokens) Sign(tenant, account uuid.UUID, generation int32, now time.Time) (string, error) {
	token, err := jwt.NewWithClaims(jwt.SigningMethodEdDSA, Claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Subject:   account.String(),
			Audience:  jwt.ClaimStrings{tenant.String()},
			IssuedAt:  jwt.NewNumericDate(now),
			ExpiresAt: jwt.NewNumericDate(now.Add(t.life)),
		},
		Generation: generation,
	}).SignedString(t.keys().private)
	if err != nil {
		return "", fmt.Errorf("sign access token: %w", err)
	}
	return token, nil
}

// Verify checks signature, times and tenant. The token's header selects neither algorithm nor key: there is one
// algorithm, and the few keys of the ring are tried in turn.
func (t *Tokens) Verify(token string, tenant uuid.UUID) (account uuid.UUID, generation int32, expires time.Time, err error) {
	var c Claims
	if _, err := t.parser.ParseWithClaims(token, &c, func(*jwt.Token) (any, error) { return t.keys().ring, nil }); err != nil {
		return uuid.Nil, 0, time.Time{}, err
	}
	if c.IssuedAt != nil && time.Until(c.IssuedAt.Time) > clockAhead {
		return uuid.Nil, 0, time.Time{}, jwt.ErrTokenUsedBeforeIssued
	}
	if len(c.Audience) != 1 || c.Audience[0] != tenant.String() {
		return uuid.Nil, 0, time.Time{}, errors.New("token is for another tenant")
	}
	account, err = uuid.Parse(c.Subject)
	if err != nil {
		return uuid.Nil, 0, time.Time{}, fmt.Errorf("token subject: %w", err)
	}
	return account, c.Generation, c.ExpiresAt.Time, nil
}

package auth_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
)

var (
	seed    = make([]byte, ed25519.SeedSize)
	private = ed25519.NewKeyFromSeed(seed)
	tenant  = uuid.MustParse("00000000-0000-4000-8000-000000000001")
	account = uuid.MustParse("00000000-0000-4000-8000-000000000002")
)

func newTokens(t *testing.T) *auth.Tokens {
	t.Helper()
	tokens, err := auth.NewTokens(auth.Config{SigningKey: base64.StdEncoding.EncodeToString(seed), TokenLife: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// forge writes a token by hand, signed as sign does.
func forge(t *testing.T, header, claims map[string]any, sign func(signed []byte) []byte) string {
	t.Helper()
	part := func(v any) string {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(data)
	}
	signed := part(header) + "." + part(claims)
	return signed + "." + base64.RawURLEncoding.EncodeToString(sign([]byte(signed)))
}

func right(signed []byte) []byte { return ed25519.Sign(private, signed) }

func TestToken(t *testing.T) {
	t.Parallel()
	tokens := newTokens(t)
	now := time.Now()
	token, err := tokens.Sign(tenant, account, 7, now)
	if err != nil {
		t.Fatal(err)
	}
	got, generation, expires, err := tokens.Verify(token, tenant)
	if err != nil || got != account || generation != 7 || expires.Sub(now.Add(time.Hour)).Abs() > time.Second {
		t.Errorf("verify: %v %d %v %v", got, generation, expires, err)
	}
}

// Clocks of two machines always differ a little: a token of a clock that is ahead is valid at once.
func TestTokenOfAClockAhead(t *testing.T) {
	t.Parallel()
	tokens := newTokens(t)
	token, err := tokens.Sign(tenant, account, 1, time.Now().Add(3*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := tokens.Verify(token, tenant); err != nil {
		t.Error(err)
	}
}

func TestForgedTokens(t *testing.T) {
	t.Parallel()
	tokens := newTokens(t)
	now := time.Now()
	header := func(change map[string]any) map[string]any {
		h := map[string]any{"alg": "EdDSA", "typ": "JWT"}
		for k, v := range change {
			h[k] = v
		}
		return h
	}
	claims := func(change map[string]any) map[string]any {
		c := map[string]any{"sub": account.String(), "aud": tenant.String(), "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "gen": 1}
		for k, v := range change {
			if v == nil {
				delete(c, k)
			} else {
				c[k] = v
			}
		}
		return c
	}
	byHMAC := func(key []byte) func([]byte) []byte {
		return func(signed []byte) []byte {
			mac := hmac.New(sha256.New, key)
			mac.Write(signed)
			return mac.Sum(nil)
		}
	}
	nothing := func([]byte) []byte { return nil }
	other := ed25519.NewKeyFromSeed([]byte(strings.Repeat("x", 32)))
	if _, _, _, err := tokens.Verify(forge(t, header(nil), claims(nil), right), tenant); err != nil {
		t.Fatalf("the forger's own right token is refused: %v", err)
	}
	for name, token := range map[string]string{
		"alg none":              forge(t, header(map[string]any{"alg": "none"}), claims(nil), nothing),
		"alg None, signed":      forge(t, header(map[string]any{"alg": "None"}), claims(nil), right),
		"no alg":                forge(t, map[string]any{"typ": "JWT"}, claims(nil), right),
		"HS256 with public key": forge(t, header(map[string]any{"alg": "HS256"}), claims(nil), byHMAC(private.Public().(ed25519.PublicKey))),
		"HS256 with empty key":  forge(t, header(map[string]any{"alg": "HS256"}), claims(nil), byHMAC(nil)),
		"empty signature":       forge(t, header(nil), claims(nil), nothing),
		"zero signature":        forge(t, header(nil), claims(nil), func([]byte) []byte { return make([]byte, 64) }),
		"other key":             forge(t, header(nil), claims(nil), func(b []byte) []byte { return ed25519.Sign(other, b) }),
		"kid traversal":         forge(t, header(map[string]any{"alg": "HS256", "kid": "../../../../dev/null"}), claims(nil), byHMAC(nil)),
		"kid and jwk":           forge(t, header(map[string]any{"kid": "x", "jwk": map[string]any{"kty": "OKP", "crv": "Ed25519", "x": base64.RawURLEncoding.EncodeToString(other.Public().(ed25519.PublicKey))}}), claims(nil), func(b []byte) []byte { return ed25519.Sign(other, b) }),
		"expired":               forge(t, header(nil), claims(map[string]any{"exp": now.Add(-time.Second).Unix()}), right),
		"no expiry":             forge(t, header(nil), claims(map[string]any{"exp": nil}), right),
		"not yet valid":         forge(t, header(nil), claims(map[string]any{"nbf": now.Add(time.Minute).Unix()}), right),
		"issued in the future":  forge(t, header(nil), claims(map[string]any{"iat": now.Add(time.Minute).Unix()}), right),
		"other tenant":          forge(t, header(nil), claims(map[string]any{"aud": account.String()}), right),
		"no audience":           forge(t, header(nil), claims(map[string]any{"aud": nil}), right),
		"two audiences":         forge(t, header(nil), claims(map[string]any{"aud": []string{tenant.String(), account.String()}}), right),
		"no subject":            forge(t, header(nil), claims(map[string]any{"sub": nil}), right),
		"subject not an id":     forge(t, header(nil), claims(map[string]any{"sub": "admin"}), right),
		"claims not an object":  "eyJhbGciOiJFZERTQSJ9.MQ.AA",
		"two parts":             "eyJhbGciOiJFZERTQSJ9.e30",
		"empty":                 "",
		"dots":                  "..",
	} {
		if _, _, _, err := tokens.Verify(token, tenant); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestChangedTokens(t *testing.T) {
	t.Parallel()
	tokens := newTokens(t)
	token, err := tokens.Sign(tenant, account, 1, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(token) {
		for _, c := range []byte("A.-") {
			if token[i] == c {
				continue
			}
			if _, _, _, err := tokens.Verify(token[:i]+string(c)+token[i+1:], tenant); err == nil {
				t.Fatalf("accepted with byte %d changed to %c", i, c)
			}
		}
	}
}

func TestTokenConfig(t *testing.T) {
	t.Parallel()
	good := base64.StdEncoding.EncodeToString(seed)
	for _, c := range []struct {
		setting string
		config  auth.Config
	}{
		{"AUTH_SIGNING_KEY", auth.Config{TokenLife: time.Hour}},
		{"AUTH_SIGNING_KEY", auth.Config{SigningKey: "not base64!", TokenLife: time.Hour}},
		{"AUTH_SIGNING_KEY", auth.Config{SigningKey: good[:20], TokenLife: time.Hour}},
		{"AUTH_TOKEN_LIFE", auth.Config{SigningKey: good}},
		{"AUTH_TOKEN_LIFE", auth.Config{SigningKey: good, TokenLife: time.Minute - 1}},
	} {
		if _, err := auth.NewTokens(c.config); err == nil || !strings.HasPrefix(err.Error(), c.setting+":") {
			t.Errorf("%s: %v", c.setting, err)
		}
	}
	if _, err := auth.NewTokens(auth.Config{SigningKey: good, TokenLife: time.Minute}); err != nil {
		t.Errorf("the shortest life: %v", err)
	}
}

// After a key rotation, tokens of the former key are valid as long as it is in the ring. New tokens are signed with the
// new key only.
func TestTokenKeyRing(t *testing.T) {
	t.Parallel()
	key := func(b byte) string {
		return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, ed25519.SeedSize))
	}
	tokens := func(signing string, previous ...string) *auth.Tokens {
		out, err := auth.NewTokens(auth.Config{SigningKey: signing, Previous: previous, TokenLife: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	sign := func(by *auth.Tokens) string {
		token, err := by.Sign(tenant, account, 1, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	first, second, third := tokens(key(1)), tokens(key(2), key(1)), tokens(key(3), key(2))
	for _, c := range []struct {
		by, of *auth.Tokens
		good   bool
	}{{second, second, true}, {second, first, true}, {first, second, false}, {third, second, true}, {third, first, false}} {
		if _, _, _, err := c.by.Verify(sign(c.of), tenant); (err == nil) != c.good {
			t.Errorf("good %v: %v", c.good, err)
		}
	}
	tokens(key(9), key(1), key(2), key(3), key(4)) // the maximum number
	for want, previous := range map[string][]string{"key 1 must be": {"short"}, "key 2 must be": {key(1), "short"},
		"has 5 keys": {key(1), key(2), key(3), key(4), key(5)}} {
		_, err := auth.NewTokens(auth.Config{SigningKey: key(9), Previous: previous, TokenLife: time.Hour})
		if err == nil || !strings.HasPrefix(err.Error(), "AUTH_PREVIOUS_KEYS: "+want) || strings.Contains(err.Error(), "short") {
			t.Errorf("%v: %v", previous, err)
		}
	}
}

package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"

	"github.com/longbox/longbox/shared/lazyregexp"
)

// argon2id parameters: OWASP's minimum, 19 MiB, 2 passes, 1 lane: 18 ms.
const (
	argonMemory = 19 * 1024
	argonTime   = 2
	argonLanes  = 1
	argonKey    = 32
)

// slots limits the memory for hashing: at most four hashes run at once, the others wait.
var slots = make(chan struct{}, 4)

// HashPassword returns an argon2id hash in the PHC string format.
func HashPassword(password string) string {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // crypto/rand.Read never returns an error: it crashes the program instead
	return written(salt, derive(password, salt))
}

func written(salt, hash []byte) string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonLanes,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(hash))
}

// NoPassword returns a well-formed hash that no password matches. A check against it takes as long as a real one, so
// that timing does not reveal unknown users.
func NoPassword() string { return written(make([]byte, 16), make([]byte, argonKey)) }

// CheckPassword reports whether the password matches the hash.
func CheckPassword(hash, password string) (bool, error) {
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return false, errors.New("password hash: unknown format")
	}
	salt, err := base64.RawStdEncoding.DecodeString(parts[4])
	if err != nil {
		return false, fmt.Errorf("password hash: salt: %w", err)
	}
	want, err := base64.RawStdEncoding.DecodeString(parts[5])
	if err != nil {
		return false, fmt.Errorf("password hash: key: %w", err)
	}
	return subtle.ConstantTimeCompare(want, derive(password, salt)) == 1, nil
}

// derive normalises the password to NFC (RFC 8265 section 4.2), so that the keyboard does not matter.
func derive(password string, salt []byte) []byte {
	slots <- struct{}{}
	defer func() { <-slots }()
	return argon2.IDKey(norm.NFC.Bytes([]byte(password)), salt, argonTime, argonMemory, argonLanes, argonKey)
}

var apiKeyShape = lazyregexp.New(`^(lbx_[0-9a-f]{16})_[0-9a-f]{32}$`)

// NewAPIKey makes an API key `lbx_<16 hex>_<32 hex>`. Only prefix and hash are stored.
func NewAPIKey() (key, prefix string, hash []byte) {
	random := make([]byte, 24)
	_, _ = rand.Read(random)
	prefix = "lbx_" + hex.EncodeToString(random[:8])
	key = prefix + "_" + hex.EncodeToString(random[8:])
	return key, prefix, HashSecret(key)
}

// APIKeyPrefix returns the first two parts of an API key, and whether s has the format of one.
func APIKeyPrefix(s string) (string, bool) {
	m := apiKeyShape.FindStringSubmatch(s)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// NewSecret returns a random opaque token of 32 bytes and the hash to store.
func NewSecret() (token string, hash []byte) {
	random := make([]byte, 32)
	_, _ = rand.Read(random)
	token = base64.RawURLEncoding.EncodeToString(random)
	return token, HashSecret(token)
}

// HashSecret returns the SHA-256 of s, which is enough for long random secrets.
func HashSecret(s string) []byte {
	sum := sha256.Sum256([]byte(s))
	return sum[:]
}

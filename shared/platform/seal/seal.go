// Package seal encrypts secrets in the database, which the database cannot read: credentials of plugins, and client
// secrets of identity providers. It uses AES-256-GCM with CREDENTIALS_KEY (NIST SP 800-38D), and binds each secret to
// its owner.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/longbox/longbox/shared/platform/fault"
)

// Config holds the key.
type Config struct {
	Key string `env:"CREDENTIALS_KEY"` // base64 of 32 random bytes; without one nothing can be sealed
}

// version is the first byte of a sealed secret.
const version = 1

// Key seals and opens secrets. The zero Key does neither.
type Key struct{ aead cipher.AEAD }

// New parses the key. An error names the setting.
func New(c Config) (*Key, error) {
	if c.Key == "" {
		return &Key{}, nil
	}
	raw, err := base64.StdEncoding.DecodeString(c.Key)
	if err != nil || len(raw) != 32 {
		return nil, errors.New("CREDENTIALS_KEY: must be 32 random bytes in base64 (openssl rand -base64 32)")
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return nil, fmt.Errorf("CREDENTIALS_KEY: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("CREDENTIALS_KEY: %w", err)
	}
	return &Key{aead}, nil
}

// Seal encrypts a secret for owner. It cannot be opened for another owner. Without a key it returns Unavailable.
func (k *Key) Seal(owner string, secret []byte) ([]byte, error) {
	if k.aead == nil {
		return nil, fault.New(fault.Unavailable, "Credentials cannot be stored: the operator of this installation has not set CREDENTIALS_KEY")
	}
	return k.aead.Seal([]byte{version}, nil, secret, []byte(owner)), nil
}

// Open decrypts a secret that was sealed for owner. It fails without a key, with another key, and if anything was
// changed.
func (k *Key) Open(owner string, sealed []byte) ([]byte, error) {
	if k.aead == nil {
		return nil, errors.New("CREDENTIALS_KEY is not set")
	}
	if len(sealed) == 0 || sealed[0] != version {
		return nil, errors.New("not sealed by this version of Longbox")
	}
	secret, err := k.aead.Open(nil, nil, sealed[1:], []byte(owner))
	if err != nil {
		return nil, errors.New("CREDENTIALS_KEY is not the key that sealed this secret, or the secret was changed")
	}
	return secret, nil
}

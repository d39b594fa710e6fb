// Package seal encrypts what the database keeps for Longbox without being able to read it: credentials of plugins, and
// client secrets of identity providers. With AES-256-GCM under CREDENTIALS_KEY (NIST SP 800-38D), bound to what it
// belongs to.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/longbox/longbox/shared/platform/fault"
)

// Config has the key.
type Config struct {
	Key string `env:"CREDENTIALS_KEY"` // base64 of 32 random bytes; without one nothing can be sealed
}

// version is the first byte of what is sealed.
const version = 1

// Key seals and opens. The zero Key does neither.
type Key struct{ aead cipher.AEAD }

// New reads the key; the error names the setting.
func New(c Config) (*Key, error) {
	if c.Key == "" {
		return &Key{}, nil
	}
	raw, err := base64.StdEncoding.DecodeString(c.Key)
	if err != nil || len(raw) != 32 {
		return nil, errors.New("CREDENTIALS_KEY: must be the base64 of 32 bytes, as of openssl rand -base64 32")
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

// Seal encrypts a secret that belongs to owner, from where it cannot be moved to another. Unavailable without a key.
func (k *Key) Seal(owner string, secret []byte) ([]byte, error) {
	if k.aead == nil {
		return nil, fault.New(fault.Unavailable, "Credentials cannot be kept: the operator of this installation has not set CREDENTIALS_KEY")
	}
	return k.aead.Seal([]byte{version}, nil, secret, []byte(owner)), nil
}

// Open is what was sealed for owner. It fails without a key, with another one, and where anything was changed.
func (k *Key) Open(owner string, sealed []byte) ([]byte, error) {
	if k.aead == nil {
		return nil, errors.New("CREDENTIALS_KEY is not set")
	}
	if len(sealed) == 0 || sealed[0] != version {
		return nil, errors.New("not sealed by this version of Longbox")
	}
	secret, err := k.aead.Open(nil, nil, sealed[1:], []byte(owner))
	if err != nil {
		return nil, errors.New("CREDENTIALS_KEY is not the one that it was sealed with, or it was changed")
	}
	return secret, nil
}

// Package secret stores the generated passwords and keys of one data folder.
package secret

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Set holds all secrets of a one-machine installation. It is generated once.
type Set struct {
	PostgresSuper  string `json:"postgresSuper"`
	PostgresOwner  string `json:"postgresOwner"`
	PostgresApp    string `json:"postgresApp"`
	PostgresSystem string `json:"postgresSystem"`
	Redis          string `json:"redis"`
	S3AccessKey    string `json:"s3AccessKey"`
	S3SecretKey    string `json:"s3SecretKey"`
	// AuthSigningKey is a 32-byte Ed25519 seed in base64.
	AuthSigningKey string `json:"authSigningKey"`
	// CredentialsKey is 32 bytes in base64, with which the credentials of plugins are encrypted in the database.
	CredentialsKey string `json:"credentialsKey"`
}

// Load reads the secrets of a data folder (secrets.json, mode 0600), and generates them on the first start. It does not
// generate new ones if a database exists, because that needs the old ones.
func Load(dataDir string) (Set, error) {
	path := filepath.Join(dataDir, "secrets.json")
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dataDir, "postgres")); err == nil {
			return Set{}, fmt.Errorf("%s is missing, but the database beside it exists: restore the file from a backup, or choose another DATA_DIR", path)
		}
		return create(path)
	}
	if err != nil {
		return Set{}, fmt.Errorf("secrets: %w", err)
	}
	var s Set
	if err := json.Unmarshal(raw, &s); err != nil {
		return Set{}, fmt.Errorf("%s is damaged (%w): restore it from a backup", path, err)
	}
	if s.incomplete() {
		return Set{}, fmt.Errorf("%s lacks a value: restore it from a backup", path)
	}
	if s.CredentialsKey == "" { // from a version without this key
		s.CredentialsKey = key()
		return s, write(path, s)
	}
	return s, nil
}

// incomplete reports whether a value is missing that cannot be generated again.
func (s Set) incomplete() bool {
	return slices.Contains([]string{s.PostgresSuper, s.PostgresOwner, s.PostgresApp, s.PostgresSystem, s.Redis,
		s.S3AccessKey, s.S3SecretKey, s.AuthSigningKey}, "")
}

func create(path string) (Set, error) {
	s := Set{
		PostgresSuper: rand.Text(), PostgresOwner: rand.Text(), PostgresApp: rand.Text(), PostgresSystem: rand.Text(),
		Redis: rand.Text(), S3AccessKey: rand.Text()[:20], S3SecretKey: rand.Text() + rand.Text(),
		AuthSigningKey: key(), CredentialsKey: key(),
	}
	return s, write(path, s)
}

// key returns 32 random bytes in base64.
func key() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw)
	return base64.StdEncoding.EncodeToString(raw)
}

// write writes a new file and renames it, so that an interrupted start leaves the old file or a complete one.
func write(path string, s Set) error {
	raw, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = writeWhole(path, append(raw, '\n'))
	}
	if err != nil {
		return fmt.Errorf("secrets: %w", err)
	}
	return nil
}

func writeWhole(path string, raw []byte) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

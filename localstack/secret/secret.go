// Package secret keeps the generated passwords and keys of one data folder.
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

// Set is everything secret that one installation on one machine needs. It is generated once.
type Set struct {
	PostgresSuper  string `json:"postgresSuper"`
	PostgresOwner  string `json:"postgresOwner"`
	PostgresApp    string `json:"postgresApp"`
	PostgresSystem string `json:"postgresSystem"`
	Redis          string `json:"redis"`
	S3AccessKey    string `json:"s3AccessKey"`
	S3SecretKey    string `json:"s3SecretKey"`
	// AuthSigningKey is the base64 of a 32-byte Ed25519 seed.
	AuthSigningKey string `json:"authSigningKey"`
	// CredentialsKey is the base64 of 32 bytes that seal the credentials of plugins in the database.
	CredentialsKey string `json:"credentialsKey"`
}

// Load reads the secrets of a data folder (secrets.json, mode 0600) and generates them on the first start.
// It refuses to generate new ones beside an existing database, which only the old ones open.
func Load(dataDir string) (Set, error) {
	path := filepath.Join(dataDir, "secrets.json")
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dataDir, "postgres")); err == nil {
			return Set{}, fmt.Errorf("%s is missing but the database beside it is there: put the file back, or choose another DATA_DIR", path)
		}
		return create(path)
	}
	if err != nil {
		return Set{}, fmt.Errorf("secrets: %w", err)
	}
	var s Set
	if err := json.Unmarshal(raw, &s); err != nil {
		return Set{}, fmt.Errorf("%s is damaged (%w): put a copy of it back", path, err)
	}
	if s.incomplete() {
		return Set{}, fmt.Errorf("%s lacks a value: put a copy of it back", path)
	}
	if s.CredentialsKey == "" { // of a version that kept no credentials
		s.CredentialsKey = key()
		return s, write(path, s)
	}
	return s, nil
}

// incomplete tells whether a value is missing that no other can take the place of.
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

// key is the base64 of 32 random bytes.
func key() string {
	raw := make([]byte, 32)
	rand.Read(raw) // Never fails: crypto/rand ends the program instead.
	return base64.StdEncoding.EncodeToString(raw)
}

// write writes the file beside and renames it: a start that is cut short leaves the file before or a whole one.
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

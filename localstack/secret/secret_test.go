package secret

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLoadGeneratesOnceAndKeeps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if first != again {
		t.Error("the second load gave other secrets")
	}
	for name, key := range map[string]string{"signing key": first.AuthSigningKey, "credentials' key": first.CredentialsKey} {
		if raw, err := base64.StdEncoding.DecodeString(key); err != nil || len(raw) != 32 {
			t.Errorf("%s: %d bytes, %v; want 32", name, len(raw), err)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "secrets.json"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode().Perm())
	}
	other, err := Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if other.PostgresApp == first.PostgresApp || other.AuthSigningKey == first.AuthSigningKey ||
		other.CredentialsKey == first.CredentialsKey || first.CredentialsKey == first.AuthSigningKey {
		t.Error("two folders share a secret")
	}
}

// A file from a version without credentials of plugins gets the key for them, once, and keeps all other values.
func TestLoadAddsTheKeyOfCredentials(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "secrets.json")
	old, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	old.CredentialsKey = ""
	raw, err := json.Marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(path, raw, 0o600), os.Mkdir(filepath.Join(dir, "postgres"), 0o700)); err != nil {
		t.Fatal(err)
	}
	got, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Load(dir)
	if err != nil || again != got {
		t.Errorf("the next load gave other secrets, %v", err)
	}
	if key, err := base64.StdEncoding.DecodeString(got.CredentialsKey); err != nil || len(key) != 32 {
		t.Errorf("the key that was added: %d bytes, %v; want 32", len(key), err)
	}
	got.CredentialsKey = ""
	if got != old {
		t.Error("another secret changed")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("secrets.json: %v, %v", info, err)
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		prepare func(dir string) error
		want    string
	}{
		"database without secrets": {func(dir string) error { return os.Mkdir(filepath.Join(dir, "postgres"), 0o700) }, "is missing"},
		"damaged file":             {func(dir string) error { return os.WriteFile(filepath.Join(dir, "secrets.json"), []byte("{"), 0o600) }, "damaged"},
		"missing value":            {func(dir string) error { return os.WriteFile(filepath.Join(dir, "secrets.json"), []byte("{}"), 0o600) }, "lacks a value"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := c.prepare(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

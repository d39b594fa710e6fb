package secret

import (
	"encoding/base64"
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
	seed, err := base64.StdEncoding.DecodeString(first.AuthSigningKey)
	if err != nil || len(seed) != 32 {
		t.Errorf("signing key: %d bytes, %v; want 32", len(seed), err)
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
	if other.PostgresApp == first.PostgresApp || other.AuthSigningKey == first.AuthSigningKey {
		t.Error("two folders share a secret")
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

package auth_test

import (
	"bytes"
	"encoding/base64"
	"runtime"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/platform/auth"
)

func TestPasswords(t *testing.T) {
	t.Parallel()
	one, two := auth.HashPassword("a password"), auth.HashPassword("a password")
	if one == two {
		t.Error("two hashes of one password are equal: no salt")
	}
	for _, c := range []struct {
		hash, password string
		ok             bool
	}{{one, "a password", true}, {two, "a password", true}, {one, "a passwore", false}, {one, "", false}, {auth.NoPassword(), "", false}, {auth.NoPassword(), "a password", false}} {
		if ok, err := auth.CheckPassword(c.hash, c.password); err != nil || ok != c.ok {
			t.Errorf("%q against %s: %v, %v", c.password, c.hash, ok, err)
		}
	}
	// Keyboards write ü as one character or as two.
	if ok, err := auth.CheckPassword(auth.HashPassword("b\u00fccher"), "bu\u0308cher"); !ok || err != nil {
		t.Errorf("a password in the other Unicode form: %v, %v", ok, err)
	}
	for _, broken := range []string{"", "plain", "$argon2id$v=19$m=1,t=1,p=1$%$%", "$bcrypt$v=19$a$b$c", "$argon2id$v=19$m=1$" + strings.Repeat("A", 4) + "$%"} {
		if ok, err := auth.CheckPassword(broken, "x"); ok || err == nil {
			t.Errorf("broken hash %q: %v, %v", broken, ok, err)
		}
	}
}

// Not parallel: it measures what the whole program allocates.
func TestNoPasswordCostsTheSame(t *testing.T) {
	real := auth.HashPassword("a password")
	cut := func(hash string) string { return hash[:strings.LastIndex(hash[:strings.LastIndex(hash, "$")], "$")] }
	if cut(real) != cut(auth.NoPassword()) || len(real) != len(auth.NoPassword()) {
		t.Errorf("other parameters: %s, %s", real, auth.NoPassword())
	}
	for _, hash := range []string{real, auth.NoPassword()} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if ok, err := auth.CheckPassword(hash, "wrong"); ok || err != nil {
			t.Fatal(ok, err)
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used < 19<<20 || used > 24<<20 {
			t.Errorf("%s: checking used %d bytes, want the 19 MiB of one derivation", hash, used)
		}
	}
}

func TestAPIKeys(t *testing.T) {
	t.Parallel()
	key, prefix, hash := auth.NewAPIKey()
	other, _, _ := auth.NewAPIKey()
	if got, ok := auth.APIKeyPrefix(key); !ok || got != prefix || key == other || !bytes.Equal(hash, auth.HashSecret(key)) {
		t.Errorf("key %s: prefix %s, %v", key, got, ok)
	}
	for _, s := range []string{"", "lbx_", prefix, key + "0", key[:len(key)-1], strings.ToUpper(key), " " + key, key + "\n", "lbx__" + key, "abc" + key[3:]} {
		if _, ok := auth.APIKeyPrefix(s); ok {
			t.Errorf("%q passes for a key", s)
		}
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	one, hash := auth.NewSecret()
	two, _ := auth.NewSecret()
	if raw, err := base64.RawURLEncoding.DecodeString(one); err != nil || len(raw) != 32 || one == two || !bytes.Equal(hash, auth.HashSecret(one)) {
		t.Errorf("%q, then %q, with the hash %x: %v", one, two, hash, err)
	}
}

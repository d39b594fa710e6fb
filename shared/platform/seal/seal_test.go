package seal_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"testing"

	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/seal"
)

func key(t *testing.T, fill byte) *seal.Key {
	t.Helper()
	k, err := seal.New(seal.Config{Key: base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{fill}, 32))})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestSealed(t *testing.T) {
	t.Parallel()
	k := key(t, 1)
	a, err := k.Seal("tenant/one", []byte("secret"))
	if err != nil || bytes.Contains(a, []byte("secret")) {
		t.Fatalf("%x, %v", a, err)
	}
	if b, _ := k.Seal("tenant/one", []byte("secret")); bytes.Equal(a, b) {
		t.Error("the same secret is sealed alike twice")
	}
	if got, err := k.Open("tenant/one", a); err != nil || string(got) != "secret" {
		t.Fatal(string(got), err)
	}
	if _, err := k.Open("tenant/two", a); err == nil {
		t.Error("it opens for another owner")
	}
	if _, err := key(t, 2).Open("tenant/one", a); err == nil {
		t.Error("it opens with another key")
	}
	for i := range a {
		b := bytes.Clone(a)
		b[i] ^= 1
		if _, err := k.Open("tenant/one", b); err == nil {
			t.Errorf("it opens with byte %d changed", i)
		}
	}
	for n := range len(a) {
		if _, err := k.Open("tenant/one", a[:n]); err == nil {
			t.Errorf("%d bytes of it open", n)
		}
	}
}

func TestWithoutKey(t *testing.T) {
	t.Parallel()
	k, err := seal.New(seal.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var f *fault.Error
	if _, err := k.Seal("x", nil); !errors.As(err, &f) || f.Code != fault.Unavailable {
		t.Error(err)
	}
	if _, err := k.Open("x", []byte{1, 2, 3}); err == nil {
		t.Error("it opens")
	}
	long := base64.StdEncoding.EncodeToString(make([]byte, 32))
	for _, wrong := range []string{"x", "AAAA", long[:len(long)-1], long + "!", base64.StdEncoding.EncodeToString(make([]byte, 31)),
		base64.StdEncoding.EncodeToString(make([]byte, 16))} { // AES has shorter keys
		if _, err := seal.New(seal.Config{Key: wrong}); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}

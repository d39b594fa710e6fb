package gateway

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longbox/longbox/localstack/account"
	"github.com/longbox/longbox/localstack/library"
	"github.com/longbox/longbox/localstack/secret"
)

// The links of an earlier start are replaced. A folder with somebody's books is not mistaken for them.
func TestOnlyLinksAreRemoved(t *testing.T) {
	t.Parallel()
	data, books := t.TempDir(), t.TempDir()
	start := func() error {
		_, err := Library(data, "versitygw", 1, []library.Root{{Folder: books, Bucket: "books"}}, account.Account{}, secret.Set{})
		return err
	}
	for range 2 {
		if err := start(); err != nil {
			t.Fatal(err)
		}
	}
	own := filepath.Join(data, "roots", "mine")
	if err := os.Mkdir(own, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := start(); err == nil || !strings.Contains(err.Error(), own+" was not created by Longbox") {
		t.Errorf("%v, want the folder to be named", err)
	}
	if _, err := os.Stat(own); err != nil {
		t.Error(err)
	}
}

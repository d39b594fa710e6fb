package account

import (
	"os"
	"path/filepath"
	"testing"
)

func TestClosedFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inner := filepath.Join(dir, "closed", "data")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	stranger := Account{UID: 64999, GID: 64999}
	if err := os.Chmod(filepath.Join(dir, "closed"), 0o700); err != nil {
		t.Fatal(err)
	}
	got, err := stranger.closedFolder(inner)
	if err != nil || got != filepath.Join(dir, "closed") {
		t.Errorf("got %q, %v; want the closed folder", got, err)
	}
	self := Account{UID: os.Geteuid(), GID: os.Getegid()}
	if got, err := self.closedFolder(inner); err != nil || got != "" {
		t.Errorf("got %q, %v for the owner, want none", got, err)
	}
	if _, err := stranger.closedFolder(filepath.Join(dir, "nothing")); err == nil {
		t.Error("no error for a folder that does not exist")
	}
}

func TestChooseAndRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	private := filepath.Join(dir, "private")
	if err := os.WriteFile(private, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := unprivileged(filepath.Join(dir, "postgres"))
	if os.Geteuid() != 0 {
		a, err = Choose(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	if a.UID == 0 {
		t.Fatal("children would run as root")
	}
	run := func(readAll bool, script string) error {
		return a.Command(readAll, "/", "/bin/sh", "-c", script, "sh", private).Run()
	}
	if err := run(false, `test "$(id -u)" != 0`); err != nil {
		t.Errorf("a child runs as root: %v", err)
	}
	if err := run(true, `cat "$1"`); err != nil {
		t.Errorf("a child that may read all cannot read: %v", err)
	}
	if os.Geteuid() != 0 || !CanReadAll() {
		return // The owner may do all of this; root without the capability too.
	}
	if err := run(false, `cat "$1"`); err == nil {
		t.Error("a child read a private file of root")
	}
	if err := run(true, `echo y >"$1"`); err == nil {
		t.Error("a child that may read all wrote a file of root")
	}
}

func TestFolder(t *testing.T) {
	t.Parallel()
	a := Account{UID: os.Geteuid(), GID: os.Getegid()}
	path := filepath.Join(t.TempDir(), "redis")
	for range 2 { // Made, then found.
		if err := a.Folder(path); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, want 0700", info.Mode().Perm())
	}
	if err := (Account{UID: os.Geteuid() + 1}).Folder(path); err == nil {
		t.Error("a folder of somebody else was accepted")
	}
}

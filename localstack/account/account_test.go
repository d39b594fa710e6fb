package account

import (
	"os"
	"path/filepath"
	"strings"
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
		return // The owner may do all of this, and so may root without the capability.
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
	for range 2 { // First created, then found.
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

// A process of the account may leave links where root writes next.
func TestFileIsMadeAnew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	victim, path := filepath.Join(dir, "victim"), filepath.Join(dir, "redis.conf")
	if err := os.WriteFile(victim, []byte("root's"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := Account{UID: os.Geteuid(), GID: os.Getegid()}
	if a.UID == 0 {
		a = Account{UID: 64999, GID: 64999, Switch: true}
	}
	for what, plant := range map[string]func() error{
		"nothing":       func() error { return nil },
		"a file":        func() error { return os.WriteFile(path, []byte("longer than what is written"), 0o644) },
		"a link":        func() error { return os.Symlink(victim, path) },
		"a second name": func() error { return os.Link(victim, path) },
	} {
		if err := plant(); err != nil {
			t.Fatal(err)
		}
		if err := a.File(path, []byte("settings")); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		got, err := os.ReadFile(path)
		info, e := os.Lstat(path)
		if err != nil || e != nil || string(got) != "settings" || info.Mode() != 0o600 {
			t.Errorf("%s: %q, %v, %v, %v", what, got, info.Mode(), err, e)
		}
		if uid, _, err := owner(path); err != nil || uid != a.UID {
			t.Errorf("%s: it belongs to %d: %v", what, uid, err)
		}
		if got, err := os.ReadFile(victim); err != nil || string(got) != "root's" {
			t.Errorf("%s: another file was written: %q, %v", what, got, err)
		}
		if uid, _, err := owner(victim); err != nil || uid != os.Geteuid() {
			t.Errorf("%s: another file was given to %d: %v", what, uid, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// If root made a copy with cp -r, the error does not say to start as the user who created it.
func TestFolderOfAnother(t *testing.T) {
	t.Parallel()
	for root, want := range map[bool]string{true: "copy it again with cp -a", false: "start as the user who created it"} {
		a := Account{UID: os.Geteuid() + 1, Switch: root}
		if err := a.Folder(t.TempDir()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("root %v: %v, want %q", root, err, want)
		}
	}
}

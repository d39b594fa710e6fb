package gateway

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/longbox/longbox/localstack/library"
)

// Another folder at a root is noticed once.
func TestNoticesAnotherFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	roots := []library.Root{{Folder: filepath.Join(dir, "a")}, {Folder: filepath.Join(dir, "b")}}
	for _, r := range roots {
		if err := os.Mkdir(r.Folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	seen := look(roots)
	step := func(what string, want int, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []int{want, -1} {
			if got := seen.changed(roots); got != want {
				t.Errorf("%s: root %d has changed, want %d", what, got, want)
			}
			seen.close()
			seen = look(roots)
		}
	}
	defer func() { seen.close() }()
	step("nothing", -1, nil)
	step("content", -1, os.WriteFile(filepath.Join(roots[1].Folder, "book.cbz"), nil, 0o644))
	step("gone", 0, os.Remove(roots[0].Folder))
	step("there", 0, os.Mkdir(roots[0].Folder, 0o755))
	step("another", 1, os.Rename(roots[1].Folder, roots[1].Folder+"2"))
}

// A disk that is unmounted and mounted again has the same numbers as before, but a confined gateway may not read it.
func TestNoticesADiskMountedAgain(t *testing.T) {
	t.Parallel()
	root := []library.Root{{Folder: t.TempDir()}}
	mount := func() error { return unix.Mount("none", root[0].Folder, "tmpfs", 0, "") }
	got, failed := -1, make(chan error, 1)
	go func() { // Its thread, with mounts of its own, ends with it.
		runtime.LockOSThread()
		failed <- func() error {
			if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
				return err
			}
			if err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), mount()); err != nil {
				return err
			}
			defer func() { _ = unix.Unmount(root[0].Folder, 0) }()
			seen := look(root)
			defer seen.close()
			if err := errors.Join(unix.Unmount(root[0].Folder, 0), mount()); err != nil {
				return err
			}
			got = seen.changed(root)
			return nil
		}()
	}()
	err := <-failed
	if errors.Is(err, unix.EPERM) { // only a privileged process may mount
		t.Skip("no mounts are possible here")
	}
	if err != nil {
		t.Fatal(err)
	}
	if got != 0 {
		t.Error("the disk went and came unnoticed")
	}
}

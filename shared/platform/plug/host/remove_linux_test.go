package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Folders that their owner may not write to are removed as well. Root may write everywhere: as root, the test acts on
// the files as another user.
func TestFoldersWithoutWriteAccessAreRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	deep := filepath.Join(dir, "a", "b")
	if err := errors.Join(os.MkdirAll(deep, 0o700), os.WriteFile(filepath.Join(deep, "file"), nil, 0o400)); err != nil {
		t.Fatal(err)
	}
	const nobody = 65534
	err := filepath.WalkDir(dir, func(at string, _ fs.DirEntry, err error) error {
		if err == nil && os.Geteuid() == 0 {
			err = os.Chown(at, nobody, nobody)
		}
		return err
	})
	if err := errors.Join(err, os.Chmod(deep, 0o500), os.Chmod(filepath.Dir(deep), 0o500)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	removed := make(chan error)
	go func() {
		runtime.LockOSThread() // and the thread ends with this function
		if os.Geteuid() == 0 {
			if err := unix.Setfsuid(nobody); err != nil {
				removed <- err
				return
			}
		}
		if err := root.RemoveAll("a"); err == nil {
			removed <- errors.New("they can be removed without more ado")
			return
		}
		removed <- removeAll(root, "a")
	}()
	if err := <-removed; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left: %v", err)
	}
}

package stack

import (
	"io/fs"
	"os"
	"time"
)

// compiledLife is how long compiled code is kept. Nothing else removes that of older versions, which nobody reads. What
// is still needed is compiled again, in some seconds.
const compiledLife = 90 * 24 * time.Hour

// forgetCompiled removes files of folder that were written before a time. The folder may belong to an unprivileged
// user, so no link is followed out of it.
func forgetCompiled(folder string, before time.Time) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil || !info.ModTime().Before(before) {
			return err
		}
		return root.Remove(path)
	})
}

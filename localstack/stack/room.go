package stack

import (
	"errors"
	"fmt"
	"syscall"
)

// little is less than a first start needs for its next step: PostgreSQL grows in files of 16 MB, and frees one that it
// could not fill.
const little = 32 << 20

// withRoom adds to the error of a failed start that the disk of dir is full. If the error does not say so but little
// space is left, it adds that the disk may be full.
func withRoom(err error, dir string, free func(dir string) (bytes uint64, err error)) error {
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("the disk of DATA_DIR %s is full: free space on it and start again (%w)", dir, err)
	}
	if left, e := free(dir); e == nil && left < little {
		return fmt.Errorf("%w; the disk of DATA_DIR %s has only %d MB left, which may be the cause: free space on it and start again", err, dir, left>>20)
	}
	return err
}

// free returns how many bytes a program without root rights can still write to the disk of dir.
func free(dir string) (bytes uint64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil
}

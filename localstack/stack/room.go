package stack

import (
	"errors"
	"fmt"
	"math"
	"syscall"
)

// Less than little bytes or few files is less than a first start needs for its next step: PostgreSQL grows in files of
// 16 MB, and frees one that it could not fill; a new PostgreSQL has about a thousand files.
const (
	little = 32 << 20
	few    = 1000
)

// room is what a program without root rights can still write to a disk.
type room struct {
	bytes uint64
	files uint64 // inodes
}

// withRoom adds to the error of a failed start that the disk of dir is full. If the error does not say so but little
// space or few inodes are left, it adds that the disk may be full.
func withRoom(err error, dir string, free func(dir string) (room, error)) error {
	left, e := free(dir)
	unknown := e != nil
	switch {
	case errors.Is(err, syscall.ENOSPC) && !unknown && left.files < few:
		return fmt.Errorf("the disk of DATA_DIR %s has room for only %d more files (inodes, see df -i): "+
			"delete files on it and start again (%w)", dir, left.files, err)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("the disk of DATA_DIR %s is full: free space on it and start again (%w)", dir, err)
	case unknown:
		return err
	case left.bytes < little:
		return fmt.Errorf("%w; the disk of DATA_DIR %s has only %d MB left, which may be the cause: free space on it and start again", err, dir, left.bytes>>20)
	case left.files < few:
		return fmt.Errorf("%w; the disk of DATA_DIR %s has room for only %d more files (inodes, see df -i), which may be the cause: "+
			"delete files on it and start again", err, dir, left.files)
	}
	return err
}

// free returns the room on the disk of dir.
func free(dir string) (room, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return room{}, err
	}
	left := room{s.Bavail * uint64(s.Bsize), s.Ffree}
	if s.Files == 0 { // the file system has no fixed number of inodes
		left.files = math.MaxUint64
	}
	return left, nil
}

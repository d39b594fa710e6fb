package stack

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// The error of a failed start names the disk if the disk is the cause, or may be.
func TestWithRoom(t *testing.T) {
	t.Parallel()
	checkpoint := errors.New("checkpoint request failed")
	unknown := errors.New("no statfs")
	for name, c := range map[string]struct {
		err   error
		left  room
		asked error
		want  string
	}{
		"it says so":            {fmt.Errorf("initdb: %w", syscall.ENOSPC), room{1 << 40, 1 << 20}, nil, "the disk of DATA_DIR /data is full: free space"},
		"little is left":        {checkpoint, room{7<<20 + 5, 1 << 20}, nil, "checkpoint request failed; the disk of DATA_DIR /data has only 7 MB left"},
		"much is left":          {checkpoint, room{1 << 30, 1 << 20}, nil, "checkpoint request failed"},
		"few files are left":    {checkpoint, room{1 << 30, 70}, nil, "checkpoint request failed; the disk of DATA_DIR /data has room for only 70 more files"},
		"no files are left":     {fmt.Errorf("initdb: %w", syscall.ENOSPC), room{1 << 30, 0}, nil, "the disk of DATA_DIR /data has room for only 0 more files"},
		"full, nobody can tell": {fmt.Errorf("initdb: %w", syscall.ENOSPC), room{}, unknown, "the disk of DATA_DIR /data is full: free space"},
		"nobody can tell":       {checkpoint, room{}, unknown, "checkpoint request failed"},
	} {
		got := withRoom(c.err, "/data", func(string) (room, error) { return c.left, c.asked })
		if !strings.HasPrefix(got.Error(), c.want) || !errors.Is(got, c.err) {
			t.Errorf("%s: %v", name, got)
		}
		if said := strings.Contains(got.Error(), "DATA_DIR"); said != strings.Contains(c.want, "DATA_DIR") {
			t.Errorf("%s: %v", name, got)
		}
	}
	if left, err := free(t.TempDir()); err != nil || left.bytes == 0 || left.files == 0 {
		t.Errorf("%+v, %v", left, err)
	}
}

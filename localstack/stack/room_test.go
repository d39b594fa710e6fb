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
		left  uint64
		asked error
		want  string
	}{
		"it says so":      {fmt.Errorf("initdb: %w", syscall.ENOSPC), 1 << 40, nil, "the disk of DATA_DIR /data is full: free space"},
		"little is left":  {checkpoint, 7<<20 + 5, nil, "checkpoint request failed; the disk of DATA_DIR /data has only 7 MB left"},
		"much is left":    {checkpoint, 1 << 30, nil, "checkpoint request failed"},
		"nobody can tell": {checkpoint, 0, unknown, "checkpoint request failed"},
	} {
		got := withRoom(c.err, "/data", func(string) (uint64, error) { return c.left, c.asked })
		if !strings.HasPrefix(got.Error(), c.want) || !errors.Is(got, c.err) {
			t.Errorf("%s: %v", name, got)
		}
		if said := strings.Contains(got.Error(), "DATA_DIR"); said != strings.Contains(c.want, "DATA_DIR") {
			t.Errorf("%s: %v", name, got)
		}
	}
	if left, err := free(t.TempDir()); err != nil || left == 0 {
		t.Errorf("%d, %v", left, err)
	}
}

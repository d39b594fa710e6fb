package stack

import (
	"strings"
	"syscall"
	"testing"
)

// Only a lock that is held means another Longbox. A disk without locks is reported as such.
func TestLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	held, err := lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if _, err := lock(dir); err == nil || !strings.Contains(err.Error(), "another Longbox is running on DATA_DIR "+dir) {
		t.Errorf("held: %v", err)
	}
	if err := notLocked(dir, syscall.ENOLCK); !strings.Contains(err.Error(), "no locks available") || strings.Contains(err.Error(), "another Longbox") {
		t.Errorf("a disk without locks: %v", err)
	}
}

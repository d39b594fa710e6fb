package socket

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUsable(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "lb") // short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.WriteFile(filepath.Join(dir, ".s"), nil, 0o600); err != nil { // left by an interrupted check
		t.Fatal(err)
	}
	path := filepath.Join(dir, "redis.sock")
	if !Usable(path) {
		t.Fatalf("%s is refused", path)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("it leaves %v, %v", entries, err)
	}
	if Usable(filepath.Join(dir, "missing", "redis.sock")) {
		t.Error("a folder that is not there is taken")
	}
	for _, n := range []int{longest, longest + 1} {
		long := path + strings.Repeat("x", n-len(path))
		l, err := net.Listen("unix", long)
		if err == nil {
			l.Close()
		}
		if Usable(long) != (err == nil) {
			t.Errorf("of %d bytes: usable %v, and the kernel says %v", n, Usable(long), err)
		}
	}
}

package stack

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Code that an older version compiled goes; what the running one uses stays.
func TestForgetsOldCompiledCode(t *testing.T) {
	t.Parallel()
	folder, outside := t.TempDir(), t.TempDir()
	old := time.Now().Add(-compiledLife - time.Hour)
	for _, path := range []string{filepath.Join(folder, "wazero-1", "of-an-old-version"), filepath.Join(folder, "wazero-2", "in-use"), filepath.Join(outside, "book")} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if filepath.Base(path) != "in-use" {
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Symlink(outside, filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	if err := forgetCompiled(folder, time.Now().Add(-compiledLife)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		filepath.Join(folder, "wazero-1", "of-an-old-version"): false, filepath.Join(folder, "wazero-2", "in-use"): true, filepath.Join(outside, "book"): true,
	} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s is there: %t (%v)", path, !want, err)
		}
	}
}

package library

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestRoots(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	valid := regexp.MustCompile(`^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$`)
	names := []string{"Comics", "漫画", "my books (2024)", strings.Repeat("x", 200), "-a-", "...b"}
	var folders []string
	for _, name := range names {
		folder := filepath.Join(dir, name)
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		folders = append(folders, folder)
	}
	roots, err := Roots(t.Context(), append(folders, "", folders[0]), filepath.Join(dir, "data"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(roots) != len(names) {
		t.Fatalf("got %d roots, want %d (doubled and empty ones left out)", len(roots), len(names))
	}
	seen := map[string]bool{}
	for i, r := range roots {
		if r.Folder != folders[i] || !valid.MatchString(r.Bucket) || seen[r.Bucket] {
			t.Errorf("root %+v for %s: want a valid bucket name of its own", r, folders[i])
		}
		seen[r.Bucket] = true
	}
	if !strings.HasPrefix(roots[2].Bucket, "my-books-2024-") {
		t.Errorf("bucket %q does not start with the folder's name", roots[2].Bucket)
	}
	again, err := Roots(t.Context(), folders, dir+"-elsewhere", nil)
	if err != nil {
		t.Fatal(err)
	}
	if again[0] != roots[0] {
		t.Errorf("the name changed from %v to %v", roots[0], again[0])
	}
	want := roots[0].Folder + "=" + roots[0].Bucket + ";" + roots[1].Folder + "=" + roots[1].Bucket
	if got := Environment(roots[:2]); got != want {
		t.Errorf("environment %q, want %q", got, want)
	}
}

func TestRootsRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "book.cbz")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ folder, data, want string }{
		"missing":         {filepath.Join(dir, "nothing"), "/elsewhere", "does not exist"},
		"file":            {file, "/elsewhere", "is a file"},
		"data inside":     {dir, filepath.Join(dir, "deep", "data"), "contains the data folder"},
		"data itself":     {dir, dir, "contains the data folder"},
		"ambiguous names": {dir + ";x", "/elsewhere", "semicolon"},
		"backslash":       {dir + `\x`, "/elsewhere", "backslash"},
		"control":         {dir + "\u0085x", "/elsewhere", "control character"},
		"no UTF-8":        {dir + "\xe9", "/elsewhere", "UTF-8"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Roots(t.Context(), []string{c.folder}, c.data, nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
	if _, err := Roots(t.Context(), make([]string, most+1), "/elsewhere", nil); err == nil {
		t.Error("no error for too many folders")
	}
}

// Links to folders are not followed. The start names them, because a library of links would be empty.
func TestSayLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	roots := []Root{{Folder: filepath.Join(dir, "none")}, {Folder: filepath.Join(dir, "one")}, {Folder: filepath.Join(dir, "many")}, {Folder: filepath.Join(dir, "gone")}}
	for _, r := range roots[:3] {
		if err := os.MkdirAll(filepath.Join(r.Folder, "folder"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"none/.hidden": "folder", "none/broken": "nothing", "none/self": "self", "none/null": "/dev/null",
		"none/served": "../one", "one/man\nga": dir, "many/1": dir, "many/2": dir, "many/3": dir, "many/4": dir} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	var said []string
	SayLinks(roots, func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) })
	want := "Longbox: library folder " + dir + "/one contains links to folders (man\\nga), which Longbox does not follow: name their targets in LIBRARY"
	if len(said) != 2 || said[0] != want || !strings.Contains(said[1], "/many contains links") || !strings.Contains(said[1], ", ...), which") {
		t.Errorf("said %q, want %q and one about many", said, want)
	}
}

// A disk that does not answer is named, and does not keep the start from being stopped.
func TestSilentDiskIsNamed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), slow+time.Second)
		defer cancel()
		hang, said := make(chan struct{}), make(chan string, 1)
		defer close(hang)
		say := func(format string, args ...any) { said <- fmt.Sprintf(format, args...) }
		if err := answered(ctx, "/books", say, func() error { <-hang; return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if got, want := <-said, "Longbox: waiting for library folder /books: its disk does not answer"; got != want {
			t.Errorf("said %q, want %q", got, want)
		}
	})
}

// Opening a named pipe hangs until somebody writes to it.
func TestRootsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	defer func() { // Lets the check end.
		if f, err := os.OpenFile(pipe, os.O_RDWR, 0); err == nil {
			f.Close()
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := Roots(ctx, []string{pipe}, "/elsewhere", t.Logf)
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it still waits for the folder")
	}
}

// Package library turns folders given by the user into read-only library roots.
package library

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Root is a folder and the name of the bucket that serves it.
type Root struct{ Folder, Bucket string }

// most is the maximum number of roots.
const most = 100

// slow is the time after which Roots says that a folder does not answer.
const slow = 3 * time.Second

// Roots checks the folders and names their buckets. The name depends only on the path. The data folder must not be
// inside a root: its secrets would be served with the books. It reports with say which folder it waits for.
func Roots(ctx context.Context, folders []string, dataDir string, say func(string, ...any)) ([]Root, error) {
	if len(folders) > most {
		return nil, fmt.Errorf("LIBRARY names %d folders, at most %d are allowed", len(folders), most)
	}
	var roots []Root
	seen := map[string]bool{}
	for _, folder := range folders {
		if folder == "" {
			continue
		}
		abs, err := filepath.Abs(folder)
		if err != nil {
			return nil, fmt.Errorf("library folder %s: %w", folder, err)
		}
		if seen[abs] {
			continue
		}
		seen[abs] = true
		if err := answered(ctx, abs, say, func() error { return check(abs, dataDir) }); err != nil {
			return nil, err
		}
		roots = append(roots, Root{Folder: abs, Bucket: bucket(abs)})
	}
	return roots, nil
}

// answered runs a check of a folder. It ends with ctx even if the check hangs: a network disk whose server is gone may
// not answer for minutes, or ever.
func answered(ctx context.Context, folder string, say func(string, ...any), check func() error) error {
	timer := time.AfterFunc(slow, func() { say("Longbox: waiting for library folder %s: its disk does not answer", folder) })
	defer timer.Stop()
	done := make(chan error, 1)
	go func() { done <- check() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func check(folder, dataDir string) error {
	if strings.ContainsAny(folder, `;=\`) || strings.ContainsFunc(folder, unicode.IsControl) || !utf8.ValidString(folder) {
		return fmt.Errorf("library folder %q: its path contains a semicolon, equals sign, backslash or control character, or is not UTF-8: rename it", folder)
	}
	f, err := os.Open(folder)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("library folder %s does not exist: check LIBRARY", folder)
	case err != nil:
		return fmt.Errorf("library folder %s cannot be read: give this user read and execute permission on it (%w)", folder, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("library folder %s: %w", folder, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("library folder %s is a file: name the folder that contains it", folder)
	}
	if _, err := f.ReadDir(1); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("library folder %s cannot be listed: give this user read permission on it (%w)", folder, err)
	}
	if _, err := os.Stat(folder + "/."); err != nil {
		return fmt.Errorf("library folder %s cannot be entered: give this user execute permission on it (%w)", folder, err)
	}
	return checkApart(folder, dataDir)
}

// SayLinks says which roots contain links to folders: they are not followed, and a library of links would be empty. A
// link may lead to a disk that does not answer, so the start does not wait for it.
func SayLinks(roots []Root, say func(string, ...any)) {
	var served []os.FileInfo
	for _, r := range roots {
		if info, err := os.Stat(r.Folder); err == nil {
			served = append(served, info)
		}
	}
	for _, r := range roots {
		if names := links(r.Folder, served); len(names) > 0 {
			say("Longbox: library folder %s contains links to folders (%s), which Longbox does not follow: name their targets in LIBRARY",
				r.Folder, strings.Join(names, ", "))
		}
	}
}

// links returns the names of a folder's links to folders that are not served; of more than three only three, and "...".
func links(folder string, served []os.FileInfo) (names []string) {
	f, err := os.Open(folder)
	if err != nil {
		return nil
	}
	defer f.Close()
	for {
		entries, err := f.ReadDir(1000)
		for _, e := range entries {
			if e.Type()&os.ModeSymlink == 0 || strings.HasPrefix(e.Name(), ".") {
				continue
			}
			target, err := os.Stat(filepath.Join(folder, e.Name()))
			if err != nil || !target.IsDir() || slices.ContainsFunc(served, func(s os.FileInfo) bool { return os.SameFile(s, target) }) {
				continue
			}
			if len(names) == 3 {
				return append(names, "...")
			}
			names = append(names, strings.Trim(strconv.Quote(e.Name()), `"`))
		}
		if err != nil {
			return names
		}
	}
}

func checkApart(folder, dataDir string) error {
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return fmt.Errorf("library folder %s: %w", folder, err)
	}
	rel, err := filepath.Rel(real, dataDir)
	if err != nil {
		return fmt.Errorf("library folder %s: %w", folder, err)
	}
	if rel != ".." && !strings.HasPrefix(rel, "../") {
		return fmt.Errorf("library folder %s contains the data folder %s: choose another DATA_DIR", folder, dataDir)
	}
	return nil
}

// bucket returns a valid bucket name (3–63 lower-case letters, digits and hyphens) from the folder's name and a hash of
// its path.
func bucket(folder string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(filepath.Base(folder)) {
		if b.Len() == 40 {
			break
		}
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	name := strings.Trim(b.String(), "-")
	if name == "" {
		name = "library"
	}
	sum := sha256.Sum256([]byte(folder))
	return name + "-" + hex.EncodeToString(sum[:4])
}

// Environment returns the value of LIBRARY_ROOTS: folder=bucket pairs separated by semicolons.
func Environment(roots []Root) string {
	pairs := make([]string, len(roots))
	for i, r := range roots {
		pairs[i] = r.Folder + "=" + r.Bucket
	}
	return strings.Join(pairs, ";")
}

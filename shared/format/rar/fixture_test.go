package rar_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/rar"
	"github.com/longbox/longbox/shared/testkit"
)

// TestFixtures reads archives that WinRAR wrote: solid and not, compressed and stored, encrypted.
func TestFixtures(t *testing.T) {
	t.Parallel()
	root := testkit.Fixtures(t)
	for name, want := range map[string]struct {
		pages int
		kind  archive.Kind
	}{
		"archives/rar4.rar":                      {3, ""},
		"archives/rar4-solid.rar":                {3, ""},
		"archives/rar4-encrypted.rar":            {0, archive.Encrypted},
		"archives/rar5.rar":                      {1, ""},
		"archives/rar5-solid.rar":                {3, ""},
		"archives/rar5-encrypted.rar":            {0, archive.Encrypted},
		"library/comics/RAR/Rar 4 001.cbr":       {3, ""},
		"library/comics/RAR/Rar 5 solid 002.cbr": {3, ""},
		"broken/encrypted.cbr":                   {0, archive.Encrypted},
		"odd/wrong extension.cbr":                {0, archive.NotArchive},
	} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
			if err != nil {
				t.Fatal(err)
			}
			dir, err := rar.ReadDirectory(bytes.NewReader(b), int64(len(b)), archive.Limits{})
			var pages []archive.Entry
			if err == nil {
				pages = archive.Pages(dir.Entries)
				err = archive.CheckPages(pages)
			}
			var problem *archive.Error
			if want.kind != "" {
				if !errors.As(err, &problem) || problem.Kind != want.kind {
					t.Fatalf("%v, want %s", err, want.kind)
				}
				return
			}
			if err != nil || len(pages) != want.pages {
				t.Fatalf("%d pages, %v", len(pages), err)
			}
			sequential := map[int64]archive.Entry{}
			for _, p := range pages {
				if p.Method == archive.SolidRAR {
					sequential[p.Offset] = p
					continue
				}
				r, err := p.Open(bytes.NewReader(b[p.Offset:p.Offset+p.Length]), archive.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				if got, err := io.ReadAll(r); err != nil || int64(len(got)) != p.Size {
					t.Errorf("%s (method %x): %d bytes, %v", p.Name, p.Method, len(got), err)
				}
			}
			seen := 0
			err = rar.Walk(bytes.NewReader(b), archive.Limits{}, sequential, func(n int64, content io.Reader) error {
				seen++
				got, err := io.ReadAll(content)
				if int64(len(got)) != sequential[n].Size {
					t.Errorf("number %d: %d bytes", n, len(got))
				}
				return err
			})
			if err != nil || seen != len(sequential) {
				t.Errorf("%d of %d, %v", seen, len(sequential), err)
			}
			t.Logf("%d sequential of %d", len(sequential), len(pages))
		})
	}
}

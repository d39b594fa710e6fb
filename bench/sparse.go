package main

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// A sparse book has 5 stored pages of 10 MB each, which are holes in the file. It is 50 MB long but takes only some
// kilobytes of disk. Its index is readable like any other; the pages are not images.
const (
	sparsePages = 5
	sparsePage  = 10 << 20
)

// sparseName returns the key of a book below its library, 20 per series.
func sparseName(i int) string {
	series := fmt.Sprintf("Series %05d", i/20)
	return series + "/" + fmt.Sprintf("%s #%02d.cbz", series, i%20+1)
}

// sparseComics writes n sparse books. All have different checksums, so none is a copy of another.
func sparseComics(dir string, n int) error {
	var all errgroup.Group
	all.SetLimit(8)
	for i := range n {
		if i%20 == 0 {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, sparseName(i))), 0o755); err != nil {
				return err
			}
		}
		all.Go(func() error { return sparseComic(filepath.Join(dir, sparseName(i)), i) })
	}
	return all.Wait()
}

func sparseComic(path string, i int) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z := zip.NewWriter(&holes{f: f})
	for page := range sparsePages {
		var id [8]byte
		binary.BigEndian.PutUint64(id[:], uint64(i*sparsePages+page))
		w, err := z.CreateRaw(&zip.FileHeader{Name: fmt.Sprintf("%02d.jpg", page+1), Method: zip.Store, CRC32: crc32.ChecksumIEEE(id[:]),
			CompressedSize64: sparsePage, UncompressedSize64: sparsePage})
		if err != nil {
			return err
		}
		if err := z.Flush(); err != nil {
			return err
		}
		for range sparsePage / len(nothing) {
			if _, err := w.Write(nothing[:]); err != nil {
				return err
			}
		}
	}
	return z.Close()
}

// holes writes a file and skips blocks of zeros.
type holes struct{ f *os.File }

var nothing [1 << 20]byte

func (h *holes) Write(p []byte) (int, error) {
	if len(p) == len(nothing) && &p[0] == &nothing[0] {
		_, err := h.f.Seek(int64(len(p)), io.SeekCurrent)
		return len(p), err
	}
	return h.f.Write(p)
}

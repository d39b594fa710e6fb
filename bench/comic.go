package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// picture returns a JPEG that depends only on its parameters: gradients, halftone and noise (0 to 255), like a scanned
// page.
func picture(width, height, noise, quality int, seed uint64) ([]byte, error) {
	random := rand.New(rand.NewPCG(seed, 1))
	img := image.NewYCbCr(image.Rect(0, 0, width, height), image.YCbCrSubsampleRatio420)
	for y := range height {
		for x := range width {
			v := (x*200/width + y*50/height + int(seed)*13) & 255
			if (x/3+y/3)%7 == 0 {
				v /= 2
			}
			img.Y[img.YOffset(x, y)] = color.Gray{Y: uint8(min(v+random.IntN(noise+1), 255))}.Y
		}
	}
	for i := range img.Cb {
		img.Cb[i], img.Cr[i] = uint8(100+i%56), uint8(110+i%40)
	}
	var b bytes.Buffer
	err := jpeg.Encode(&b, img, &jpeg.Options{Quality: quality})
	return b.Bytes(), err
}

// marked returns the JPEG with a comment, which makes its bytes unique.
func marked(picture []byte, n int) []byte {
	comment := fmt.Appendf(nil, "%08d", n)
	out := append([]byte{}, picture[:2]...)
	out = append(out, 0xff, 0xfe)
	out = binary.BigEndian.AppendUint16(out, uint16(len(comment)+2))
	return append(append(out, comment...), picture[2:]...)
}

// entry is one packed file of an archive.
type entry struct {
	header zip.FileHeader
	packed []byte
}

func newEntry(name string, data []byte, deflated bool) (entry, error) {
	e := entry{packed: data, header: zip.FileHeader{Name: name, Method: zip.Store, CRC32: crc32.ChecksumIEEE(data), UncompressedSize64: uint64(len(data))}}
	if deflated {
		var b bytes.Buffer
		w, err := flate.NewWriter(&b, flate.DefaultCompression)
		if err != nil {
			return e, err
		}
		if _, err := w.Write(data); err != nil {
			return e, err
		}
		if err := w.Close(); err != nil {
			return e, err
		}
		e.header.Method, e.packed = zip.Deflate, b.Bytes()
	}
	e.header.CompressedSize64 = uint64(len(e.packed))
	return e, nil
}

// writeComic writes a CBZ and creates its folders.
func writeComic(path string, entries []entry) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z := zip.NewWriter(f)
	for _, e := range entries {
		w, err := z.CreateRaw(&e.header)
		if err != nil {
			return err
		}
		if _, err := w.Write(e.packed); err != nil {
			return err
		}
	}
	return z.Close()
}

const pageCount = 200

// bigComic writes a book of 200 pages of about 1.4 MB, with hard links for further books: many books, but one file in
// the machine's cache.
func bigComic(dir string, deflated bool, books int) error {
	const pictures = 4
	var entries []entry
	for i := range pageCount {
		name := fmt.Sprintf("page %03d.jpg", i+1)
		if i >= pictures { // The same bytes under another name.
			e := entries[i%pictures]
			e.header.Name = name
			entries = append(entries, e)
			continue
		}
		jpg, err := picture(1600, 2400, 36, 80, uint64(i))
		if err != nil {
			return err
		}
		e, err := newEntry(name, jpg, deflated)
		if err != nil {
			return err
		}
		entries = append(entries, e)
	}
	first := filepath.Join(dir, "Series", bigName(0))
	if err := writeComic(first, entries); err != nil {
		return err
	}
	for n := 1; n < books; n++ {
		if err := os.Link(first, filepath.Join(dir, "Series", bigName(n))); err != nil {
			return err
		}
	}
	return nil
}

func bigName(n int) string { return fmt.Sprintf("Series %04d.cbz", n) }

// smallComics writes n books of 5 small pages, 20 per series, every second one with a ComicInfo.xml. All differ in
// their bytes.
func smallComics(dir string, n int) error {
	var pictures [][]byte
	for i := range 5 {
		jpg, err := picture(320, 480, 12, 75, uint64(i))
		if err != nil {
			return err
		}
		pictures = append(pictures, jpg)
	}
	for i := range n {
		var entries []entry
		for j, p := range pictures {
			e, err := newEntry(fmt.Sprintf("%02d.jpg", j+1), marked(p, i*len(pictures)+j), false)
			if err != nil {
				return err
			}
			entries = append(entries, e)
		}
		series, number := i/20, i%20+1
		if i%2 == 0 {
			info := fmt.Sprintf(`<?xml version="1.0"?><ComicInfo><Series>Series %d</Series><Number>%d</Number><Title>Part %d</Title>`+
				`<Writer>A. Writer</Writer><Publisher>Press</Publisher><Genre>Adventure, Drama</Genre><PageCount>5</PageCount></ComicInfo>`, series, number, number)
			e, err := newEntry("ComicInfo.xml", []byte(info), true)
			if err != nil {
				return err
			}
			entries = append(entries, e)
		}
		name := fmt.Sprintf("Series %04d", series)
		if err := writeComic(filepath.Join(dir, name, fmt.Sprintf("%s #%02d.cbz", name, number)), entries); err != nil {
			return err
		}
	}
	return nil
}

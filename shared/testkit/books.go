package testkit

import (
	"archive/zip"
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"path/filepath"
	"testing"
)

// JPEG returns a small image that depends on n.
func JPEG(t testing.TB, width, height, n int) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			img.Set(x, y, color.RGBA{uint8(x*7 + n*31), uint8(y*5 + n*17), uint8((x ^ y) + n), 255})
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 80}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// File is one entry of an archive to build.
type File struct {
	Name    string
	Data    []byte
	Deflate bool
}

// Zip builds a ZIP archive.
func Zip(t testing.TB, files ...File) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.Name, Method: zip.Store}
		if f.Deflate {
			h.Method = zip.Deflate
		}
		e, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Write(f.Data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Comic returns a CBZ with n pages, 1.jpg to n.jpg, and a ComicInfo.xml if info is not empty.
func Comic(t testing.TB, seed, n int, info string) []byte {
	t.Helper()
	var files []File
	for i := 1; i <= n; i++ {
		files = append(files, File{Name: fmt.Sprintf("%d.jpg", i), Data: JPEG(t, 60, 90, seed*100+i)})
	}
	if info != "" {
		files = append(files, File{Name: "ComicInfo.xml", Data: []byte(`<?xml version="1.0"?><ComicInfo>` + info + `</ComicInfo>`), Deflate: true})
	}
	return Zip(t, files...)
}

// WriteFile writes a file below dir and creates its folders.
func WriteFile(t testing.TB, dir, name string, data []byte) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

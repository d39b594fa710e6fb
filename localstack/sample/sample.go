// Package sample creates a small library of comics for trying Longbox: two series drawn in code, without downloads.
package sample

import (
	"archive/zip"
	"encoding/xml"
	"errors"
	"fmt"
	"image/jpeg"
	"io"
	"os"
	"path/filepath"
	"time"
)

// series is one made-up series.
type series struct {
	name     string
	title    string
	books    int
	pages    int
	manga    string // ComicInfo's reading direction.
	language string
	summary  string
	hue      float64
}

var all = []series{
	{name: "The Paper Boat", title: "The Paper Boat", books: 3, pages: 8, manga: "No", language: "en",
		summary: "A boat of folded paper goes down the river, one volume at a time.", hue: 0.58},
	{name: "灯台 Lighthouse", title: "灯台", books: 2, pages: 6, manga: "YesAndRightToLeft", language: "ja",
		summary: "A keeper, a light and the sea. Read from right to left.", hue: 0.08},
}

// comicInfo is the part of ComicInfo.xml that the sample uses.
type comicInfo struct {
	XMLName     xml.Name `xml:"ComicInfo"`
	Title       string
	Series      string
	Number      int
	Volume      int
	Summary     string
	Year        int
	Writer      string
	Genre       string
	PageCount   int
	LanguageISO string
	Manga       string
}

// Write creates the library in dir unless it exists. An interrupted run leaves nothing.
func Write(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("sample library: %w", err)
	}
	fresh := dir + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("sample library: %w", err)
	}
	for _, s := range all {
		if err := s.write(fresh); err != nil {
			return fmt.Errorf("sample library: %w", err)
		}
	}
	if err := os.Rename(fresh, dir); err != nil {
		return fmt.Errorf("sample library: %w", err)
	}
	return nil
}

func (s series) write(dir string) error {
	folder := filepath.Join(dir, s.name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for number := 1; number <= s.books; number++ {
		f, err := os.OpenFile(filepath.Join(folder, fmt.Sprintf("%s %02d.cbz", s.name, number)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		if err := errors.Join(s.book(f, number), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// book writes one CBZ. Pages are stored (JPEG does not compress), the metadata is deflated.
func (s series) book(w io.Writer, number int) error {
	z := zip.NewWriter(w)
	for page := 1; page <= s.pages; page++ {
		entry, err := z.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("%03d.jpg", page), Method: zip.Store, Modified: drawn})
		if err != nil {
			return err
		}
		if err := jpeg.Encode(entry, draw(s.hue, number, page, s.pages), &jpeg.Options{Quality: 82}); err != nil {
			return err
		}
	}
	entry, err := z.CreateHeader(&zip.FileHeader{Name: "ComicInfo.xml", Method: zip.Deflate, Modified: drawn})
	if err != nil {
		return err
	}
	if _, err := io.WriteString(entry, xml.Header); err != nil {
		return err
	}
	info := comicInfo{
		Title: fmt.Sprintf("%s %d", s.title, number), Series: s.title, Number: number, Volume: number, Summary: s.summary,
		Year: drawn.Year(), Writer: "Longbox", Genre: "Sample", PageCount: s.pages, LanguageISO: s.language, Manga: s.manga,
	}
	if err := xml.NewEncoder(entry).Encode(info); err != nil {
		return err
	}
	return z.Close()
}

// drawn is the date of every page, so that the sample has the same bytes everywhere.
var drawn = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

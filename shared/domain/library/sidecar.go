package library

import (
	"path"
	"slices"
	"strings"

	"github.com/longbox/longbox/shared/format/mediatype"
)

// The kinds of sidecars: files beside books that say something of them.
const (
	PackageSidecar = "opf"    // a package document of a book or of the books of a folder, as calibre writes it
	SeriesSidecar  = "series" // series.json of a folder, as Mylar writes it
	CoverSidecar   = "cover"  // a picture of a series
)

// coverNames are what pictures of a series are called, without their extension.
var coverNames = []string{"cover", "default", "folder", "poster", "series"}

// Sidecar tells what a key, relative to the library's root, is besides a book, and what it is about: for
// metadata.opf the folder with its slash, for another package document its own key without the extension, else the
// folder. The kind is "" for what is no sidecar; in the root there are none but those of single books.
func Sidecar(key string) (kind, about string) {
	folder, name := path.Split(key)
	extension := path.Ext(name)
	stem := strings.TrimSuffix(name, extension)
	switch extension = strings.ToLower(extension); {
	case extension == ".opf" && !strings.EqualFold(stem, "metadata") && stem != "":
		return PackageSidecar, folder + stem
	case folder == "":
		return "", ""
	case extension == ".opf" && stem != "":
		return PackageSidecar, folder
	case extension == ".json" && strings.EqualFold(stem, "series"):
		return SeriesSidecar, strings.TrimSuffix(folder, "/")
	case mediatype.Servable(mediatype.ByExtension(extension)) && slices.Contains(coverNames, strings.ToLower(stem)):
		return CoverSidecar, strings.TrimSuffix(folder, "/")
	}
	return "", ""
}

// About are what the package documents of a book are about, the one that counts more first.
func About(book string) []string {
	folder, _ := path.Split(book)
	return []string{strings.TrimSuffix(book, path.Ext(book)), folder}
}

// Sidecars returns the test whether a key is a sidecar that a library heeds: none that is hidden or that a pattern
// excludes, and package documents only where packages says so.
func Sidecars(patterns string, packages bool) (func(key string) (kind, about string), error) {
	excluded, err := Excluded(patterns)
	if err != nil {
		return nil, err
	}
	return func(key string) (string, string) {
		kind, about := Sidecar(key)
		if kind == "" || Hidden(key) || kind == PackageSidecar && !packages || excluded(key) {
			return "", ""
		}
		return kind, about
	}, nil
}

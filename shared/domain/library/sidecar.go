package library

import (
	"path"
	"slices"
	"strings"

	"github.com/longbox/longbox/shared/format/mediatype"
)

// The kinds of sidecars, the files beside books that describe them.
const (
	PackageSidecar = "opf"    // OPF package document of a book or of a folder's books, as calibre writes it
	SeriesSidecar  = "series" // series.json of a folder, as Mylar writes it
	CoverSidecar   = "cover"  // picture of a series
)

// coverNames are the file names of series pictures, without extension.
var coverNames = []string{"cover", "default", "folder", "poster", "series"}

// Sidecar returns the kind of a sidecar by its key, relative to the library's root, and what it describes. about is the
// folder with its slash for metadata.opf, the own key without extension for another package document, and the folder
// for the rest. kind is "" for any other file; in the root, only sidecars of single books count.
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

// About lists the abouts of the package documents that may describe a book, highest precedence first.
func About(book string) []string {
	folder, _ := path.Split(book)
	return []string{strings.TrimSuffix(book, path.Ext(book)), folder}
}

// Sidecars returns a function like Sidecar that skips hidden and excluded files, and package documents unless packages
// is set.
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

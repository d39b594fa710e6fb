package strategy

import (
	"encoding/json"
	"strings"

	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Options are a library's strategies and their configurations.
type Options struct {
	Series, Book, Number                   string
	SeriesConfig, BookConfig, NumberConfig json.RawMessage
}

// Set holds the strategies of a library, ready for use.
type Set struct {
	series series
	book   book
	number string
	byName bool // titles consist of series and position
}

// New validates the strategies and lists every error.
func New(o Options) (*Set, []fault.Field) {
	s := &Set{number: o.Number, byName: o.Book == "series_name"}
	var bad, more []fault.Field
	s.series, bad = newSeries(o.Series, parseConfig("seriesConfig", o.SeriesConfig))
	s.book, more = newBook(o.Book, parseConfig("bookConfig", o.BookConfig))
	bad = append(bad, more...)
	switch o.Number {
	case "file_order", "metadata", "filename", "smart":
	default:
		bad = append(bad, fault.Field{Field: "numberStrategy", Message: "must be file_order, metadata, filename or smart"})
	}
	bad = append(bad, parseConfig("numberConfig", o.NumberConfig).bad...)
	if len(bad) > 0 {
		return nil, bad
	}
	return s, nil
}

// Unknown lists the members of the configurations of series and books that no strategy has, and says which the chosen
// one has. What is stored already goes on without this.
func Unknown(o Options) []fault.Field {
	series, book := parseConfig("seriesConfig", o.SeriesConfig), parseConfig("bookConfig", o.BookConfig)
	_, _ = newSeries(o.Series, series)
	_, _ = newBook(o.Book, book)
	return append(series.unknown(), book.unknown()...)
}

// Place is the series of a file, and what its folders say besides.
type Place struct {
	Path      string // id of the series in its library: a folder, a key, or "/" and a name
	Name      string // of the series, before the library's title rules
	Publisher string
	Imprint   string
	Author    string
	Extra     map[string]string // for the series' custom metadata
	Volume    *int              // from a folder
	Book      string            // title from the path
	Later     bool              // the metadata may name another series
}

// Meta is the metadata of a file that strategies use.
type Meta struct {
	Title, Series   string
	Number, Chapter *float64
	Volume          *int
}

// File is a file as the strategies interpret it.
type File struct {
	Place
	Title    string
	Volume   *int
	Chapter  *float64
	Number   *float64
	Position bool // the number is the position in the series
}

// Read interprets a key; meta is nil until the file was read.
func (s *Set) Read(key string, meta *Meta) File {
	f := File{Place: s.series.place(key)}
	if meta != nil && f.Later {
		f.Place = bySeries(f.Place, meta)
	}
	name := naming.Detect(key)
	f.Title, f.Volume, f.Chapter = s.book(key, name, f.Place, meta)
	f.Title = naming.Line(f.Title)
	if f.Volume == nil {
		f.Volume = f.Place.Volume
	}
	if s.number == "metadata" || s.number == "smart" {
		if meta != nil {
			f.Number = meta.Number
		}
	}
	if f.Number == nil && (s.number == "filename" || s.number == "smart") {
		f.Number = name.Number
	}
	f.Position = s.number == "file_order" || s.number == "smart" && f.Number == nil
	return f
}

// Positioned reports whether titles consist of series and position, and are thus known only after all files of a
// series: see Title.
func (s *Set) Positioned() bool { return s.byName }

// Positions reports whether every number is a position.
func (s *Set) Positions() bool { return s.number == "file_order" }

// PositionsSome reports whether a book's number is its position if neither the file nor its name has one.
func (s *Set) PositionsSome() bool { return s.number == "smart" }

// Arranges reports whether any field of a book depends on the other books of its series.
func (s *Set) Arranges() bool { return s.Positions() || s.PositionsSome() || s.Positioned() }

// Packages reports whether package documents beside books are read (calibre's readOpfMetadata).
func (s *Set) Packages() bool { return !s.series.alone }

// stem returns the title of a file by its name.
func stem(key string) string { return strings.TrimSpace(naming.Stem(key)) }

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

// Set are strategies ready for use.
type Set struct {
	series series
	book   book
	number string
	byName bool // the title is made of the series and the position
}

// New checks the strategies and lists everything that is wrong with them.
func New(o Options) (*Set, []fault.Field) {
	s := &Set{number: o.Number}
	var bad []fault.Field
	var more []fault.Field
	if s.series, more = newSeries(o.Series, parseConfig("seriesConfig", o.SeriesConfig)); more != nil {
		bad = append(bad, more...)
	}
	if s.book, more = newBook(o.Book, parseConfig("bookConfig", o.BookConfig)); more != nil {
		bad = append(bad, more...)
	}
	switch o.Number {
	case "file_order", "metadata", "filename", "smart":
	default:
		bad = append(bad, fault.Field{Field: "numberStrategy", Message: "must be file_order, metadata, filename or smart"})
	}
	bad = append(bad, parseConfig("numberConfig", o.NumberConfig).bad...)
	s.byName = o.Book == "series_name"
	if len(bad) > 0 {
		return nil, bad
	}
	return s, nil
}

// Unknown lists the members of the configurations of series and books that no strategy has, and says which the chosen one has.
// What is stored already goes on without this.
func Unknown(o Options) []fault.Field {
	series, book := parseConfig("seriesConfig", o.SeriesConfig), parseConfig("bookConfig", o.BookConfig)
	_, _ = newSeries(o.Series, series)
	_, _ = newBook(o.Book, book)
	return append(series.unknown(), book.unknown()...)
}

// Place is the series of a file, and what its folders say besides.
type Place struct {
	Path      string // identifies the series in its library: a folder, a key, or "/" and a name
	Name      string // of the series, before the library's title rules
	Publisher string
	Imprint   string
	Author    string
	Extra     map[string]string // for the series' custom metadata
	Volume    *int              // that a folder names
	Book      string            // title that the path names
	Later     bool              // the metadata may name another series
}

// Meta is what a file says about itself, as far as strategies ask.
type Meta struct {
	Title, Series   string
	Number, Chapter *float64
	Volume          *int
}

// File is a file as the strategies see it.
type File struct {
	Place
	Title    string
	Volume   *int
	Chapter  *float64
	Number   *float64
	Position bool // the number is its position among the files of the series
}

// Read says what a key means; meta is nil until the file was read.
func (s *Set) Read(key string, meta *Meta) File {
	f := File{Place: s.series.place(key)}
	if meta != nil && f.Later {
		f.Place = s.series.placeBy(key, f.Place, *meta)
	}
	name := naming.Detect(key)
	f.Title, f.Volume, f.Chapter = s.book.name(key, name, f.Place, meta)
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

// Positioned tells whether titles are made of the series and the position, and thus only known once all files of a
// series are: see Title.
func (s *Set) Positioned() bool { return s.byName }

// Positions tells whether every number is a position.
func (s *Set) Positions() bool { return s.number == "file_order" }

// PositionsSome tells whether the number of a book is its position where neither the file nor its name says one.
func (s *Set) PositionsSome() bool { return s.number == "smart" }

// Arranges tells whether something of a book depends on the other ones of its series.
func (s *Set) Arranges() bool { return s.Positions() || s.PositionsSome() || s.Positioned() }

// Packages tells whether package documents beside books are read (calibre's readOpfMetadata).
func (s *Set) Packages() bool { return !s.series.alone }

// Stem is the title that a file has by its name.
func stem(key string) string { return strings.TrimSpace(naming.Stem(key)) }

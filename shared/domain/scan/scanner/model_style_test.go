package scanner_test

import (
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
)

// style holds the strategies of a library.
type style struct {
	series, seriesConfig string
	book, bookConfig     string
	number               string
	large                bool // so many files that the guard may hold a scan
	packs                bool // some books are solid archives, for which workers make page packs
	purges               bool // missing books are purged after each scan
}

// most is the maximum number of files, and atOnce how many are added together.
func (s style) most() int {
	if s.large {
		return 26
	}
	return 9
}

func (s style) atOnce() int {
	if s.large {
		return 6
	}
	return 1
}

func (s style) String() string {
	return fmt.Sprintf("%s, large %v, packs %v, purges %v", strings.Join([]string{s.series, s.seriesConfig, s.book, s.bookConfig, s.number}, "|"), s.large, s.packs, s.purges)
}

// plain is the style of half of the runs: only files move books.
var plain = style{series: "series_volume", book: "metadata_first"}

var seriesStyles = [][2]string{
	{"series_volume", ""}, {"series_volume_chapter", ""}, {"publisher_hierarchy", ""}, {"publisher_hierarchy", `{"skipDepth":2,"storeSkippedAs":"shelf"}`},
	{"flat", ""}, {"flat", `{"requireMetadata":true}`}, {"flat", ""}, {"flat", `{"requireMetadata":true}`},
	{"calibre", ""}, {"calibre", `{"seriesMode":"by_author"}`}, {"calibre", `{"seriesMode":"from_metadata"}`}, {"calibre", `{"seriesMode":"from_metadata"}`},
	{"custom", `{"pattern":"^(?P<series>[ST])(?:/deep)?/(?P<book>.+)$","seriesNameTemplate":"The {series}"}`},
}

var bookStyles = [][2]string{
	{"metadata_first", ""}, {"filename", ""}, {"smart", ""}, {"series_name", ""}, {"series_name", ""},
	{"custom", `{"pattern":"^(?P<series>Saga) (?P<volume>\\d+)$","titleTemplate":"{series} no. {volume}","fallback":"smart"}`},
}

// anyStyle returns plain with any numbers, or a random style.
func anyStyle(random *rand.Rand) style {
	s := plain
	s.large, s.packs, s.purges = random.IntN(8) == 0, random.IntN(5) == 0, random.IntN(6) == 0
	s.number = []string{"file_order", "metadata", "filename"}[random.IntN(3)]
	if random.IntN(3) == 0 {
		return s
	}
	series, book := seriesStyles[random.IntN(len(seriesStyles))], bookStyles[random.IntN(len(bookStyles))]
	s.series, s.seriesConfig, s.book, s.bookConfig = series[0], series[1], book[0], book[1]
	s.number = []string{"file_order", "metadata", "filename", "smart", "smart"}[random.IntN(5)]
	return s
}

func (s style) isPlain() bool {
	return s.series == plain.series && s.book == plain.book && s.number != "smart"
}

// byMetadata reports whether the series comes from the metadata. An unreadable book stays where it was, while a new
// library puts it where its name says.
func (s style) byMetadata() bool {
	return s.series == "flat" || s.series == "calibre" && strings.Contains(s.seriesConfig, "from_metadata")
}

// base returns the name of the n-th file of a folder. In other styles than plain, some names contain the series, and
// some no number.
func (s style) base(n int) string {
	if s.isPlain() {
		return fmt.Sprintf("%02d.cbz", n)
	}
	switch n % 4 {
	case 0:
		return fmt.Sprintf("Saga %02d.cbz", n)
	case 1:
		return fmt.Sprintf("[Naruto] v%02d.cbz", n)
	case 2:
		return fmt.Sprintf("%02d.cbz", n)
	default:
		return strings.Repeat(string(rune('a'+n%26)), 1+n/26) + ".cbz"
	}
}

func (s style) key(folder string, n int) string { return path.Join(folder, s.base(n)) }

// after returns the name that follows another.
func (s style) after(base string) string {
	for n := range 1000 {
		if s.base(n) == base {
			return s.base(n + 1)
		}
	}
	panic(base + " is no name of the model")
}

// says returns the metadata of a version of a work, besides its title and the constant parts: other works may have the
// same series, some have none; a few have no number or no meaningful title.
func (s style) says(work, version int) string {
	if s.isPlain() {
		return fmt.Sprintf("<Title>Work %04d version %02d</Title><Number>%d</Number>", work, version, 100+work+version*100)
	}
	info := fmt.Sprintf("<Title>Work %04d version %02d</Title>", work, version)
	if work%4 == 2 {
		info = fmt.Sprintf("<Title>Vol. %04d</Title>", work)
	}
	if (work+version)%3 != 0 {
		info += fmt.Sprintf("<Number>%d</Number>", 100+work+version*100)
	}
	if (work+version)%4 != 0 {
		info += fmt.Sprintf("<Series>Series %d</Series>", (work+version)%3)
	}
	if work%5 == 0 {
		info += fmt.Sprintf("<Volume>%d</Volume>", 1+work%7)
	}
	return info
}

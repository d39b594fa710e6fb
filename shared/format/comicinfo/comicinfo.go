// Package comicinfo reads ComicInfo.xml, schema 2.1, the metadata of comic archives. Real files are full of small
// mistakes: an invalid value is dropped and noted, the rest is kept.
package comicinfo

import (
	"fmt"
	"strings"

	"github.com/longbox/longbox/shared/format/xmllimit"
)

const (
	maxValue    = 64 << 10 // bytes of one value
	maxPages    = 20_000
	maxWarnings = 50
)

// Info is the content of one ComicInfo.xml. Texts are trimmed, and "" if absent; absent numbers are nil. Lists are kept
// as written, comma-separated: see List.
type Info struct {
	Title, Series       string
	Number              string // usually a number, but not always: see NumberValue
	Count, Volume       *int
	AlternateSeries     string
	AlternateNumber     string
	AlternateCount      *int
	Summary, Notes      string
	Year, Month, Day    *int // each checked on its own: see Date
	Writer, Penciller   string
	Inker, Colorist     string
	Letterer            string
	CoverArtist         string
	Editor, Translator  string
	Publisher, Imprint  string
	Genre, Tags         string
	Web                 string // one or more URLs, space-separated
	PageCount           *int
	LanguageISO         string
	Format              string
	BlackAndWhite       *bool
	Manga               string // "", "Yes", "No" or "YesAndRightToLeft"
	Characters, Teams   string
	MainCharacterOrTeam string
	Locations           string
	ScanInformation     string
	StoryArc            string
	StoryArcNumber      string
	SeriesGroup         string
	AgeRating           string
	CommunityRating     *float64 // 0 to 5
	Review              string
	GTIN                string
	LocalizedSeries     string // not in the schema, but written by several programs
	SeriesSort          string // the same
	TitleSort           string // the same
	Pages               []Page
	Warnings            []string // what was dropped, and why
}

// Page describes one image of the archive.
type Page struct {
	Image       int    // index in page order, from 0
	Type        string // FrontCover, InnerCover, Story, …; "" is Story
	DoublePage  bool
	ImageSize   int64 // bytes, 0 when unknown
	Key         string
	Bookmark    string
	ImageWidth  int // pixels, 0 when unknown
	ImageHeight int // pixels, 0 when unknown
}

// Parse reads a ComicInfo.xml. From a truncated or malformed document it returns what could be read, with a warning. An
// error means that there is nothing: no ComicInfo element, or a refused document (xmllimit.ErrDTD,
// xmllimit.ErrTooLarge).
func Parse(b []byte, lim xmllimit.Limits) (*Info, error) {
	root, err := xmllimit.Parse(b, xmllimit.NoDoctype, lim)
	if root == nil {
		return nil, fmt.Errorf("ComicInfo.xml: %w", err)
	}
	if !strings.EqualFold(root.Name, "ComicInfo") {
		return nil, fmt.Errorf("ComicInfo.xml: the root element is %.40q, not ComicInfo", root.Name)
	}
	info := &Info{}
	if err != nil {
		info.warn("malformed, read only up to the error: %v", err)
	}
	fields := info.fields()
	seen := make(map[string]bool, len(root.Children))
	for _, n := range root.Children {
		name := strings.ToLower(n.Name)
		if name == "pages" {
			info.readPages(n)
			continue
		}
		set, known := fields[name]
		if !known || seen[name] {
			continue
		}
		value := strings.TrimSpace(n.Content())
		switch {
		case value == "":
		case len(value) > maxValue:
			info.warn("%s: %d bytes, the limit is %d", n.Name, len(value), maxValue)
		default:
			seen[name] = true
			if problem := set(value); problem != "" {
				info.warn("%s: %.60q %s", n.Name, value, problem)
			}
		}
	}
	info.checkDate()
	return info, nil
}

func (i *Info) warn(format string, args ...any) {
	if len(i.Warnings) < maxWarnings {
		i.Warnings = append(i.Warnings, fmt.Sprintf(format, args...))
	}
}

func (i *Info) readPages(pages *xmllimit.Node) {
	for _, n := range pages.Children {
		if !strings.EqualFold(n.Name, "Page") {
			continue
		}
		if len(i.Pages) == maxPages {
			i.warn("Pages: more than %d", maxPages)
			return
		}
		var p Page
		image := -1
		for _, a := range n.Attrs {
			value := strings.TrimSpace(a.Value)
			if value == "" || len(value) > maxValue {
				continue
			}
			switch strings.ToLower(a.Name.Local) {
			case "image":
				image = i.attribute(a.Name.Local, value, maxPages)
			case "type":
				p.Type = value
			case "doublepage":
				b := boolean(value)
				p.DoublePage = b != nil && *b
			case "imagesize":
				p.ImageSize = int64(max(0, i.attribute(a.Name.Local, value, maxCount)))
			case "key":
				p.Key = value
			case "bookmark":
				p.Bookmark = value
			case "imagewidth":
				p.ImageWidth = max(0, i.attribute(a.Name.Local, value, 1<<20))
			case "imageheight":
				p.ImageHeight = max(0, i.attribute(a.Name.Local, value, 1<<20))
			}
		}
		if image < 0 {
			i.warn("Page: no valid Image attribute")
			continue
		}
		p.Image = image
		i.Pages = append(i.Pages, p)
	}
}

// attribute returns an integer from 0 to limit, or -1. Some programs write -1 for "unknown", which gives no warning.
func (i *Info) attribute(name, value string, limit int) int {
	n, ok := whole(value)
	if ok && n >= 0 && n <= limit {
		return n
	}
	if !ok || n != -1 {
		i.warn("Page: %s %.60q is not a number from 0 to %d", name, value, limit)
	}
	return -1
}

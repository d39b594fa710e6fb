// Package comicinfo reads ComicInfo.xml, schema 2.1: what comic archives say
// about themselves. Files in the wild are full of small mistakes; a value that
// makes no sense is left out and noted, the rest is kept.
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

// Info is the content of one ComicInfo.xml. Texts are trimmed and "" when
// absent, numbers nil. Lists are kept as written, comma-separated: see List.
type Info struct {
	Title, Series       string
	Number              string // mostly but not always a number: see NumberValue
	Count, Volume       *int
	AlternateSeries     string
	AlternateNumber     string
	AlternateCount      *int
	Summary, Notes      string
	Year, Month, Day    *int // each valid by itself: see Date
	Writer, Penciller   string
	Inker, Colorist     string
	Letterer            string
	CoverArtist         string
	Editor, Translator  string
	Publisher, Imprint  string
	Genre, Tags         string
	Web                 string // one or more addresses, space-separated
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
	Warnings            []string // what was left out, and why
}

// Page is what the file says about one image of the archive.
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

// Parse reads a ComicInfo.xml. A document that is cut short or malformed gives
// what could be read, with a warning. An error means that there is nothing: no
// ComicInfo element, or a document that is refused (xmllimit.ErrDTD, xmllimit.ErrTooLarge).
func Parse(b []byte, lim xmllimit.Limits) (*Info, error) {
	root, err := xmllimit.Parse(b, xmllimit.NoDoctype, lim)
	if root == nil {
		return nil, fmt.Errorf("ComicInfo.xml: %w", err)
	}
	if !strings.EqualFold(root.Name, "ComicInfo") {
		return nil, fmt.Errorf("ComicInfo.xml: holds the element %.40q, not ComicInfo", root.Name)
	}
	info := &Info{}
	if err != nil {
		info.warn("malformed, read up to the mistake: %v", err)
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

// attribute returns a whole number from 0 to limit, or -1. The -1 that some
// programs write for "unknown" is not worth a warning.
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

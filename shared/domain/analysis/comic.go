package analysis

import (
	"strconv"
	"strings"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/format/comicinfo"
	"github.com/longbox/longbox/shared/format/isbn"
)

// applyComicInfo applies every element of ComicInfo.xml: to the matching field of the book, else to its custom metadata
// below comicinfo.
func (r *Result) applyComicInfo(i *comicinfo.Info) {
	m := &r.Metadata
	m.Title, m.Series, m.Summary, m.Publisher, m.Imprint = i.Title, i.Series, i.Summary, i.Publisher, i.Imprint
	m.TitleSort = i.TitleSort
	m.Number, m.Volume, m.Count, m.SeriesTotal = i.Number, i.Volume, i.Count, i.Count
	m.Year, m.Month, m.Day = i.Year, i.Month, i.Day
	m.Genre, m.FormatDetail = i.Genre, i.Format
	m.LanguageISO = r.language(i.LanguageISO)
	m.Manga, m.BlackAndWhite = i.IsManga(), i.BlackAndWhite
	m.BookType = bookType(i)
	m.Translator = i.Translator
	for _, credit := range []struct{ names, role string }{
		{i.Writer, "writer"}, {i.Penciller, "penciller"}, {i.Inker, "inker"}, {i.Colorist, "colorist"},
		{i.Letterer, "letterer"}, {i.CoverArtist, "cover_artist"}, {i.Editor, "editor"}, {i.Translator, "translator"},
	} {
		for _, name := range comicinfo.List(credit.names) {
			m.Authors = append(m.Authors, Author{Name: name, Role: credit.role})
		}
	}
	m.limitNames()
	if n, ok := i.NumberValue(); ok {
		r.Number, m.Chapter, m.SeriesPosition = &n, &n, &n
	}
	gtin := i.GTIN
	if n := isbn.Parse(gtin, true); n != "" {
		m.ISBNs = isbnList([]string{n})
	} else if isbn.Wrong(gtin) {
		r.warn("GTIN: " + strconv.Quote(cut.Brief(gtin, 60)) + " is not a valid ISBN or GTIN")
		gtin = ""
	}
	links := i.Links()
	if len(links) > 0 {
		r.Link = links[0]
	} else if i.Web != "" {
		r.warn("Web: " + cut.Brief(i.Web, 60) + " is not an http or https address")
	}
	m.custom("comicinfo", map[string]any{
		"alternateSeries": i.AlternateSeries, "alternateNumber": i.AlternateNumber, "alternateCount": i.AlternateCount,
		"notes": i.Notes, "characters": comicinfo.List(i.Characters), "teams": comicinfo.List(i.Teams), "locations": comicinfo.List(i.Locations),
		"mainCharacterOrTeam": i.MainCharacterOrTeam, "scanInformation": i.ScanInformation, "storyArc": comicinfo.List(i.StoryArc),
		"storyArcNumber": comicinfo.Numbers(i.StoryArcNumber), "seriesGroup": comicinfo.List(i.SeriesGroup), "ageRating": i.AgeRating,
		"communityRating": i.CommunityRating, "review": i.Review, "gtin": gtin, "pageCount": i.PageCount, "seriesSort": i.SeriesSort,
		"web": links[min(1, len(links)):],
	})
	r.AgeRating = i.MinimumAge()
	if i.AgeRating != "" && r.AgeRating == nil && !strings.EqualFold(i.AgeRating, "unknown") && !strings.EqualFold(i.AgeRating, "rating pending") {
		r.warn("AgeRating: " + cut.Brief(i.AgeRating, 60) + " is not an age rating of ComicInfo 2.1")
	}
	for _, t := range []struct{ label, title string }{{"Alternate", i.AlternateSeries}, {"Localized", i.LocalizedSeries}} {
		if t.title != "" && !strings.EqualFold(t.title, i.Series) {
			r.Titles = append(r.Titles, SeriesTitle{Label: t.label, Title: cut.Brief(t.title, 500)})
		}
	}
	r.Direction = i.ReadingDirection()
	r.Genres, r.Tags = comicinfo.List(i.Genre), comicinfo.List(i.Tags)
	r.Warnings = append(r.Warnings, i.Warnings...)
	r.applyPages(i.Pages)
}

// applyPages applies page sizes, and the cover if the file names its page. A size counts only if the image's byte count
// matches: programs convert or add pages and leave ComicInfo.xml unchanged.
func (r *Result) applyPages(pages []comicinfo.Page) {
	named := false
	for _, p := range pages {
		if p.Image < 0 || p.Image >= len(r.Pages) {
			continue
		}
		if strings.Contains(strings.ToLower(p.Type), "frontcover") && !named { // Type is a list
			named = true
			r.Cover = &r.Pages[p.Image].Entry
			if p.Image > 0 {
				r.CoverImage = nil // it belongs to page 1
			}
		}
		if same := p.ImageSize == 0 || p.ImageSize == r.Pages[p.Image].Size; same && p.ImageWidth > 0 && p.ImageHeight > 0 {
			r.Pages[p.Image].Width, r.Pages[p.Image].Height = p.ImageWidth, p.ImageHeight
		}
	}
}

// bookTypes maps values of Format, in lower case, to types of books.
var bookTypes = map[string]string{"one-shot": "oneshot", "one shot": "oneshot", "oneshot": "oneshot", "omnibus": "omnibus", "anthology": "anthology",
	"graphic novel": "graphic_novel", "magazine": "magazine", "artbook": "artbook", "art book": "artbook", "novel": "novel", "light novel": "novel",
	"novella": "novella", "manga": "manga", "comic": "comic", "web comic": "comic", "webcomic": "comic", "webtoon": "comic"}

func bookType(i *comicinfo.Info) string {
	if t, ok := bookTypes[strings.ToLower(i.Format)]; ok {
		return t
	}
	if manga := i.IsManga(); manga != nil && *manga {
		return "manga"
	}
	return ""
}

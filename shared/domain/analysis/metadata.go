package analysis

import (
	"strconv"
	"strings"

	"golang.org/x/text/language"

	"github.com/longbox/longbox/shared/format/comicinfo"
	"github.com/longbox/longbox/shared/format/epub"
)

// Metadata are the fields of a book's metadata record (contract 2.4) that files carry; what is absent is left
// out of the stored document.
type Metadata struct {
	Title          string   `json:"title,omitempty"`
	TitleSort      string   `json:"titleSort,omitempty"`
	Subtitle       string   `json:"subtitle,omitempty"`
	Summary        string   `json:"summary,omitempty"`
	Publisher      string   `json:"publisher,omitempty"`
	Imprint        string   `json:"imprint,omitempty"`
	Genre          string   `json:"genre,omitempty"`
	LanguageISO    string   `json:"languageIso,omitempty"`
	FormatDetail   string   `json:"formatDetail,omitempty"`
	ISBNs          string   `json:"isbns,omitempty"`
	Translator     string   `json:"translator,omitempty"`
	Number         string   `json:"number,omitempty"`
	Volume         *int     `json:"volume,omitempty"`
	Chapter        *float64 `json:"chapter,omitempty"`
	Count          *int     `json:"count,omitempty"`
	Year           *int     `json:"year,omitempty"`
	Month          *int     `json:"month,omitempty"`
	Day            *int     `json:"day,omitempty"`
	Manga          *bool    `json:"manga,omitempty"`
	BlackAndWhite  *bool    `json:"blackAndWhite,omitempty"`
	Authors        []Author `json:"authors,omitempty"`
	Subjects       []string `json:"subjects,omitempty"`
	Series         string   `json:"series,omitempty"`
	SeriesPosition *float64 `json:"seriesPosition,omitempty"`
}

// Author is a person and what they did (contract 2.3, author roles).
type Author struct {
	Name     string  `json:"name"`
	Role     string  `json:"role"`
	SortName *string `json:"sortName,omitempty"`
}

func (r *Result) applyComicInfo(i *comicinfo.Info) {
	m := &r.Metadata
	m.Title, m.Series, m.Summary, m.Publisher, m.Imprint = i.Title, i.Series, i.Summary, i.Publisher, i.Imprint
	m.Number, m.Volume, m.Count = i.Number, i.Volume, i.Count
	m.Year, m.Month, m.Day = i.Year, i.Month, i.Day
	m.Genre, m.FormatDetail = i.Genre, i.Format
	m.LanguageISO = r.language(i.LanguageISO)
	m.Manga, m.BlackAndWhite = i.IsManga(), i.BlackAndWhite
	m.Translator = i.Translator
	for _, credit := range []struct{ names, role string }{
		{i.Writer, "writer"}, {i.Penciller, "penciller"}, {i.Inker, "inker"}, {i.Colorist, "colorist"},
		{i.Letterer, "letterer"}, {i.CoverArtist, "cover_artist"}, {i.Editor, "editor"}, {i.Translator, "translator"},
	} {
		for _, name := range comicinfo.List(credit.names) {
			m.Authors = append(m.Authors, Author{Name: name, Role: credit.role})
		}
	}
	if n, ok := i.NumberValue(); ok {
		r.Number = &n
		m.Chapter = &n
	}
	r.Direction = i.ReadingDirection()
	r.Genres, r.Tags = comicinfo.List(i.Genre), comicinfo.List(i.Tags)
	if links := i.Links(); len(links) > 0 {
		r.Link = links[0]
	}
	r.Warnings = append(r.Warnings, i.Warnings...)
	for _, p := range i.Pages {
		if p.Image >= 0 && p.Image < len(r.Pages) && p.ImageWidth > 0 && p.ImageHeight > 0 {
			r.Pages[p.Image].Width, r.Pages[p.Image].Height = p.ImageWidth, p.ImageHeight
		}
	}
}

// roles maps MARC relator codes to the interface's author roles; a creator without one is the author.
var roles = map[string]string{"": "author", "aut": "author", "ill": "illustrator", "art": "illustrator", "trl": "translator",
	"edt": "editor", "clr": "colorist", "cov": "cover_artist", "ctb": "contributor", "aui": "author", "dsr": "illustrator"}

func (r *Result) applyEPUB(p *epub.Publication) {
	m := &r.Metadata
	m.Title, m.Subtitle, m.Summary, m.Publisher = p.Title, p.Subtitle, p.Description, p.Publisher
	m.TitleSort, m.Series, m.SeriesPosition = p.TitleSort, p.Series, p.Position
	m.LanguageISO = r.language(p.Language)
	m.Year, m.Month, m.Day = optional(p.Year), optional(p.Month), optional(p.Day)
	m.Subjects, m.Genre = p.Subjects, strings.Join(p.Subjects, ", ")
	if len(p.ISBNs) > 0 {
		m.ISBNs = `["` + strings.Join(p.ISBNs, `","`) + `"]`
	}
	for n, list := range [][]epub.Creator{p.Creators, p.Contributors} {
		for _, c := range list {
			role, ok := roles[c.Role]
			if !ok || (n == 1 && c.Role == "") {
				role = "contributor"
			}
			a := Author{Name: c.Name, Role: role}
			if c.FileAs != "" {
				a.SortName = &c.FileAs
			}
			m.Authors = append(m.Authors, a)
		}
	}
	if p.Position != nil {
		n := *p.Position
		r.Number = &n
		m.Number = strconv.FormatFloat(n, 'f', -1, 64)
	}
	r.Direction = p.Direction
	r.Warnings = append(r.Warnings, p.Warnings...)
}

// language is a BCP 47 tag in its canonical spelling; a bad one is left out with a warning.
func (r *Result) language(s string) string {
	if s == "" {
		return ""
	}
	tag, err := language.Parse(s)
	if err != nil {
		r.warn("the language " + strconv.Quote(s) + " is no BCP 47 tag")
		return ""
	}
	return tag.String()
}

func optional(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

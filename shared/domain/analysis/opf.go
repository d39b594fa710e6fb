package analysis

import (
	"strconv"
	"strings"

	"github.com/longbox/longbox/shared/format/epub"
)

// roles maps MARC relator codes to the interface's author roles; a creator without one is the author.
var roles = map[string]string{"": "author", "aut": "author", "ill": "illustrator", "art": "illustrator", "trl": "translator",
	"edt": "editor", "clr": "colorist", "cov": "cover_artist", "ctb": "contributor", "aui": "author", "dsr": "illustrator",
	"wam": "writer", "ink": "inker", "pen": "penciller", "let": "letterer", "aft": "author", "win": "contributor"}

// roleNames are the same roles written as words.
var roleNames = map[string]string{"author": "author", "writer": "writer", "illustrator": "illustrator", "artist": "illustrator",
	"translator": "translator", "editor": "editor", "colorist": "colorist", "letterer": "letterer", "inker": "inker", "penciller": "penciller"}

func roleOf(c epub.Creator, contributor bool) string {
	code := c.Role[strings.LastIndexAny(c.Role, "/#:")+1:] // also as an address, or with its scheme
	role, ok := roles[code]
	if !ok {
		role, ok = roleNames[code]
	}
	if !ok || contributor && code == "" {
		return "contributor"
	}
	return role
}

func (r *Result) applyEPUB(p *epub.Publication) {
	m := &r.Metadata
	m.Title, m.Subtitle, m.Summary, m.Publisher = p.Title, p.Subtitle, p.Description, p.Publisher
	m.TitleSort, m.Series, m.SeriesPosition = p.TitleSort, p.Series, p.Position
	m.Edition, m.OriginalTitle, m.OriginalYear = p.Edition, p.Original, optional(p.OriginalYear)
	var languages []string
	for _, l := range p.Languages {
		if tag := r.language(l); tag != "" {
			languages = append(languages, tag)
		}
	}
	if len(languages) > 0 {
		m.LanguageISO = languages[0]
	}
	m.Year, m.Month, m.Day = optional(p.Year), optional(p.Month), optional(p.Day)
	m.Subjects, m.Genre = p.Subjects, strings.Join(p.Subjects, ", ")
	if len(p.ISBNs) > 0 {
		m.ISBNs = isbnList(p.ISBNs)
	}
	for n, list := range [][]epub.Creator{p.Creators, p.Contributors} {
		for _, c := range list {
			a := Author{Name: c.Name, Role: roleOf(c, n == 1)}
			if c.FileAs != "" {
				a.SortName = &c.FileAs
			}
			if a.Role == "translator" && m.Translator == "" {
				m.Translator = c.Name
			}
			m.Authors = append(m.Authors, a)
		}
	}
	if p.Position != nil {
		n := *p.Position
		r.Number = &n
		m.Number = strconv.FormatFloat(n, 'f', -1, 64)
	}
	extra := map[string]any{"rights": p.Rights, "rating": p.Rating}
	if len(languages) > 1 {
		extra["languages"] = languages
	}
	m.custom("epub", extra)
	if p.Direction != "" {
		r.Direction = p.Direction
	}
	r.Genres = p.Subjects
	if len(p.ISBNs) > 0 {
		r.ExternalID, r.ExternalSource = p.ISBNs[0], "epub"
	}
	r.Warnings = append(r.Warnings, p.Warnings...)
}

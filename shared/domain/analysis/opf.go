package analysis

import (
	"slices"
	"strconv"
	"strings"

	"github.com/longbox/longbox/shared/format/epub"
)

// roles maps MARC relator codes to author roles; a creator without a code is the writer. pen and let are no MARC codes,
// but are written.
var roles = map[string]string{"": "writer", "aut": "writer", "cre": "writer", "ill": "illustrator", "art": "illustrator", "trl": "translator",
	"edt": "editor", "clr": "colorist", "cov": "cover_artist", "dsr": "illustrator", "ink": "inker",
	"pnc": "penciller", "pen": "penciller", "ltr": "letterer", "let": "letterer"}

// roleNames maps roles written as words.
var roleNames = map[string]string{"author": "writer", "writer": "writer", "illustrator": "illustrator", "artist": "illustrator",
	"translator": "translator", "editor": "editor", "colorist": "colorist", "colourist": "colorist", "letterer": "letterer", "inker": "inker",
	"penciller": "penciller", "penciler": "penciller", "cover artist": "cover_artist"}

// makers are the MARC relator codes, and some words, of people and places that made, sold or own the file or copy: they
// did not contribute to the work.
var makers = []string{"bdd", "bkp", "bnd", "bsl", "cmt", "cph", "dbp", "dst", "fmo", "mfp", "mfr", "mrk", "own", "pbd", "pbl", "pfr", "prp", "prt", "pup", "rps",
	"trc", "tyg", "book producer", "distributor", "manufacturer", "printer", "publisher"}

// roleOf returns a person's role, or "" for a maker of the copy.
func roleOf(c epub.Creator, contributor bool) string {
	code := c.Role[strings.LastIndexAny(c.Role, "/#:")+1:] // the code may be a URL or have a scheme
	if slices.Contains(makers, code) {
		return ""
	}
	role, ok := roles[code]
	if !ok {
		role, ok = roleNames[code]
	}
	if !ok || contributor && code == "" {
		return "contributor"
	}
	return role
}

// authors returns the people of the work, each once per role.
func authors(p *epub.Publication) []Author {
	type part struct{ name, role string }
	seen := map[part]bool{}
	var list []Author
	for n, people := range [][]epub.Creator{p.Creators, p.Contributors} {
		for _, c := range people {
			did := part{c.Name, roleOf(c, n == 1)}
			if did.role == "" || seen[did] {
				continue
			}
			seen[did] = true
			a := Author{Name: did.name, Role: did.role}
			if c.FileAs != "" {
				a.SortName = &c.FileAs
			}
			list = append(list, a)
		}
	}
	return list
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
	if len(p.ISBNs) > 0 {
		m.ISBNs = isbnList(p.ISBNs)
	}
	m.Authors, m.Subjects = authors(p), p.Subjects
	m.limitNames()
	m.Genre = strings.Join(m.Subjects, ", ")
	for _, a := range m.Authors {
		if a.Role == "translator" && m.Translator == "" {
			m.Translator = a.Name
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

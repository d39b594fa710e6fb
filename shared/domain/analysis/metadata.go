package analysis

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/format/language"
)

// Metadata holds the fields of a book's metadata record that files contain; absent ones are omitted from the stored
// document.
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
	OriginalTitle  string   `json:"originalTitle,omitempty"`
	OriginalYear   *int     `json:"originalYear,omitempty"`
	Edition        string   `json:"edition,omitempty"`
	BookType       string   `json:"bookType,omitempty"`
	SeriesTotal    *int     `json:"seriesTotal,omitempty"`
	Series         string   `json:"series,omitempty"`
	SeriesPosition *float64 `json:"seriesPosition,omitempty"`
	// Custom holds values without a field of their own, below comicinfo or epub.
	Custom map[string]any `json:"customMetadata,omitempty"`
}

// Author is a person and their role.
type Author struct {
	Name     string  `json:"name"`
	Role     string  `json:"role"`
	SortName *string `json:"sortName,omitempty"`
}

// Limits of what one file names, as for what people give a book (package book).
const (
	mostNames = 200 // people with their roles; subjects
	maxName   = 500 // characters
)

// limitNames drops people and subjects beyond the limit, and shortens long names.
func (m *Metadata) limitNames() {
	m.Authors, m.Subjects = m.Authors[:min(len(m.Authors), mostNames)], slices.Clone(m.Subjects[:min(len(m.Subjects), mostNames)])
	for i := range m.Authors {
		a := &m.Authors[i]
		a.Name = cut.Chars(a.Name, maxName)
		if a.SortName != nil {
			*a.SortName = cut.Chars(*a.SortName, maxName)
		}
	}
	for i, s := range m.Subjects {
		m.Subjects[i] = cut.Chars(s, maxName)
	}
}

// compose brings texts into composed characters (NFC), in which people's are stored and all are compared. Custom
// metadata stays as the file has it.
func (r *Result) compose() {
	for _, v := range []any{&r.Metadata, r.Titles, r.Genres, r.Tags} {
		compose(reflect.ValueOf(v))
	}
}

func compose(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(norm.NFC.String(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			compose(v.Elem())
		}
	case reflect.Struct:
		for _, f := range v.Fields() {
			compose(f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			compose(v.Index(i))
		}
	}
}

// noLanguage are the codes that name no language: undetermined, multiple, none, uncoded.
var noLanguage = []string{"und", "mul", "zxx", "mis"}

// language returns a canonical BCP 47 tag. It drops an invalid one with a warning, and one that names no language
// without.
func (r *Result) language(s string) string {
	s = strings.TrimSpace(s)
	code := strings.ToLower(s)
	if at := strings.IndexAny(code, "-_"); at >= 0 {
		code = code[:at]
	}
	if s == "" || slices.Contains(noLanguage, code) {
		return ""
	}
	tag := language.Tag(s)
	if tag == "" {
		r.warn("the language " + strconv.Quote(cut.Brief(s, 40)) + " is not a BCP 47 tag; write, for example, ja or pt-BR")
	}
	return tag
}

// isbnList formats ISBNs as the record stores them, a JSON list.
func isbnList(list []string) string { return `["` + strings.Join(list, `","`) + `"]` }

func optional(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

// custom puts what is there below a name into the free part of the record.
func (m *Metadata) custom(source string, values map[string]any) {
	for k, v := range values {
		switch v := v.(type) {
		case string:
			if v == "" {
				delete(values, k)
			}
		case []string:
			if len(v) == 0 {
				delete(values, k)
			}
		case *int:
			if v == nil {
				delete(values, k)
			}
		case *float64:
			if v == nil {
				delete(values, k)
			}
		}
	}
	if len(values) > 0 {
		if m.Custom == nil {
			m.Custom = map[string]any{}
		}
		m.Custom[source] = values
	}
}

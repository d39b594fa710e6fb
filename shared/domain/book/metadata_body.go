package book

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/longbox/longbox/shared/format/isbn"
	"github.com/longbox/longbox/shared/format/language"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// MetadataBody is the body of PATCH and PUT of a book's metadata. Null clears a field; in a PUT, so does absence,
// except of title and titleSort. A PUT keeps a volume or chapter that came from the file name.
type MetadataBody struct {
	Title     httpapi.Optional[string] `json:"title,omitempty" minLength:"1" maxLength:"1000" doc:"Absent leaves the title unchanged, also in a PUT; null does so in a PUT and is rejected in a PATCH, since a book always has a title"`
	TitleSort httpapi.Optional[string] `json:"titleSort,omitempty" maxLength:"1000" doc:"Null makes it follow the title; absent leaves it unchanged, also in a PUT"`
	Subtitle  httpapi.Optional[string] `json:"subtitle,omitempty" maxLength:"1000"`
	Summary   httpapi.Optional[string] `json:"summary,omitempty" maxLength:"60000"`
	SharedBody
	FormatDetail   httpapi.Optional[string]      `json:"formatDetail,omitempty" maxLength:"500"`
	ISBNs          httpapi.Optional[string]      `json:"isbns,omitempty" maxLength:"2000" doc:"JSON array of ISBNs as text, or ISBNs separated by commas"`
	Year           httpapi.Optional[int32]       `json:"year,omitempty" minimum:"1" maximum:"9999"`
	Month          httpapi.Optional[int32]       `json:"month,omitempty" minimum:"1" maximum:"12"`
	Day            httpapi.Optional[int32]       `json:"day,omitempty" minimum:"1" maximum:"31"`
	Volume         httpapi.Optional[int32]       `json:"volume,omitempty" minimum:"0" maximum:"9999999"`
	Chapter        httpapi.Optional[float64]     `json:"chapter,omitempty" minimum:"-1000000000" maximum:"1000000000"`
	Count          httpapi.Optional[int32]       `json:"count,omitempty" minimum:"0" maximum:"9999999"`
	SeriesPosition httpapi.Optional[float64]     `json:"seriesPosition,omitempty" minimum:"-1000000000" maximum:"1000000000"`
	SeriesTotal    httpapi.Optional[int32]       `json:"seriesTotal,omitempty" minimum:"0" maximum:"9999999"`
	Subjects       httpapi.Optional[[]string]    `json:"subjects,omitempty" maxItems:"200"`
	Awards         httpapi.Optional[[]AwardBody] `json:"awards,omitempty" maxItems:"100"`

	// One field per role, names separated by commas.
	Writer      httpapi.Optional[string] `json:"writer,omitempty" maxLength:"5000" doc:"Names separated by commas; the other roles take the same form"`
	Penciller   httpapi.Optional[string] `json:"penciller,omitempty" maxLength:"5000"`
	Inker       httpapi.Optional[string] `json:"inker,omitempty" maxLength:"5000"`
	Colorist    httpapi.Optional[string] `json:"colorist,omitempty" maxLength:"5000"`
	Letterer    httpapi.Optional[string] `json:"letterer,omitempty" maxLength:"5000"`
	CoverArtist httpapi.Optional[string] `json:"coverArtist,omitempty" maxLength:"5000"`
	Editor      httpapi.Optional[string] `json:"editor,omitempty" maxLength:"5000"`
}

// SharedBody holds the fields that may also be changed for several books at once.
type SharedBody struct {
	OriginalTitle  httpapi.Optional[string]          `json:"originalTitle,omitempty" maxLength:"1000"`
	Publisher      httpapi.Optional[string]          `json:"publisher,omitempty" maxLength:"500"`
	Imprint        httpapi.Optional[string]          `json:"imprint,omitempty" maxLength:"500"`
	Genre          httpapi.Optional[string]          `json:"genre,omitempty" maxLength:"2000"`
	LanguageISO    httpapi.Optional[string]          `json:"languageIso,omitempty" maxLength:"100" doc:"BCP 47 language tag, for example ja or pt-BR"`
	BookType       httpapi.Optional[string]          `json:"bookType,omitempty" enum:"comic,manga,novel,novella,anthology,artbook,oneshot,omnibus,graphic_novel,magazine"`
	Edition        httpapi.Optional[string]          `json:"edition,omitempty" maxLength:"500"`
	BlackAndWhite  httpapi.Optional[bool]            `json:"blackAndWhite,omitempty"`
	Manga          httpapi.Optional[bool]            `json:"manga,omitempty"`
	OriginalYear   httpapi.Optional[int32]           `json:"originalYear,omitempty" minimum:"1" maximum:"9999"`
	Authors        httpapi.Optional[[]AuthorBody]    `json:"authors,omitempty" maxItems:"200"`
	CustomMetadata httpapi.Optional[json.RawMessage] `json:"customMetadata,omitempty" doc:"JSON object, stored unchanged"`
	Translator     httpapi.Optional[string]          `json:"translator,omitempty" maxLength:"5000"`
}

// AuthorBody is a person and their role.
type AuthorBody struct {
	Name     string  `json:"name" minLength:"1" maxLength:"500"`
	Role     string  `json:"role,omitempty" default:"author" enum:"author,co_author,editor,translator,illustrator,contributor,writer,penciller,inker,colorist,letterer,cover_artist"`
	SortName *string `json:"sortName,omitempty" nullable:"true" maxLength:"500"`
}

// AwardBody is a prize that a book won or was nominated for.
type AwardBody struct {
	Name     string  `json:"name" minLength:"1" maxLength:"500"`
	Category *string `json:"category,omitempty" nullable:"true" maxLength:"500"`
	Year     *int32  `json:"year,omitempty" nullable:"true" minimum:"1" maximum:"9999"`
	Won      bool    `json:"won,omitempty"`
}

// field is a field of the body; its value is nil where it is to be cleared.
type field struct {
	name  string
	set   bool
	value any
}

func of[T any](name string, o httpapi.Optional[T]) field {
	f := field{name: name, set: o.Set}
	if o.Value != nil {
		f.value = *o.Value
	}
	return f
}

// fields returns the fields of the body, except people.
func (b *MetadataBody) fields() []field {
	return []field{of("title", b.Title), of("titleSort", b.TitleSort), of("subtitle", b.Subtitle), of("originalTitle", b.OriginalTitle), of("summary", b.Summary), of("publisher", b.Publisher),
		of("imprint", b.Imprint), of("genre", b.Genre), of("languageIso", b.LanguageISO), of("formatDetail", b.FormatDetail), of("bookType", b.BookType),
		of("edition", b.Edition), of("isbns", b.ISBNs), of("blackAndWhite", b.BlackAndWhite), of("manga", b.Manga), of("year", b.Year), of("month", b.Month),
		of("day", b.Day), of("originalYear", b.OriginalYear), of("volume", b.Volume), of("chapter", b.Chapter), of("count", b.Count),
		of("seriesPosition", b.SeriesPosition), of("seriesTotal", b.SeriesTotal), of("subjects", b.Subjects), of("awards", b.Awards), of("customMetadata", b.CustomMetadata)}
}

// roles returns the fields that hold the people of one role.
func (b *MetadataBody) roles() []field {
	return []field{of("writer", b.Writer), of("penciller", b.Penciller), of("inker", b.Inker), of("colorist", b.Colorist), of("letterer", b.Letterer),
		of("coverArtist", b.CoverArtist), of("editor", b.Editor), of("translator", b.Translator)}
}

// lines returns the single-line text fields. They must not be blank, but may be null.
func (b *MetadataBody) lines() map[string]*string {
	return map[string]*string{"title": b.Title.Value, "titleSort": b.TitleSort.Value, "subtitle": b.Subtitle.Value, "originalTitle": b.OriginalTitle.Value, "publisher": b.Publisher.Value, "imprint": b.Imprint.Value,
		"genre": b.Genre.Value, "formatDetail": b.FormatDetail.Value, "edition": b.Edition.Value}
}

// line trims a single-line text and validates it; nullable allows null. It returns nil if the text is valid.
func line(name string, text *string, nullable bool) []fault.Field {
	message := "must contain visible characters and no control characters"
	if nullable {
		message += ", or be null"
	}
	if !naming.Printable(text) {
		return []fault.Field{{Field: name, Message: message}}
	}
	return nil
}

// named validates the name of a list item and the optional text beside it; an empty optional text becomes null.
func named(at string, name *string, beside string, text **string) (bad []fault.Field) {
	bad = line(at+".name", name, false)
	if *text != nil && strings.TrimSpace(**text) == "" {
		*text = nil
	}
	if *text != nil {
		bad = append(bad, line(at+"."+beside, *text, true)...)
	}
	return bad
}

// CheckAuthors normalizes and validates the names of people.
func CheckAuthors(authors []AuthorBody) (bad []fault.Field) {
	for i := range authors {
		bad = append(bad, named(fmt.Sprintf("authors[%d]", i), &authors[i].Name, "sortName", &authors[i].SortName)...)
	}
	return bad
}

// checkNames normalizes and validates the names of people and awards.
func (b *MetadataBody) checkNames() (bad []fault.Field) {
	if v := b.Authors.Value; v != nil {
		bad = CheckAuthors(*v)
	}
	for _, f := range b.roles() {
		text, ok := f.value.(string)
		if names := split(text); ok && (len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { return !naming.Printable(&name) })) {
			bad = append(bad, fault.Field{Field: f.name, Message: "must contain visible characters and no control characters, or be null"})
		}
	}
	if v := b.Awards.Value; v != nil {
		for i := range *v {
			bad = append(bad, named(fmt.Sprintf("awards[%d]", i), &(*v)[i].Name, "category", &(*v)[i].Category)...)
		}
	}
	return bad
}

// split splits a comma-separated list of names.
func split(text string) (names []string) {
	for name := range strings.SplitSeq(norm.NFC.String(text), ",") {
		if name = strings.Join(strings.Fields(name), " "); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// check normalizes and validates languages, ISBNs and texts.
func (b *MetadataBody) check() error {
	var bad []fault.Field
	if b.Title.Set && b.Title.Value == nil {
		bad = append(bad, fault.Field{Field: "title", Message: "must not be null: a book has a title"})
	}
	lines := b.lines()
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		if text := lines[name]; text != nil {
			bad = append(bad, line(name, text, name != "title")...)
		}
	}
	if v := b.Subjects.Value; v != nil {
		for i := range *v {
			bad = append(bad, line(fmt.Sprintf("subjects[%d]", i), &(*v)[i], false)...)
		}
	}
	if v := b.Summary.Value; v != nil {
		*v = strings.TrimSpace(*v)
	}
	bad = append(bad, b.checkNames()...)
	for _, f := range b.fields() {
		if text, ok := f.value.(string); ok && lines[f.name] == nil && strings.ContainsRune(text, 0) {
			bad = append(bad, fault.Field{Field: f.name, Message: "must not contain the character NUL"})
		}
	}
	if v := b.LanguageISO.Value; v != nil {
		if *v = language.Tag(*v); *v == "" {
			bad = append(bad, fault.Field{Field: "languageIso", Message: "must be a BCP 47 tag, for example ja or pt-BR"})
		}
	}
	if v := b.ISBNs.Value; v != nil {
		list, ok := isbns(*v)
		if !ok {
			bad = append(bad, fault.Field{Field: "isbns", Message: "must be ISBNs with 10 or 13 digits whose check digit is right"})
		}
		*v = list
	}
	if v := b.CustomMetadata.Value; v != nil {
		if err := CheckCustom(*v); err != nil {
			bad = append(bad, *err)
		}
	}
	if y, m, d := b.Year.Value, b.Month.Value, b.Day.Value; m != nil && d != nil {
		year := int32(2000) // a leap year
		if y != nil {
			year = *y
		}
		if time.Date(int(year), time.Month(*m), int(*d), 0, 0, 0, 0, time.UTC).Day() != int(*d) {
			bad = append(bad, fault.Field{Field: "day", Message: "the month has no such day"})
		}
	}
	return fault.InvalidFields(bad)
}

// maxCustom is the maximum size of customMetadata in bytes.
const maxCustom = 64 << 10

// CheckCustom validates customMetadata. It returns nil if it is valid.
func CheckCustom(raw json.RawMessage) *fault.Field {
	if trimmed := bytes.TrimSpace(raw); len(trimmed) == 0 || trimmed[0] != '{' || len(raw) > maxCustom || httpapi.HoldsNUL(raw) {
		return &fault.Field{Field: "customMetadata", Message: "must be a JSON object of at most 64 KiB without NUL, or null"}
	}
	if httpapi.TooDeep(raw) {
		return &fault.Field{Field: "customMetadata", Message: httpapi.DepthMessage}
	}
	return nil
}

// isbns are ISBNs as the record has them, a JSON list with each once.
func isbns(text string) (list string, ok bool) {
	var parts []string
	if json.Unmarshal([]byte(text), &parts) != nil || parts == nil { // null decodes to a nil list
		parts = strings.Split(text, ",")
	}
	numbers := []string{}
	for _, p := range parts {
		number := isbn.Parse(p, true)
		if number == "" {
			return "", false
		}
		if !slices.Contains(numbers, number) {
			numbers = append(numbers, number)
		}
	}
	data, err := json.Marshal(numbers)
	return string(data), err == nil
}

// people returns the authors that the body sets and the roles that they replace. whole reports that all authors are
// replaced.
func (b *MetadataBody) people(replace bool) (people []Author, roles []string, whole bool) {
	people, whole = []Author{}, b.Authors.Set || replace
	if b.Authors.Value != nil {
		for _, a := range *b.Authors.Value {
			people = append(people, Author(a))
		}
	}
	for _, f := range b.roles() {
		if !f.set {
			continue
		}
		role := f.name
		if role == "coverArtist" {
			role = "cover_artist"
		}
		roles = append(roles, role)
		if text := strings.Join(namesOf(people, role), ", "); text != "" && f.value == text {
			continue // the same people, whose names may have commas
		}
		people = slices.DeleteFunc(people, func(a Author) bool { return a.Role == role })
		if text, ok := f.value.(string); ok {
			for _, name := range split(text) {
				people = append(people, Author{Name: name, Role: role})
			}
		}
	}
	return people, roles, whole
}

// said returns the values that the body sets (except people), the names of all fields it changes, and the locks of the
// fields that get a value.
func (b *MetadataBody) said(replace bool) (set map[string]any, names, locks []string) {
	set, names, locks = map[string]any{}, []string{}, []string{}
	take := func(f field, lock string) {
		if f.set || replace && f.name != "title" && f.name != "titleSort" {
			names = append(names, f.name)
		}
		if f.value != nil {
			locks = append(locks, lock)
		}
	}
	for _, f := range b.fields() {
		lock := f.name + "Lock"
		if f.name == "awards" {
			lock = "awardsJsonLock"
		}
		take(f, lock)
		if f.value != nil {
			set[f.name] = f.value
		}
	}
	for _, f := range b.roles() {
		take(f, f.name+"Lock")
	}
	take(of("authors", b.Authors), "authorsJsonLock")
	return set, names, locks
}

// ISBNs returns ISBNs as MetadataBody holds them; nil if there are none, nil and an error message if one is invalid.
func ISBNs(numbers []string) (*string, string) {
	if len(numbers) == 0 {
		return nil, ""
	}
	list, ok := isbns(strings.Join(numbers, ","))
	if !ok {
		return nil, "must be ISBNs with 10 or 13 digits whose check digit is right"
	}
	return &list, ""
}

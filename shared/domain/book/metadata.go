package book

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// Metadata is the metadata record of a book; unknown fields are null.
type Metadata struct {
	Title          *string         `json:"title"`
	TitleSort      *string         `json:"titleSort"`
	Subtitle       *string         `json:"subtitle"`
	OriginalTitle  *string         `json:"originalTitle"`
	Series         *string         `json:"series"`
	SeriesPosition *float64        `json:"seriesPosition"`
	SeriesTotal    *int32          `json:"seriesTotal"`
	Number         *string         `json:"number"`
	Volume         *int32          `json:"volume"`
	Chapter        *float64        `json:"chapter"`
	Count          *int32          `json:"count"`
	Summary        *string         `json:"summary"`
	Publisher      *string         `json:"publisher"`
	Imprint        *string         `json:"imprint"`
	Genre          *string         `json:"genre"`
	Subjects       []string        `json:"subjects" nullable:"true"`
	LanguageISO    *string         `json:"languageIso"`
	FormatDetail   *string         `json:"formatDetail"`
	BookType       *string         `json:"bookType" enum:"comic,manga,novel,novella,anthology,artbook,oneshot,omnibus,graphic_novel,magazine"`
	Edition        *string         `json:"edition"`
	ISBNs          *string         `json:"isbns"`
	BlackAndWhite  *bool           `json:"blackAndWhite"`
	Manga          *bool           `json:"manga"`
	Year           *int32          `json:"year"`
	Month          *int32          `json:"month"`
	Day            *int32          `json:"day"`
	ReleaseDate    *time.Time      `json:"releaseDate"`
	OriginalYear   *int32          `json:"originalYear"`
	Authors        []Author        `json:"authors" nullable:"true"`
	Awards         []Award         `json:"awards" nullable:"true"`
	CustomMetadata json.RawMessage `json:"customMetadata"`

	// Names per role: as a list, and joined by commas.
	Writers      []string `json:"writers" nullable:"false"`
	Pencillers   []string `json:"pencillers" nullable:"false"`
	Inkers       []string `json:"inkers" nullable:"false"`
	Colorists    []string `json:"colorists" nullable:"false"`
	Letterers    []string `json:"letterers" nullable:"false"`
	CoverArtists []string `json:"coverArtists" nullable:"false"`
	Editors      []string `json:"editors" nullable:"false"`
	Writer       *string  `json:"writer"`
	Penciller    *string  `json:"penciller"`
	Inker        *string  `json:"inker"`
	Colorist     *string  `json:"colorist"`
	Letterer     *string  `json:"letterer"`
	CoverArtist  *string  `json:"coverArtist"`
	Editor       *string  `json:"editor"`
	Translator   *string  `json:"translator"`

	Warnings  []string  `json:"warnings" nullable:"false" doc:"Values of the file that could not be used, and why"`
	Locks     Locks     `json:"locks"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// Author is a person and their role.
type Author struct {
	Name     string  `json:"name"`
	Role     string  `json:"role" enum:"author,co_author,editor,translator,illustrator,contributor,writer,penciller,inker,colorist,letterer,cover_artist"`
	SortName *string `json:"sortName"`
}

// Award is a prize that a book won or was nominated for.
type Award struct {
	Name     string  `json:"name"`
	Category *string `json:"category"`
	Year     *int32  `json:"year"`
	Won      bool    `json:"won"`
}

// Locks maps each field to whether only people may change it.
type Locks map[string]bool

var lockNames = func() []string {
	var names []string
	for _, f := range strings.Fields(`authorsJson awardsJson blackAndWhite bookType chapter colorist count coverArtist cover
		customMetadata day edition editor formatDetail genre genres imprint inker isbns languageIso letterer manga month number
		originalTitle originalYear penciller publisher seriesPosition seriesTotal subjects subtitle summary tags title titleSort
		translator volume writer year`) {
		names = append(names, f+"Lock")
	}
	return names
}()

// Unlocked are the locks of a book without any.
func Unlocked() Locks { return LockSet(lockNames, nil) }

// Schema lists every lock.
func (Locks) Schema(huma.Registry) *huma.Schema { return LockSchema(lockNames) }

// LockSchema is the schema of an object with a boolean per name.
func LockSchema(names []string) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeObject, Properties: map[string]*huma.Schema{}, Required: names, AdditionalProperties: false}
	for _, n := range names {
		s.Properties[n] = &huma.Schema{Type: huma.TypeBoolean}
	}
	return s
}

// LockSet maps each of names to whether it is in locked.
func LockSet(names, locked []string) map[string]bool {
	out := make(map[string]bool, len(names))
	for _, n := range names {
		out[n] = slices.Contains(locked, n)
	}
	return out
}

// metadataColumns are the columns of a metadataRow.
const metadataColumns = "metadata, locks, warnings, created_at, updated_at"

type metadataRow struct {
	Document  []byte    `db:"metadata"`
	Locks     []string  `db:"locks"`
	Warnings  []string  `db:"warnings"`
	CreatedAt time.Time `db:"created_at"`
	UpdatedAt time.Time `db:"updated_at"`
}

func (r *metadataRow) metadata() (*Metadata, error) {
	if r == nil {
		return nil, nil
	}
	var m Metadata
	if err := json.Unmarshal(r.Document, &m); err != nil {
		return nil, err
	}
	m.Warnings, m.Locks, m.CreatedAt, m.UpdatedAt = r.Warnings, LockSet(lockNames, r.Locks), r.CreatedAt, r.UpdatedAt
	if m.Year != nil && m.Month != nil && m.Day != nil {
		date := time.Date(int(*m.Year), time.Month(*m.Month), int(*m.Day), 0, 0, 0, 0, time.UTC)
		if date.Day() == int(*m.Day) { // year, month and day are set independently and need not form a date
			m.ReleaseDate = &date
		}
	}
	for _, c := range []struct {
		role string
		list *[]string
		text **string
	}{
		{"writer", &m.Writers, &m.Writer}, {"penciller", &m.Pencillers, &m.Penciller}, {"inker", &m.Inkers, &m.Inker},
		{"colorist", &m.Colorists, &m.Colorist}, {"letterer", &m.Letterers, &m.Letterer},
		{"cover_artist", &m.CoverArtists, &m.CoverArtist}, {"editor", &m.Editors, &m.Editor}, {"translator", new([]string), &m.Translator},
	} {
		*c.list = namesOf(m.Authors, c.role)
		if len(*c.list) > 0 {
			*c.text = new(strings.Join(*c.list, ", "))
		}
	}
	return &m, nil
}

// namesOf returns the names of the people of one role.
func namesOf(people []Author, role string) []string {
	names := []string{}
	for _, a := range people {
		if a.Role == role {
			names = append(names, a.Name)
		}
	}
	return names
}

// Released returns a full date, or nil if the year is unknown. An unknown month or day, and a day that the month does
// not have, becomes the first.
func Released(year, month, day *int32) *string {
	if year == nil {
		return nil
	}
	m, d := 1, 1
	if month != nil {
		m = int(*month)
	}
	if day != nil && month != nil {
		d = int(*day)
	}
	at := time.Date(int(*year), time.Month(m), d, 0, 0, 0, 0, time.UTC)
	if at.Month() != time.Month(m) {
		at = time.Date(int(*year), time.Month(m), 1, 0, 0, 0, 0, time.UTC)
	}
	return new(at.Format(time.DateOnly))
}

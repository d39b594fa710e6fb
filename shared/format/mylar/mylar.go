// Package mylar reads series.json, with which Mylar describes the series in a folder of comics.
package mylar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/format/epub"
)

// MaxBytes is the maximum size of a document.
const MaxBytes = 1 << 20

const (
	maxText     = 64 << 10 // bytes of the summary
	maxName     = 500      // bytes of other texts
	maxWarnings = 20
)

// Series is the content of the document. Missing and invalid values are "" or nil.
type Series struct {
	Name      string
	Summary   string
	Publisher string
	Imprint   string
	Status    string // ongoing or ended
	AgeRating string // as written
	Year      *int
	Issues    *int   // total number
	ComicID   string // ComicVine's id of the series

	Warnings []string // what was dropped, and why
}

// Parse parses a document. The error is about the whole document; an invalid member gives a warning.
func Parse(data []byte) (*Series, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("it has %d bytes; the limit is %d", len(data), MaxBytes)
	}
	var document struct {
		Metadata metadata `json:"metadata"`
	}
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), &document); err != nil {
		return nil, fmt.Errorf("it is not the JSON expected: %w", err)
	}
	if document.Metadata == nil {
		return nil, errors.New("it has no member metadata")
	}
	s := &Series{}
	m := reader{document.Metadata, s}
	s.Name, s.Publisher, s.Imprint, s.AgeRating = m.text("name"), m.text("publisher"), m.text("imprint"), m.text("age_rating")
	for _, name := range []string{"description_text", "description_formatted", "description"} {
		if s.Summary == "" {
			s.Summary = m.description(name)
		}
	}
	s.Year, s.Issues = m.number("year", 1000, 9999), m.number("total_issues", 1, math.MaxInt32)
	if id := m.number("comicid", 1, math.MaxInt32); id != nil {
		s.ComicID = strconv.Itoa(*id)
	}
	switch status := m.text("status"); strings.ToLower(status) {
	case "":
	case "continuing", "ongoing":
		s.Status = "ongoing"
	case "ended", "completed":
		s.Status = "ended"
	default:
		m.warn("status: %.60q is neither Continuing nor Ended", status)
	}
	return s, nil
}

// metadata holds the members. In version 1.0 they are inside a list.
type metadata map[string]json.RawMessage

// UnmarshalJSON reads an object, or the first object of a list.
func (m *metadata) UnmarshalJSON(data []byte) error {
	var list []map[string]json.RawMessage
	if json.Unmarshal(data, &list) == nil && len(list) > 0 {
		*m = list[0]
		return nil
	}
	return json.Unmarshal(data, (*map[string]json.RawMessage)(m))
}

// reader reads members of the document.
type reader struct {
	members map[string]json.RawMessage
	series  *Series
}

func (r reader) warn(format string, args ...any) {
	if len(r.series.Warnings) < maxWarnings {
		r.series.Warnings = append(r.series.Warnings, fmt.Sprintf(format, args...))
	}
}

// text returns a text member, with single spaces within its lines. "None" means unknown.
func (r reader) text(name string) string {
	var lines []string
	for line := range strings.Lines(r.written(name)) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	return r.clip(name, strings.Join(lines, "\n"), maxName)
}

// description returns a text member without markup: descriptions come from web pages.
func (r reader) description(name string) string {
	return r.clip(name, epub.PlainText(r.written(name)), maxText)
}

// written returns a text member unchanged.
func (r reader) written(name string) string {
	raw, ok := r.members[name]
	if !ok || string(raw) == "null" {
		return ""
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		r.warn("%s: is not a string", name)
		return ""
	}
	if s == "None" {
		return ""
	}
	return cut.Storable(s)
}

// clip truncates the value of a member.
func (r reader) clip(name, s string, most int) string {
	if len(s) > most {
		r.warn("%s: has %d bytes, the limit is %d; the rest is left out", name, len(s), most)
		s = cut.Bytes(s, most)
	}
	return s
}

// number returns a numeric member, or the number in a text member. 0 and "None" mean unknown.
func (r reader) number(name string, low, high int) *int {
	raw := strings.Trim(string(r.members[name]), `" `)
	if raw == "" || raw == "null" || raw == "0" || raw == "None" {
		return nil
	}
	n, err := strconv.Atoi(raw)
	if err != nil || n < low || n > high {
		r.warn("%s: %.60s is not a number from %d to %d", name, raw, low, high)
		return nil
	}
	return &n
}

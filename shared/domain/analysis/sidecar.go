package analysis

import (
	"maps"
	"reflect"
	"strings"

	"github.com/longbox/longbox/shared/format/epub"
)

// Sidecar is the content of a package document beside a book.
type Sidecar struct {
	Metadata   Metadata `json:"metadata"`
	Number     *float64 `json:"number,omitempty"`
	Genres     []string `json:"genres,omitempty"`
	ExternalID string   `json:"externalId,omitempty"`
	Warnings   []string `json:"warnings,omitempty"`
}

// ReadSidecar reads a package document; name identifies it in warnings. The error says why it cannot be read.
func ReadSidecar(document []byte, name string, lim epub.Limits) (*Sidecar, error) {
	p, err := epub.ReadPackage(document, name, lim)
	if err != nil {
		return nil, err
	}
	var r Result
	r.applyEPUB(p)
	r.compose()
	return &Sidecar{Metadata: r.Metadata, Number: r.Number, Genres: r.Genres, ExternalID: r.ExternalID, Warnings: r.Warnings}, nil
}

// Override replaces the file's fields by those that the sidecar has.
func (r *Result) Override(s *Sidecar) {
	custom := combined(r.Metadata.Custom, s.Metadata.Custom)
	r.forget(s)
	to, from := reflect.ValueOf(&r.Metadata).Elem(), reflect.ValueOf(s.Metadata)
	for i := range from.NumField() {
		if !from.Field(i).IsZero() {
			to.Field(i).Set(from.Field(i))
		}
	}
	r.Metadata.Custom = custom
	if s.Number != nil {
		r.Number = s.Number
	}
	if len(s.Genres) > 0 {
		r.Genres = s.Genres
	}
	if s.ExternalID != "" {
		r.ExternalID, r.ExternalSource = s.ExternalID, "opf"
	}
	r.Warnings = append(r.Warnings, s.Warnings...)
}

// forget clears the file's fields that belong to a title, series, number or date that the sidecar replaces.
func (r *Result) forget(s *Sidecar) {
	m, says := &r.Metadata, &s.Metadata
	if says.Title != "" && says.Title != m.Title {
		m.TitleSort = ""
	}
	if says.Series != "" && !strings.EqualFold(says.Series, m.Series) {
		m.SeriesPosition, m.Number, m.Chapter, r.Number = nil, "", nil, nil
	}
	if replaces(s.Number, r.Number) {
		m.Chapter = nil
	}
	if replaces(says.Year, m.Year) {
		m.Month, m.Day = nil, nil
	}
	if replaces(says.Month, m.Month) {
		m.Day = nil
	}
}

func replaces[T comparable](says, file *T) bool {
	return says != nil && (file == nil || *says != *file)
}

// combined returns the file's values below comicinfo and epub with those of the sidecar.
func combined(file, sidecar map[string]any) map[string]any {
	if file == nil {
		return sidecar
	}
	out := maps.Clone(file)
	for source, value := range sidecar {
		of, _ := value.(map[string]any)
		all, _ := out[source].(map[string]any)
		if all = maps.Clone(all); all == nil {
			all = map[string]any{}
		}
		maps.Copy(all, of)
		out[source] = all
	}
	return out
}

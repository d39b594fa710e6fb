package analysis

import (
	"maps"
	"reflect"

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
	return &Sidecar{Metadata: r.Metadata, Number: r.Number, Genres: r.Genres, ExternalID: r.ExternalID, Warnings: r.Warnings}, nil
}

// Override replaces the file's fields by those that the sidecar has.
func (r *Result) Override(s *Sidecar) {
	custom := maps.Clone(r.Metadata.Custom)
	if s.Metadata.Title != "" && s.Metadata.Title != r.Metadata.Title {
		r.Metadata.TitleSort = "" // it belongs to the replaced title
	}
	to, from := reflect.ValueOf(&r.Metadata).Elem(), reflect.ValueOf(s.Metadata)
	for i := range from.NumField() {
		if !from.Field(i).IsZero() {
			to.Field(i).Set(from.Field(i))
		}
	}
	if custom != nil {
		maps.Copy(custom, s.Metadata.Custom)
		r.Metadata.Custom = custom
	}
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

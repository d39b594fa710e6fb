package export

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/fault"
)

// The types of exports.
const (
	ofSeries = "series"
	ofBooks  = "books"
	ofBoth   = "both"
)

// Export is one of the caller's exports.
type Export struct {
	ID            uuid.UUID   `json:"id" db:"id"`
	Format        string      `json:"format" db:"format" enum:"json,csv,md"`
	ExportType    string      `json:"exportType" db:"export_type" enum:"series,books,both"`
	LibraryIDs    []uuid.UUID `json:"libraryIds" db:"library_ids" nullable:"false" doc:"Empty means all libraries"`
	Fields        []string    `json:"fields" db:"fields" nullable:"false" doc:"Keys of the fields of series"`
	BookFields    []string    `json:"bookFields" db:"book_fields" nullable:"false"`
	Status        string      `json:"status" db:"status" enum:"pending,running,completed,failed"`
	Error         *string     `json:"error" db:"error" doc:"Why the export failed"`
	FileSizeBytes *int64      `json:"fileSizeBytes" db:"file_size" doc:"Set when the export is completed"`
	RowCount      *int64      `json:"rowCount" db:"row_count" doc:"Number of series and books in the file; set when the export is completed"`
	CreatedAt     time.Time   `json:"createdAt" db:"created_at"`
	StartedAt     *time.Time  `json:"startedAt" db:"started_at"`
	CompletedAt   *time.Time  `json:"completedAt" db:"completed_at"`
	ExpiresAt     time.Time   `json:"expiresAt" db:"expires_at" doc:"When the export is removed"`
}

// Body describes an export to make.
type Body struct {
	Format     string      `json:"format" enum:"json,csv,md" doc:"csv can hold series or books, not both"`
	ExportType string      `json:"exportType,omitempty" enum:"series,books,both" default:"series"`
	LibraryIDs []uuid.UUID `json:"libraryIds,omitempty" maxItems:"500" doc:"Empty means all libraries"`
	Fields     []string    `json:"fields,omitempty" maxItems:"100" doc:"Fields of series in column order, by the keys of GET /user/exports/series/fields; anchors always come first, and are the only fields if the list is empty; defaults to presets.llmSelect there"`
	BookFields []string    `json:"bookFields,omitempty" maxItems:"100" doc:"Fields of books, likewise; defaults to presets.llmSelectBooks"`
}

// presets are the default fields of an export; GET /user/exports/series/fields returns them, too.
var presets = Presets{
	[]string{"summary", "status", "year", "authors", "genres", "tags", "bookCount", "readStatus", "userRating", "wantToRead"},
	[]string{"seriesTitle", "number", "summary", "year", "authors", "bookType", "readStatus", "wantToRead"},
}

// check normalizes the lists and rejects unknown values.
func (b *Body) check() error {
	var bad []fault.Field
	if b.Fields == nil && b.ExportType != ofBooks {
		b.Fields = presets.LLMSelect
	}
	if b.BookFields == nil && b.ExportType != ofSeries {
		b.BookFields = presets.LLMSelectBooks
	}
	if b.Format == "csv" && b.ExportType == ofBoth {
		bad = append(bad, fault.Field{Field: "exportType", Message: "must be series or books for CSV, which has one kind of row; for both, use another format"})
	}
	for _, l := range []struct {
		name  string
		keys  *[]string
		among []field
	}{{"fields", &b.Fields, seriesFields}, {"bookFields", &b.BookFields, bookFields}} {
		seen := []string{}
		for _, k := range *l.keys {
			if find(l.among, k) == nil {
				bad = append(bad, fault.Field{Field: l.name, Message: "there is no such field; GET /api/v1/user/exports/series/fields lists them"})
				break
			}
			if !slices.Contains(seen, k) {
				seen = append(seen, k)
			}
		}
		*l.keys = seen
	}
	libraries := []uuid.UUID{}
	for _, id := range b.LibraryIDs {
		if !slices.Contains(libraries, id) {
			libraries = append(libraries, id)
		}
	}
	b.LibraryIDs = libraries
	return fault.InvalidFields(bad)
}

// Catalog lists what can be exported.
type Catalog struct {
	Fields     []Field `json:"fields" nullable:"false" doc:"Fields of series"`
	BookFields []Field `json:"bookFields" nullable:"false"`
	Presets    Presets `json:"presets"`
}

// Field is a field of an exported series or book.
type Field struct {
	Key          string `json:"key"`
	Label        string `json:"label"`
	MultiValue   bool   `json:"multiValue" doc:"The value is a list: an array in JSON, separated by | in CSV"`
	UserSpecific bool   `json:"userSpecific" doc:"The value is specific to the caller"`
	IsAnchor     bool   `json:"isAnchor" doc:"The field is in every export"`
}

// Presets are useful sets of fields, by key.
type Presets struct {
	LLMSelect      []string `json:"llmSelect" nullable:"false" doc:"Fields of series for people to read, or for a language model to base recommendations on; the default of an export"`
	LLMSelectBooks []string `json:"llmSelectBooks" nullable:"false" doc:"The same for books"`
}

func catalog() *Catalog {
	public := func(all []field) []Field {
		out := make([]Field, len(all))
		for i, f := range all {
			out[i] = f.Field
		}
		return out
	}
	return &Catalog{public(seriesFields), public(bookFields), presets}
}

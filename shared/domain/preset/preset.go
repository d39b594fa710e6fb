package preset

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Preset is a stored filter.
type Preset struct {
	ID        uuid.UUID       `json:"id" db:"id"`
	Name      string          `json:"name" db:"name"`
	Scope     string          `json:"scope" db:"scope" enum:"list,search"`
	Target    string          `json:"target" db:"target" enum:"series,books"`
	LibraryID *uuid.UUID      `json:"libraryId" db:"library_id" doc:"Null means all libraries"`
	Condition json.RawMessage `json:"condition" db:"condition" doc:"Condition as in POST /series/list or POST /books/list"`
	Query     *string         `json:"query" db:"query" doc:"Value of fullTextSearch to use with the condition"`
	Sort      *string         `json:"sort" db:"sort"`
	CreatedAt time.Time       `json:"createdAt" db:"created_at"`
	UpdatedAt time.Time       `json:"updatedAt" db:"updated_at"`
}

// Body is the content of a filter.
type Body struct {
	Name      string          `json:"name" minLength:"1" maxLength:"100" doc:"Must be unique, ignoring case, among the presets with the same scope, target and library"`
	LibraryID *uuid.UUID      `json:"libraryId,omitempty" format:"uuid" nullable:"true" doc:"Null means all libraries"`
	Condition json.RawMessage `json:"condition" doc:"Condition as in POST /series/list or POST /books/list; null means no condition"`
	Query     *string         `json:"query,omitempty" maxLength:"1000" nullable:"true" doc:"Value of fullTextSearch to use with the condition"`
	Sort      *string         `json:"sort,omitempty" maxLength:"64" nullable:"true"`
}

// maxCondition is the maximum size of a condition in bytes.
const maxCondition = 100_000

// check normalizes the name and rejects what the lists of target would not accept.
func (b *Body) check(target string) error {
	if !naming.Printable(&b.Name) {
		return fault.Invalid("name", "must contain visible characters and no control characters")
	}
	if len(b.Condition) > maxCondition {
		return fault.Invalid("condition", "is larger than %d bytes", maxCondition)
	}
	find := book.ListBody{FullTextSearch: b.Query}.Find()
	var sort httpapi.Sorting
	if b.Sort != nil {
		sort.Sort = *b.Sort
	}
	var err error
	if target == "books" {
		_, err = book.List(book.ListQuery{Condition: b.Condition, Find: find, Sort: sort})
	} else {
		_, err = series.List(series.ListQuery{Condition: b.Condition, Find: find, Sort: sort})
	}
	return err
}

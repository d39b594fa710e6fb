package collection

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Collection is a named list of series.
type Collection struct {
	ID          uuid.UUID       `json:"id" db:"id"`
	Name        string          `json:"name" db:"name"`
	Summary     *string         `json:"summary" db:"summary"`
	Ordered     bool            `json:"ordered" db:"ordered" doc:"Its own order is the one to show"`
	Automatic   bool            `json:"automatic" db:"-" doc:"Its members are the series that meet the condition"`
	Condition   json.RawMessage `json:"condition" db:"condition" nullable:"true"`
	SeriesCount *int64          `json:"seriesCount" db:"-" doc:"Null of an automatic one: that depends on who asks"`
	CreatedAt   time.Time       `json:"createdAt" db:"created_at"`
	UpdatedAt   time.Time       `json:"updatedAt" db:"updated_at"`
}

// ReadList is a named list of books.
type ReadList struct {
	ID        uuid.UUID `json:"id"`
	Name      string    `json:"name"`
	Summary   *string   `json:"summary"`
	Ordered   bool      `json:"ordered" doc:"Its own order is the one to show"`
	BookCount int64     `json:"bookCount"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

func (r row) collection() Collection {
	c := r.Collection
	if c.Automatic = c.Condition != nil; !c.Automatic {
		c.SeriesCount = &r.Members
	}
	return c
}

func (r row) readList() ReadList {
	return ReadList{r.ID, r.Name, r.Summary, r.Ordered, r.Members, r.CreatedAt, r.UpdatedAt}
}

// ReadListChanges are what a request says of a read list; what is absent stays.
type ReadListChanges struct {
	Name    httpapi.Optional[string] `json:"name,omitempty" maxLength:"200" doc:"No two have the same, in upper or lower case"`
	Summary httpapi.Optional[string] `json:"summary,omitempty" maxLength:"10000"`
	Ordered httpapi.Optional[bool]   `json:"ordered,omitempty"`
}

// CollectionChanges are what a request says of a collection; what is absent stays.
type CollectionChanges struct {
	ReadListChanges
	Condition httpapi.Optional[json.RawMessage] `json:"condition,omitempty" doc:"As POST /series/list takes it: makes the collection automatic, and null an empty one whose members are chosen"`
}

// maxCondition is the size of a condition that is kept, in bytes.
const maxCondition = 100_000

// apply changes r; InvalidFields where that is not possible.
func (c ReadListChanges) apply(r *row) error {
	name := strings.TrimSpace(c.Name.Or(r.Name))
	switch {
	case name == "":
		return fault.Invalid("name", "is required")
	case utf8.RuneCountInString(name) > 200 || !utf8.ValidString(name) || strings.ContainsFunc(name, naming.Hidden):
		return fault.Invalid("name", "must be 200 characters at most, without control characters, or such that turn the direction of text")
	}
	r.Name, r.Summary, r.Ordered = name, c.Summary.OrNil(r.Summary), c.Ordered.Or(r.Ordered)
	if r.Summary != nil && strings.ContainsRune(*r.Summary, 0) {
		return fault.Invalid("summary", "must not contain the character NUL")
	}
	return nil
}

// apply is that of ReadListChanges with the condition, which is checked.
func (c CollectionChanges) apply(r *row) error {
	if err := c.ReadListChanges.apply(r); err != nil || !c.Condition.Set {
		return err
	}
	r.Condition = nil
	if c.Condition.Value == nil {
		return nil
	}
	if r.Condition = *c.Condition.Value; len(r.Condition) > maxCondition {
		return fault.Invalid("condition", "is larger than %d bytes", maxCondition)
	}
	_, err := series.List(series.Wanted{Condition: r.Condition})
	return err
}

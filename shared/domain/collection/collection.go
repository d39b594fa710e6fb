package collection

import (
	"encoding/json"
	"slices"
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
	Ordered     bool            `json:"ordered" db:"ordered" doc:"Whether to show the members in their manual order"`
	Automatic   bool            `json:"automatic" db:"-" doc:"Whether the members are the series that meet the condition"`
	Condition   json.RawMessage `json:"condition" db:"condition"`
	SeriesCount *int64          `json:"seriesCount" db:"-" doc:"Number of series; null for an automatic collection, where it depends on the caller"`
	CreatedAt   time.Time       `json:"createdAt" db:"created_at"`
	UpdatedAt   time.Time       `json:"updatedAt" db:"updated_at"`
}

// ReadList is a named list of books.
type ReadList struct {
	ID        uuid.UUID `json:"id"`
	Name      string    `json:"name"`
	Summary   *string   `json:"summary"`
	Ordered   bool      `json:"ordered" doc:"Whether to show the members in their manual order"`
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
	return ReadList{ID: r.ID, Name: r.Name, Summary: r.Summary, Ordered: r.Ordered, BookCount: r.Members, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt}
}

// ReadListChanges are the changes to a read list; an absent field stays.
type ReadListChanges struct {
	Name    httpapi.Optional[string] `json:"name,omitempty" maxLength:"200" nullable:"false" doc:"Unique name, case-insensitive"`
	Summary httpapi.Optional[string] `json:"summary,omitempty" maxLength:"10000"`
	Ordered httpapi.Optional[bool]   `json:"ordered,omitempty"`
}

// CollectionChanges are the changes to a collection; an absent field stays.
type CollectionChanges struct {
	ReadListChanges
	Condition httpapi.Optional[json.RawMessage] `json:"condition,omitempty" doc:"Condition as in POST /series/list; makes the collection automatic and removes its chosen members. Null makes an automatic collection an empty one whose members are chosen"`
}

// NewReadList is a read list to create.
type NewReadList struct {
	Name string `json:"name" maxLength:"200" doc:"Unique name, case-insensitive"`
	ReadListChanges
}

// NewCollection is a collection to create.
type NewCollection struct {
	Name string `json:"name" maxLength:"200" doc:"Unique name, case-insensitive"`
	CollectionChanges
}

// maxCondition is the maximum size of a condition in bytes.
const maxCondition = 100_000

// patch is a validated change.
type patch struct {
	name         *string // nil: unchanged
	setSummary   bool
	summary      *string
	ordered      *bool // nil: unchanged
	setCondition bool
	condition    json.RawMessage // nil: members are chosen
}

// patch validates the changes; an invalid one is a BadRequest.
func (c ReadListChanges) patch() (patch, error) {
	p := patch{setSummary: c.Summary.Set, summary: c.Summary.Value, ordered: c.Ordered.Value}
	if c.Name.Set {
		name := c.Name.Or("")
		switch valid := utf8.ValidString(name) && naming.Printable(&name); {
		case name == "":
			return p, errNoName
		case !valid || utf8.RuneCountInString(name) > 200:
			return p, fault.Invalid("name", "must be at most 200 characters, with a visible one, without control characters or characters that change the direction of text")
		}
		p.name = &name
	}
	if p.summary != nil && strings.ContainsRune(*p.summary, 0) {
		return p, fault.Invalid("summary", "must not contain the character NUL")
	}
	return p, nil
}

var (
	errNoName  = fault.Invalid("name", "is required")
	errOrdered = fault.Invalid("ordered", "must not be true for an automatic collection: its series have no manual order")
)

// patch is ReadListChanges.patch with the condition.
func (c CollectionChanges) patch() (patch, error) {
	p, err := c.ReadListChanges.patch()
	p.setCondition = c.Condition.Set
	if err != nil || c.Condition.Value == nil {
		return p, err
	}
	p.condition = *c.Condition.Value
	if len(p.condition) > maxCondition {
		return p, fault.Invalid("condition", "is larger than %d bytes", maxCondition)
	}
	if _, err = series.List(series.ListQuery{Condition: p.condition}); err != nil {
		return p, err
	}
	var tree any
	if err := json.Unmarshal(p.condition, &tree); err != nil {
		return p, err
	}
	for _, leaf := range []string{"inCollection", "collectionId"} {
		if asksFor(tree, strings.ToLower(leaf)) {
			return p, fault.Invalid("condition", "must not use %s: a collection cannot depend on collections", leaf)
		}
	}
	if asksFor(tree, "sharingtag") {
		return p, fault.Invalid("condition", "must not use sharingTag, because users must not see sharing tags")
	}
	return p, nil
}

// asksFor reports whether a validated condition contains a leaf at any level; leaf is in lower case without
// underscores.
func asksFor(node any, leaf string) bool {
	switch node := node.(type) {
	case map[string]any:
		for key, value := range node {
			if strings.ReplaceAll(strings.ToLower(key), "_", "") == leaf || asksFor(value, leaf) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(node, func(n any) bool { return asksFor(n, leaf) })
	}
	return false
}

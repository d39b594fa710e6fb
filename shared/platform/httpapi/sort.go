package httpapi

import (
	"cmp"
	"slices"
	"strings"

	"github.com/longbox/longbox/shared/platform/fault"
)

// Sorting is the order of a list in the query, in either spelling.
type Sorting struct {
	Sort  string `query:"sort" maxLength:"64" doc:"Field, or field,asc or field,desc; none is the list's own order"`
	Order string `query:"order" enum:"asc,desc" doc:"Direction, where sort names only a field"`
}

// LatestFirst is the order of a list whose own is by a field, descending. Where that is "", the list has another.
func (s Sorting) LatestFirst(field string) Sorting {
	if s.Sort == "" && field != "" {
		s.Sort, s.Order = field, cmp.Or(s.Order, "desc")
	}
	return s
}

// Relevance is the field to sort by how well what was searched for is met.
const Relevance = "relevance"

// BestFirst is the order of what was searched for: what meets it best comes first, unless the query says otherwise.
func (s Sorting) BestFirst() Sorting {
	if s.Sort == "" || s.Sort == Relevance {
		s.Sort, s.Order = Relevance, cmp.Or(s.Order, "desc")
	}
	return s
}

// By is the field to sort by and whether it descends; "" is the list's own order. BadRequest for a field that is none
// of fields, or a direction that is none.
func (s Sorting) By(fields ...string) (field string, desc bool, err error) {
	field, direction, both := strings.Cut(s.Sort, ",")
	if !both {
		direction = s.Order
	}
	switch {
	case both && (field == "" || direction == ""):
		return "", false, fault.Invalid("sort", "%q is no field and direction, as in title,desc", s.Sort)
	case both && s.Order != "" && s.Order != direction:
		return "", false, fault.Invalid("order", "%q contradicts the direction in sort; leave one of them out", s.Order)
	}
	if field != "" && !slices.Contains(fields, field) {
		return "", false, fault.Invalid("sort", "%q is not a field to sort by; use one of %s", field, strings.Join(fields, ", "))
	}
	switch direction {
	case "", "asc", "desc":
		return field, direction == "desc", nil
	}
	return "", false, fault.Invalid("sort", "the direction must be asc or desc, is %q", direction)
}

package httpapi

import (
	"cmp"
	"slices"
	"strings"

	"github.com/longbox/longbox/shared/platform/fault"
)

// Sorting is the sort order in the query, in either form.
type Sorting struct {
	Sort  string `query:"sort" maxLength:"64" doc:"Sort field, or field,asc or field,desc; defaults to the list's own default order"`
	Order string `query:"order" enum:"asc,desc" doc:"Sort direction, if sort contains only a field"`
}

// LatestFirst sets the default order of a list: by field, descending. With field "" the list has another default.
func (s Sorting) LatestFirst(field string) Sorting {
	if s.Sort == "" && field != "" {
		s.Sort, s.Order = field, cmp.Or(s.Order, "desc")
	}
	return s
}

// Relevance sorts by how well an item matches the search.
const Relevance = "relevance"

// BestFirst sets the default order of a search: best matches first. same are other names of Relevance.
func (s Sorting) BestFirst(same ...string) Sorting {
	if s.Sort == "" || s.Sort == Relevance || slices.Contains(same, s.Sort) {
		s.Sort, s.Order = Relevance, cmp.Or(s.Order, "desc")
	}
	return s
}

// Unranked drops an order by relevance: without a search it is the list's default order. same are other names of
// Relevance.
func (s Sorting) Unranked(same ...string) Sorting {
	if field, _, _ := strings.Cut(s.Sort, ","); field == Relevance || slices.Contains(same, field) {
		return Sorting{}
	}
	return s
}

// By returns the sort field and whether the order is descending; "" means the list's default order. It returns
// BadRequest for a field that is not in fields, or an invalid direction.
func (s Sorting) By(fields ...string) (field string, desc bool, err error) {
	field, direction, both := strings.Cut(s.Sort, ",")
	if !both {
		direction = s.Order
	}
	switch {
	case both && (field == "" || direction == ""):
		return "", false, fault.Invalid("sort", "%q is not a field and a direction, such as title,desc", s.Sort)
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

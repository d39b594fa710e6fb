package komga

import (
	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/series"
)

// Statement is one named query of the lists.
type Statement struct {
	Name, SQL string
	Args      []any
}

// Statements returns pages of the lists as this package selects them; their order and total are tested in their own
// packages.
func Statements(library, of uuid.UUID) ([]Statement, error) {
	all, err := series.List(series.ListQuery{})
	if err != nil {
		return nil, err
	}
	books, err := book.List(book.ListQuery{Library: &library})
	if err != nil {
		return nil, err
	}
	inSeries, err := book.List(book.ListQuery{Series: &of})
	if err != nil {
		return nil, err
	}
	read, err := book.ListRead(book.ListQuery{Library: &library})
	if err != nil {
		return nil, err
	}
	var out []Statement
	for _, limit := range []int{20, maxUnpaged} {
		ids, args := all.Page(limit, 0)
		out = append(out, Statement{"series", seriesSQL(ids, inList), args})
		for name, list := range map[string]*book.Listed{"books": books, "books of a series": inSeries, "books read": read, "on deck": book.ListOnDeck(nil),
			"on deck in libraries": book.ListOnDeck([]string{library.String()})} {
			ids, args := list.Page(limit, 0)
			out = append(out, Statement{name, bookSQL(ids, inList), args})
		}
	}
	return out, nil
}

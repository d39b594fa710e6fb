package series

import "github.com/google/uuid"

// Statement is one named query of the lists.
type Statement struct {
	Name, SQL string
	Args      []any
}

// Statements are the page and the total of every list, in every order, at two depths.
func Statements(library uuid.UUID) []Statement {
	var out []Statement
	add := func(name string, q query) {
		for at, offset := range map[string]int{"first": 0, "deep": 1000} {
			out = append(out, Statement{name + " " + at, q.sql(), append(append([]any{}, q.args...), 50, offset)})
		}
		out = append(out, Statement{name + " largest", q.sql(), append(append([]any{}, q.args...), 500, 0)},
			Statement{name + " total", q.total, q.totalArgs})
	}
	for _, field := range sortFields {
		for _, desc := range []bool{false, true} {
			add("series by "+field, listBy(scope{}, field, desc))
			add("series of a library by "+field, listBy(scope{library: &library}, field, desc))
		}
	}
	for name, list := range map[string]func(scope) query{"in progress": inProgress, "recently added": recentlyAdded, "recently updated": recentlyUpdated} {
		add(name, list(scope{}))
		add(name+" in a library", list(scope{library: &library}))
	}
	return out
}

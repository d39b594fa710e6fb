package book

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Statement is one named query of the lists.
type Statement struct {
	Name, SQL string
	Args      []any
}

// Statements are the page and the total of every list, in every order, at two depths.
func Statements(library, series, book uuid.UUID) []Statement {
	out := []Statement{{"the book before", pageSQL(prevSQL, 1), []any{book, 1, 0}}, {"the book after", pageSQL(nextSQL, 1), []any{book, 1, 0}}}
	add := func(name string, q query) {
		for at, offset := range map[string]int{"first": 0, "deep": 10_000} {
			out = append(out, Statement{name + " " + at, rowsSQL(q.page(offset)), append(append([]any{}, q.args...), 50, offset)})
		}
		out = append(out, Statement{name + " largest", rowsSQL(q.page(0)), append(append([]any{}, q.args...), 500, 0)},
			Statement{name + " total", q.total, q.totalArgs})
	}
	for _, field := range sortFields {
		for _, desc := range []bool{false, true} {
			add("books by "+field, listBy(scope{}, field, desc))
			add("books of a library by "+field, listBy(scope{library: &library}, field, desc))
		}
	}
	words := "series 7"
	for _, field := range append([]string{"relevance"}, sortFields...) {
		add("searched by "+field, found(scope{find: &words}, field, true))
		add("searched in a library by "+field, found(scope{library: &library, find: &words}, field, false))
	}
	for _, field := range append([]string{""}, sortFields...) {
		add("books of a series by "+field, all(scope{series: &series}, field, false))
		add("all books of a series by "+field, all(scope{series: &series, deleted: true}, field, false))
		for name, list := range map[string]listing{"reading": reading, "recently read": recentlyRead, "on deck": onDeck} {
			add(name+" by "+field, list(scope{}, field, true))
			add(name+" in a library by "+field, list(scope{library: &library}, field, false))
		}
		add("failed by "+field, failed(scope{}, "").by(field, false))
	}
	var b pgx.Batch
	listBy(scope{library: &library}, "title", false).queueFull(&b, httpapi.Paging{Page: 3, PageSize: MaxFull})
	for i, q := range b.QueuedQueries {
		out = append(out, Statement{fmt.Sprintf("full %d", i), q.SQL, q.Arguments})
	}
	return out
}

// FarPages are statements for the ids of a page, as they are near the beginning of each list and far from it.
func FarPages(library uuid.UUID, limit, offset int) (near, distant []Statement) {
	for field := range sorts {
		for name, s := range map[string]scope{"all": {}, "library": {library: &library}} {
			for _, desc := range []bool{false, true} {
				q := listBy(s, field, desc)
				at, args := fmt.Sprintf("%s by %s, descending %t", name, field, desc), append(append([]any{}, q.args...), limit, offset)
				near, distant = append(near, Statement{at, q.page(0), args}), append(distant, Statement{at, q.page(far), args})
			}
		}
	}
	return near, distant
}

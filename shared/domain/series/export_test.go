package series

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

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
	terms, err := TermsInput{Genres: "genre 7", Tags: "TAG 3,tag 5"}.narrow(scope{})
	if err != nil {
		panic(err)
	}
	ofLibrary := terms
	ofLibrary.library = &library
	for _, field := range []string{"name", "date_added", "date_read", "page_count"} {
		add("series with terms by "+field, listBy(terms, field, true))
		add("series of a library with terms by "+field, listBy(ofLibrary, field, true))
	}
	words := "series 7"
	for _, field := range append([]string{"relevance"}, sortFields...) {
		add("searched by "+field, found(scope{find: &words}, field, true))
		add("searched in a library by "+field, found(scope{library: &library, find: &words}, field, false))
	}
	for _, field := range append([]string{""}, sortFields...) {
		add("in progress by "+field, inProgress(scope{}, field, true))
		add("in progress in a library by "+field, inProgress(scope{library: &library}, field, false))
	}
	var b pgx.Batch
	listBy(ofLibrary, "name", false).queueFull(&b, httpapi.Paging{Page: 3, PageSize: book.MaxFull})
	for i, q := range b.QueuedQueries {
		out = append(out, Statement{fmt.Sprintf("full %d", i), q.SQL, q.Arguments})
	}
	return append(out, Statement{"index", indexedSQL, nil})
}

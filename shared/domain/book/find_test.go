package book_test

import (
	"fmt"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

func TestFullTextSearch(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me, foreign := s.User(t, "one", "reader"), s.User(t, "two", "reader")
	comics, manga := library(t, s, s.One, "comics"), library(t, s, s.One, "manga")
	batman, books := series(t, s, s.One, comics, "Batman", 3)
	series(t, s, s.One, manga, "The Batman", 1)
	series(t, s, s.Two, library(t, s, s.Two, "theirs"), "Batman", 2)
	exec(t, s, "update book set deleted_at = now() where id = $1", books[2])
	// Found although it was not analysed.
	exec(t, s, "update book set search_title = 'batman 2', analyzed = false where id = $1", books[1])

	for _, c := range []struct{ query, body, want string }{
		{"", `{"fullTextSearch":"BÄTMAN"}`, "[Batman 1 Batman 2 The Batman 1]"}, // the title itself, its beginning, a word
		{"", `{"fullTextSearch":"batman","includeDeleted":true}`, "[Batman 1 Batman 3 Batman 2 The Batman 1]"},
		{"?sort=relevance,asc", `{"fullTextSearch":"batman"}`, "[The Batman 1 Batman 2 Batman 1]"},
		{"?sort=title,desc", `{"fullTextSearch":"batman"}`, "[The Batman 1 Batman 2 Batman 1]"},
		{"?sort=number,desc&pageSize=1", `{"fullTextSearch":"batman"}`, "[Batman 2]"},
		{"?pageSize=1&page=3", `{"fullTextSearch":"batman"}`, "[The Batman 1]"},
		{"", `{"fullTextSearch":"batman","condition":{"seriesId":{"operator":"is","value":"` + batman.String() + `"}}}`, "[Batman 1 Batman 2]"},
		{"", `{"fullTextSearch":"batman","condition":{"libraryId":{"operator":"is","value":"` + manga.String() + `"}}}`, "[The Batman 1]"},
		{"", `{"fullTextSearch":"robin"}`, "[]"},
		{"", `{"fullTextSearch":null}`, "[Batman 1 Batman 2 The Batman 1]"},
		{"?sort=relevance", `{"fullTextSearch":" "}`, "[Batman 1 Batman 2 The Batman 1]"}, // the default order
		{"?sort=relevance,desc", `{}`, "[Batman 1 Batman 2 The Batman 1]"},
	} {
		if got, _ := titles(t, me.Do("POST", "/api/v1/books/list"+c.query, c.body)); fmt.Sprint(got) != c.want {
			t.Errorf("%s %s: %v, want %s", c.query, c.body, got, c.want)
		}
	}
	if _, total := titles(t, me.Do("POST", "/api/v1/books/list?pageSize=1", `{"fullTextSearch":"batman"}`)); total != 3 {
		t.Errorf("3 books were found, the total is %d", total)
	}
	if got, total := titles(t, foreign.Do("POST", "/api/v1/books/list", `{"fullTextSearch":"batman"}`)); total != 2 {
		t.Errorf("another tenant finds %v", got)
	}
}

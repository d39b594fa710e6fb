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

// Words without three letters in a row are compared as they are.
func TestShortWordsWithSigns(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me := s.User(t, "one", "reader")
	_, books := series(t, s, s.One, library(t, s, s.One, "comics"), "C", 4)
	for i, title := range []string{`a_b`, `acb`, `c\d`, `5% x`} {
		exec(t, s, "update book set title = $2, search_title = $2 where id = $1", books[i], title)
	}
	for query, want := range map[string]string{`a_`: `[a_b]`, `c\d`: `[c\d]`, `\`: `[c\d]`, `5%`: `[5% x]`, `% x`: `[5% x]`, `b`: `[a_b acb]`} {
		body := map[string]any{"fullTextSearch": query}
		if got, _ := titles(t, me.Do("POST", "/api/v1/books/list?sort=title", body)); fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
	}
}

// A search stops at 20,000 titles: those of other series, other libraries and lost files do not count, and the title
// itself is among them.
func TestMoreIsFoundThanIsListed(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me := s.User(t, "one", "reader")
	comics, manga := library(t, s, s.One, "comics"), library(t, s, s.One, "manga")
	many, _ := series(t, s, s.One, comics, "Many", 0)
	few, books := series(t, s, s.One, manga, "Few", 2)
	exec(t, s, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, analyzed)
		select $1, gen_random_uuid(), $2, $3, n::text, 1, now(), 'cbz', 'Kit ' || n, 'Kit ' || n, 'kit ' || n, true from generate_series(1, 20001) n`, s.One, comics, many)
	exec(t, s, "update book set search_title = 'it', title = 'It' where id = $1", books[0])
	exec(t, s, "update book set search_title = 'it''s kit', title = 'It’s Kit' where id = $1", books[1])
	exec(t, s, "analyze book")
	for _, c := range []struct{ body, want string }{
		{`{"fullTextSearch":"it"}`, "It"},
		{`{"fullTextSearch":"IT’S"}`, "It’s Kit"},
		{`{"fullTextSearch":"kit","condition":{"seriesId":{"operator":"is","value":"` + few.String() + `"}}}`, "It’s Kit"},
		{`{"fullTextSearch":"kit","condition":{"allOf":[{"library_id":{"operator":"is","value":"` + manga.String() + `"}}]}}`, "It’s Kit"},
	} {
		if got, _ := titles(t, me.Do("POST", "/api/v1/books/list?pageSize=1", c.body)); fmt.Sprint(got) != "["+c.want+"]" {
			t.Errorf("%s: %v, want %s", c.body, got, c.want)
		}
	}
	if _, total := titles(t, me.Do("POST", "/api/v1/books/list?pageSize=1", `{"fullTextSearch":"it"}`)); total != 20_000 {
		t.Errorf("20,003 titles match, %d are found", total)
	}
	exec(t, s, "update book set deleted_at = now() where series_id = $1", many)
	if got, _ := titles(t, me.Do("POST", "/api/v1/books/list", `{"fullTextSearch":"kit"}`)); fmt.Sprint(got) != "[It’s Kit]" {
		t.Errorf("among books whose file is gone: %v", got)
	}
}

// The books of one series are in its order, however the series is named.
func TestOrderOfASeriesByCondition(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me := s.User(t, "one", "reader")
	id, books := series(t, s, s.One, library(t, s, s.One, "comics"), "Series", 2)
	exec(t, s, "update book set title = case when id = $1 then 'Z' else 'A' end, title_sort = case when id = $1 then 'Z' else 'A' end", books[0])
	is := `{"seriesId":{"operator":"is","value":"` + id.String() + `"}}`
	for _, condition := range []string{is, `{"allOf":[{"allOf":[` + is + `]}]}`} {
		if got, _ := titles(t, me.Do("POST", "/api/v1/books/list", `{"condition":`+condition+`}`)); fmt.Sprint(got) != "[Z A]" {
			t.Errorf("%s: %v", condition, got)
		}
	}
	if got, _ := titles(t, me.Do("POST", "/api/v1/books/list", `{"condition":{"anyOf":[`+is+`]}}`)); fmt.Sprint(got) != "[A Z]" {
		t.Errorf("by title: %v", got)
	}
}

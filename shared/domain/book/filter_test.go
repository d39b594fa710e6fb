package book_test

import (
	"fmt"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

func TestFilterFields(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me := s.User(t, "one", "reader")
	comics := library(t, s, s.One, "comics")
	alpha, a := series(t, s, s.One, comics, "Alpha", 2)
	_, b := series(t, s, s.One, comics, "Beta", 1)
	for _, table := range []string{"genre", "tag"} {
		exec(t, s, "insert into "+table+" (tenant_id, id, name) values ($1, gen_random_uuid(), $2)", s.One, "A "+table)
		exec(t, s, "insert into series_"+table+" select tenant_id, $1, id from "+table, alpha)
	}
	exec(t, s, "update book set error_type = 'parser', error_message = 'x', page_count = 0 where id = $1", a[1])
	exec(t, s, "update book set format = 'epub', created_at = '2020-02-03T04:05:06Z', page_count = 300 where id = $1", b[0])
	exec(t, s, `insert into book_metadata (tenant_id, book_id, metadata) values ($1, $2, '{"summary": "Of a hare", "bookType": "novel"}')`, s.One, b[0])

	exec(t, s, "update book set key = U&'A\\0308rger/1.cbz' where id = $1", a[1]) // not NFC
	exec(t, s, "insert into collection (tenant_id, id, kind, name) values ($1, $2, 'books', 'C')", s.One, comics)
	exec(t, s, "insert into collection_member (tenant_id, id, collection_id, book_id, place) values ($1, $2, $2, $3, 1)", s.One, comics, a[1])

	for _, c := range []struct{ condition, want string }{
		{`{"inReadList":{"operator":"isTrue"}}`, "[Alpha 2]"},
		{`{"inReadList":{"operator":"isFalse"}}`, "[Alpha 1 Beta 1]"},
		{`{"genre":{"operator":"is","value":"a GENRE"}}`, "[Alpha 1 Alpha 2]"},
		{`{"genre":{"operator":"isNull"}}`, "[Beta 1]"},
		{`{"tag":{"operator":"doesNotContain","value":"tag"}}`, "[Beta 1]"},
		{`{"allOf":[{"tag":{"operator":"is","value":"a tag"}},{"hasError":{"operator":"isFalse"}}]}`, "[Alpha 1]"},
		{`{"hasError":{"operator":"isTrue"}}`, "[Alpha 2]"},
		{`{"hasError":{"operator":"is","value":true}}`, "[Alpha 2]"},
		{`{"hasError":{"operator":"isNot","value":true}}`, "[Alpha 1 Beta 1]"},
		{`{"format":{"operator":"is","value":"EPUB"}}`, "[Beta 1]"},
		{`{"pageCount":{"operator":"gt","value":10}}`, "[Beta 1]"},
		{`{"pageCount":{"operator":"lte","value":10.5}}`, "[Alpha 1 Alpha 2]"},
		{`{"dateAdded":{"operator":"before","value":"2021-01-01"}}`, "[Beta 1]"},
		{`{"summary":{"operator":"contains","value":"HARE"}}`, "[Beta 1]"},
		{`{"summary":{"operator":"isNull"}}`, "[Alpha 1 Alpha 2]"},
		{`{"bookType":{"operator":"is","value":"novel"}}`, "[Beta 1]"},
		{`{"titleSort":{"operator":"endsWith","value":"2"}}`, "[Alpha 2]"},
		{`{"path":{"operator":"endsWith","value":"/ÄRGER/1.CBZ"}}`, "[Alpha 2]"},
		{`{"path":{"operator":"is","value":"/BOOKS/comics/Ärger/1.cbz"}}`, "[Alpha 2]"},
		{`{"path":{"operator":"doesNotContain","value":"ärger"}}`, "[Alpha 1 Beta 1]"},
		{`{"path":{"operator":"beginsWith","value":"/books/comics/"}}`, "[Alpha 1 Alpha 2 Beta 1]"},
		{`{"path":{"operator":"contains","value":"%"}}`, "[]"},
	} {
		got, total := titles(t, me.Do("POST", "/api/v1/books/list", `{"condition":`+c.condition+`}`))
		if fmt.Sprint(got) != c.want || total != len(got) {
			t.Errorf("%s: %v of %d, want %s", c.condition, got, total, c.want)
		}
		if got, _ := titles(t, me.Do("POST", "/api/v1/books/list?sort=title", `{"fullTextSearch":"a","condition":`+c.condition+`}`)); fmt.Sprint(got) != c.want {
			t.Errorf("%s among what was searched for: %v, want %s", c.condition, got, c.want)
		}
	}
}

package series_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/testkit"
)

func TestFilterFields(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me := s.User(t, "one", "reader")
	library := newLibrary(t, s, s.One, "comics")
	term := func(tenant, series uuid.UUID, table, name string) {
		t.Helper()
		exec(t, s, "insert into "+table+" (tenant_id, id, name) values ($1, gen_random_uuid(), $2) on conflict do nothing", tenant, name)
		exec(t, s, "insert into series_"+table+" select $1, $2, id from "+table+" where tenant_id = $1 and name = $3", tenant, series, name)
	}
	a, _ := newSeries(t, s, s.One, library, "Alpha", 1, 1)
	b, _ := newSeries(t, s, s.One, library, "Beta", 2, 1)
	gamma, _ := newSeries(t, s, s.One, library, "Gamma", 3, 1)
	term(s.One, a, "genre", "Science Fiction")
	term(s.One, a, "genre", "Drama")
	term(s.One, b, "genre", "Drama")
	term(s.One, b, "tag", "50% off")
	foreign, _ := newSeries(t, s, s.Two, newLibrary(t, s, s.Two, "theirs"), "Delta", 1, 1)
	term(s.Two, foreign, "genre", "Drama")
	exec(t, s, `update series set status = 'ended', publisher = 'Fox', language = 'de', summary = 'Of a hare',
		authors = '[{"name": "Ann", "role": "writer"}, {"name": "Bob", "role": "inker"}]' where id = $1`, a)
	exec(t, s, `update series set status = 'ongoing', publisher = 'Hen', language = 'pt-BR', authors = 'null', created_at = '2020-02-03T04:05:06Z' where id = $1`, b)

	exec(t, s, "update series set total_volume_count = case id when $1 then 2 else 1 end, book_count = 1 where id in ($1, $2)", a, b)
	exec(t, s, "update series set path = '/Gamma' where id = $1", gamma) // all over the library
	exec(t, s, "insert into collection (tenant_id, id, kind, name) values ($1, $2, 'series', 'C')", s.One, library)
	exec(t, s, "insert into collection_member (tenant_id, id, collection_id, series_id, place) values ($1, $2, $2, $3, 1)", s.One, library, a)
	exec(t, s, "insert into external_id (tenant_id, id, series_id, source, external_id) values ($1, $2, $2, 's', 'x')", s.One, b)
	other := s.User(t, "one", "reader")
	for _, r := range []struct {
		of     *testkit.Client
		series uuid.UUID
		rating int
	}{{me, a, 80}, {me, b, 41}, {other, a, 100}, {other, gamma, 7}} {
		exec(t, s, "insert into series_rating (tenant_id, account_id, series_id, id, rating) values ($1, $2, $3, gen_random_uuid(), $4)", s.One, r.of.ID, r.series, r.rating)
	}

	for _, c := range []struct{ condition, want string }{
		{`{"userRating":{"operator":"gte","value":41}}`, "Alpha,Beta"},
		{`{"userRating":{"operator":"ne","value":80}}`, "Beta"},
		{`{"userRating":{"operator":"between","min":50,"max":100}}`, "Alpha"},
		{`{"userRating":{"operator":"isNull"}}`, "Gamma"},
		{`{"hasUserRating":{"operator":"isTrue"}}`, "Alpha,Beta"},
		{`{"hasUserRating":{"operator":"isFalse"}}`, "Gamma"},
		{`{"communityRating":{"operator":"eq","value":90}}`, "Alpha"},
		{`{"communityRating":{"operator":"lt","value":41.5}}`, "Beta,Gamma"},
		{`{"communityRating":{"operator":"isNotNull"}}`, "Alpha,Beta,Gamma"},
		{`{"allOf":[{"communityRating":{"operator":"gt","value":10}},{"userRating":{"operator":"lt","value":60}}]}`, "Beta"},
		{`{"inCollection":{"operator":"isTrue"}}`, "Alpha"},
		{`{"completion":{"operator":"isTrue"}}`, "Beta"},
		{`{"completion":{"operator":"isFalse"}}`, "Alpha,Gamma"},
		{`{"completion":{"operator":"is","value":false}}`, "Alpha,Gamma"},
		{`{"path":{"operator":"is","value":"S3://B/comics/x/alpha"}}`, "Alpha"},
		{`{"path":{"operator":"is","value":"s3://b/comics"}}`, "Gamma"},
		{`{"path":{"operator":"isNot","value":"s3://b/comics"}}`, "Alpha,Beta"},
		{`{"path":{"operator":"contains","value":"/x/"}}`, "Alpha,Beta"},
		{`{"path":{"operator":"isNull"}}`, ""},
		{`{"inCollection":{"operator":"isFalse"}}`, "Beta,Gamma"},
		{`{"hasExternalSourceId":{"operator":"isTrue"}}`, "Beta"},
		{`{"genre":{"operator":"is","value":"drama"}}`, "Alpha,Beta"},
		{`{"genre":{"operator":"isNot","value":"SCIENCE fiction"}}`, "Beta,Gamma"},
		{`{"genre":{"operator":"contains","value":"fic"}}`, "Alpha"},
		{`{"genre":{"operator":"doesNotContain","value":"fic"}}`, "Beta,Gamma"},
		{`{"genre":{"operator":"beginsWith","value":"dra"}}`, "Alpha,Beta"},
		{`{"genre":{"operator":"isNull"}}`, "Gamma"},
		{`{"genre":{"operator":"isNotNull"}}`, "Alpha,Beta"},
		{`{"allOf":[{"genre":{"operator":"is","value":"drama"}},{"genre":{"operator":"is","value":"science fiction"}}]}`, "Alpha"},
		{`{"allOf":[{"genre":{"operator":"is","value":"drama"}},{"tag":{"operator":"contains","value":"0%"}}]}`, "Beta"},
		{`{"anyOf":[{"tag":{"operator":"isNotNull"}},{"name":{"operator":"is","value":"gamma"}}]}`, "Beta,Gamma"},
		{`{"status":{"operator":"is","value":"ENDED"}}`, "Alpha"},
		{`{"status":{"operator":"isNull"}}`, "Gamma"},
		{`{"publisher":{"operator":"beginsWith","value":"f"}}`, "Alpha"},
		{`{"publisher":{"operator":"isNot","value":"fox"}}`, "Beta,Gamma"},
		{`{"language":{"operator":"contains","value":"pt"}}`, "Beta"},
		{`{"summary":{"operator":"endsWith","value":"HARE"}}`, "Alpha"},
		{`{"titleSort":{"operator":"beginsWith","value":"be"}}`, "Beta"},
		{`{"author":{"operator":"is","value":"bob"}}`, "Alpha"},
		{`{"author":{"operator":"isNot","value":"ann"}}`, "Beta,Gamma"},
		{`{"author":{"operator":"isNull"}}`, "Beta,Gamma"},
		{`{"year":{"operator":"between","min":2002,"max":2003}}`, "Beta,Gamma"},
		{`{"dateAdded":{"operator":"before","value":"2021-01-01"}}`, "Beta"},
		{`{"date_added":{"operator":"isNull"}}`, ""},
	} {
		got, total := titles(t, me.Do("POST", "/api/v1/series/list", `{"condition":`+c.condition+`}`))
		if n := len(strings.FieldsFunc(c.want, func(r rune) bool { return r == ',' })); got != c.want || total != n {
			t.Errorf("%s: %s of %d, want %s", c.condition, got, total, c.want)
		}
		if got, _ := titles(t, me.Do("POST", "/api/v1/series/list?sort=date_read", `{"condition":`+c.condition+`}`)); got != c.want {
			t.Errorf("%s by the last reading: %s, want %s", c.condition, got, c.want)
		}
		if got, _ := titles(t, me.Do("POST", "/api/v1/series/list?sort=name", `{"fullTextSearch":"a","condition":`+c.condition+`}`)); got != c.want {
			t.Errorf("%s among what was searched for: %s, want %s", c.condition, got, c.want)
		}
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me, foreign := s.User(t, "one", "reader"), s.User(t, "two", "reader")
	library := newLibrary(t, s, s.One, "comics")
	for i, title := range []string{"Zoo", "ärger", "Abel", "abc", "7 Days", "#1", "Ärmel"} {
		newSeries(t, s, s.One, library, title, i, 1)
	}
	groups := func(c *testkit.Client, query, body string) (out string) {
		t.Helper()
		var page struct {
			Data []struct {
				Group string
				Count int
			}
			Total int
		}
		c.Do("POST", "/api/v1/series/list/alphabetical-groups"+query, body).Want(200).JSON(&page)
		for _, g := range page.Data {
			out += line(g.Group, g.Count) + ", "
		}
		return out + line("of", page.Total)
	}
	for _, c := range [][3]string{
		{"", `{}`, "# 1, 7 1, a 2, ä 2, z 1, of 5"},
		{"?pageSize=2&page=2", `{}`, "a 2, ä 2, of 5"},
		{"", `{"condition":{"title":{"operator":"contains","value":"e"}}}`, "a 1, ä 2, of 2"},
		{"", `{"fullTextSearch":"a"}`, "7 1, a 2, of 2"},
		{"", `{"fullTextSearch":"a","condition":{"title":{"operator":"beginsWith","value":"7"}}}`, "7 1, of 1"},
	} {
		if got := groups(me, c[0], c[1]); got != c[2] {
			t.Errorf("%s %s: %s, want %s", c[0], c[1], got, c[2])
		}
	}
	if got := groups(foreign, "", `{}`); got != "of 0" {
		t.Errorf("another tenant's: %s", got)
	}
	me.Do("POST", "/api/v1/series/list/alphabetical-groups", `{"condition":{"what":1}}`).Want(400)
}

// Series with a value come first in order; the others follow by name.
func TestSortByRatings(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me, other := s.User(t, "one", "reader"), s.User(t, "one", "reader")
	library := newLibrary(t, s, s.One, "comics")
	ids := map[string]uuid.UUID{}
	for i, title := range []string{"D", "C", "B", "A"} {
		id, books := newSeries(t, s, s.One, library, title, i, 1)
		ids[title] = id
		exec(t, s, "insert into progress (tenant_id, account_id, book_id, id, current_page) values ($1, $2, $3, gen_random_uuid(), 1)", s.One, me.ID, books[0])
	}
	for _, r := range []struct {
		of     *testkit.Client
		series string
		rating int
	}{{me, "C", 80}, {me, "D", 41}, {other, "D", 99}, {other, "B", 90}} {
		exec(t, s, "insert into series_rating (tenant_id, account_id, series_id, id, rating) values ($1, $2, $3, gen_random_uuid(), $4)", s.One, r.of.ID, ids[r.series], r.rating)
	}
	for source, rating := range map[string]int{"x": 10, "y": 20} {
		exec(t, s, "insert into external_rating (tenant_id, id, series_id, source_name, rating) values ($1, gen_random_uuid(), $2, $3, $4)", s.One, ids["B"], source, rating)
	}
	exec(t, s, "insert into external_rating (tenant_id, id, series_id, source_name, rating) values ($1, gen_random_uuid(), $2, 'x', 16)", s.One, ids["D"])
	for sort, want := range map[string]string{"rating": "D,C,A,B", "rating,desc": "C,D,A,B", "community_rating,desc": "B,C,D,A", "community_rating": "D,C,B,A",
		"external_rating,desc": "D,B,A,C", "rating,desc&pageSize=2&page=2": "A,B", "rating,desc&pageSize=3&page=2": "B"} {
		if got, total := titles(t, me.Do("GET", "/api/v1/series?sort="+sort, nil)); got != want || total != 4 {
			t.Errorf("%s: %s of %d, want %s", sort, got, total, want)
		}
		if strings.Contains(sort, "page") {
			continue
		}
		if got, _ := titles(t, me.Do("GET", "/api/v1/libraries/"+library.String()+"/series?sort="+sort, nil)); got != want {
			t.Errorf("%s in the library: %s, want %s", sort, got, want)
		}
		if got, _ := titles(t, me.Do("POST", "/api/v1/series/list?sort="+sort, `{"condition":{"title":{"operator":"isNot","value":"B"}}}`)); got != strings.ReplaceAll(strings.ReplaceAll(want, ",B", ""), "B,", "") {
			t.Errorf("%s without B: %s", sort, got)
		}
		if got, total := titles(t, me.Do("GET", "/api/v1/series/in-progress?sort="+sort, nil)); total != 4 || got != want {
			t.Errorf("%s in progress: %s of %d, want %s", sort, got, total, want)
		}
	}
}

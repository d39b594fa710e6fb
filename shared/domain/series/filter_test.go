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
	newSeries(t, s, s.One, library, "Gamma", 3, 1)
	term(s.One, a, "genre", "Science Fiction")
	term(s.One, a, "genre", "Drama")
	term(s.One, b, "genre", "Drama")
	term(s.One, b, "tag", "50% off")
	foreign, _ := newSeries(t, s, s.Two, newLibrary(t, s, s.Two, "theirs"), "Delta", 1, 1)
	term(s.Two, foreign, "genre", "Drama")
	exec(t, s, `update series set status = 'ended', publisher = 'Fox', language = 'de', summary = 'Of a hare',
		authors = '[{"name": "Ann", "role": "writer"}, {"name": "Bob", "role": "inker"}]' where id = $1`, a)
	exec(t, s, `update series set status = 'ongoing', publisher = 'Hen', language = 'pt-BR', authors = 'null', created_at = '2020-02-03T04:05:06Z' where id = $1`, b)

	for _, c := range []struct{ condition, want string }{
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

package filter_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/filter"
	"github.com/longbox/longbox/shared/testkit"
)

// rows are what the conditions below are asked of; 4 is null in every column.
const rows = `(values
	(1, 'Saga',     '0190a3c2-0000-7000-8000-00000000000a'::uuid, true,  10,   '2026-01-01T00:00:00Z'::timestamptz, 'comic'),
	(2, 'saga 50%', '0190a3c2-0000-7000-8000-00000000000b'::uuid, false, 20,   '2026-02-01T00:00:00Z'::timestamptz, 'book'),
	(3, 'Été_\x',   '0190a3c2-0000-7000-8000-00000000000c'::uuid, false, 30,   '2026-03-01T00:00:00Z'::timestamptz, 'book'),
	(4, null,       null,                                         null,  null, null,                                null)
	) t(id, title, lib, failed, pages, added, kind)`

// TestMeaning asks a real Postgres, in the mode that the server uses.
func TestMeaning(t *testing.T) {
	t.Parallel()
	pool := testkit.DB(t).App.Pool()
	schema := filter.Schema{
		"title": {Type: filter.Text, Column: "t.title"}, "lib": {Type: filter.UUID, Column: "t.lib"},
		"failed": {Type: filter.Bool, Column: "t.failed"}, "pages": {Type: filter.Number, Column: "t.pages"},
		"word":  {Type: filter.Text, Column: "w", Among: "exists (select from unnest(string_to_array(t.title, ' ')) w where %s)"},
		"digit": {Type: filter.Number, Column: "d::text::integer", Among: "exists (select from unnest(string_to_array(t.pages::text, null)) d where %s)"},
		"added": {Type: filter.Date, Column: "t.added"}, "kind": {Type: filter.Enum, Column: "t.kind", Values: []string{"comic", "book"}},
	}
	const a, b = `"0190a3c2-0000-7000-8000-00000000000a"`, `"0190a3c2-0000-7000-8000-00000000000b"`
	tests := []struct {
		condition string
		want      []int
	}{
		{`null`, []int{1, 2, 3, 4}},
		{`{"anyOf":[]}`, nil},
		{`{"title":{"operator":"is","value":"SAGA"}}`, []int{1}},
		{`{"title":{"operator":"is","value":"été_\\x"}}`, []int{3}},
		{`{"title":{"operator":"beginsWith","value":"e\u0301t"}}`, []int{3}},
		{`{"title":{"operator":"isNot","value":"saga"}}`, []int{2, 3, 4}},
		{`{"title":{"operator":"isNull"}}`, []int{4}},
		{`{"title":{"operator":"isNotNull"}}`, []int{1, 2, 3}},
		{`{"title":{"operator":"contains","value":"0%"}}`, []int{2}},
		{`{"title":{"operator":"contains","value":"_"}}`, []int{3}},
		{`{"title":{"operator":"contains","value":"\\"}}`, []int{3}},
		{`{"title":{"operator":"doesNotContain","value":"AG"}}`, []int{3, 4}},
		{`{"title":{"operator":"beginsWith","value":"SAGA"}}`, []int{1, 2}},
		{`{"title":{"operator":"endsWith","value":"%"}}`, []int{2}},
		{`{"title":{"operator":"is","value":"' or true --"}}`, nil},
		{`{"lib":{"operator":"is","value":` + a + `}}`, []int{1}},
		{`{"lib":{"operator":"isNot","value":` + a + `}}`, []int{2, 3, 4}},
		{`{"lib":{"operator":"in","values":[` + a + `,` + b + `]}}`, []int{1, 2}},
		{`{"lib":{"operator":"in","values":[]}}`, nil},
		{`{"lib":{"operator":"notIn","values":[` + a + `,` + b + `]}}`, []int{3, 4}},
		{`{"lib":{"operator":"notIn","values":[]}}`, []int{1, 2, 3, 4}},
		{`{"word":{"operator":"is","value":"SAGA"}}`, []int{1, 2}},
		{`{"word":{"operator":"isNot","value":"saga"}}`, []int{3, 4}},
		{`{"word":{"operator":"contains","value":"0%"}}`, []int{2}},
		{`{"word":{"operator":"doesNotContain","value":"0%"}}`, []int{1, 3, 4}},
		{`{"word":{"operator":"beginsWith","value":"50"}}`, []int{2}},
		{`{"word":{"operator":"endsWith","value":"X"}}`, []int{3}},
		{`{"word":{"operator":"isNull"}}`, []int{4}},
		{`{"word":{"operator":"isNotNull"}}`, []int{1, 2, 3}},
		{`{"allOf":[{"word":{"operator":"is","value":"saga"}},{"word":{"operator":"isNot","value":"50%"}}]}`, []int{1}},
		{`{"failed":{"operator":"isTrue"}}`, []int{1}},
		{`{"failed":{"operator":"is","value":true}}`, []int{1}},
		{`{"failed":{"operator":"is","value":false}}`, []int{2, 3, 4}},
		{`{"failed":{"operator":"isNot","value":true}}`, []int{2, 3, 4}},
		{`{"failed":{"operator":"isNot","value":false}}`, []int{1}},
		{`{"failed":{"operator":"isFalse"}}`, []int{2, 3, 4}},
		{`{"pages":{"operator":"eq","value":20}}`, []int{2}},
		{`{"pages":{"operator":"ne","value":20}}`, []int{1, 3}},
		{`{"pages":{"operator":"gt","value":19.5}}`, []int{2, 3}},
		{`{"pages":{"operator":"gte","value":20}}`, []int{2, 3}},
		{`{"pages":{"operator":"lt","value":9223372036854775807}}`, []int{1, 2, 3}},
		{`{"pages":{"operator":"lte","value":10}}`, []int{1}},
		{`{"pages":{"operator":"between","min":10,"max":20}}`, []int{1, 2}},
		{`{"pages":{"operator":"between","min":15.5}}`, []int{2, 3}},
		{`{"pages":{"operator":"between"}}`, []int{1, 2, 3}},
		{`{"pages":{"operator":"isNull"}}`, []int{4}},
		{`{"digit":{"operator":"eq","value":2}}`, []int{2}},
		{`{"digit":{"operator":"lt","value":1}}`, []int{1, 2, 3}},
		{`{"digit":{"operator":"between","min":1.5}}`, []int{2, 3}},
		{`{"digit":{"operator":"isNull"}}`, []int{4}},
		{`{"digit":{"operator":"isNotNull"}}`, []int{1, 2, 3}},
		{`{"added":{"operator":"after","value":"2026-02-01"}}`, []int{3}},
		{`{"added":{"operator":"onOrAfter","value":"2026-02-01T01:00:00+01:00"}}`, []int{2, 3}},
		{`{"added":{"operator":"before","value":"2026-02-01"}}`, []int{1}},
		{`{"added":{"operator":"onOrBefore","value":"2026-02-01"}}`, []int{1, 2}},
		{`{"added":{"operator":"between","start":"2026-01-15","end":"2026-03-01"}}`, []int{2, 3}},
		{`{"added":{"operator":"after","value":"0000-01-01"}}`, []int{1, 2, 3}},
		{`{"added":{"operator":"isNotNull"}}`, []int{1, 2, 3}},
		{`{"kind":{"operator":"isNot","value":"book"}}`, []int{1, 4}},
		{`{"allOf":[{"kind":{"operator":"is","value":"book"}},{"anyOf":[{"pages":{"operator":"lt","value":25}},{"failed":{"operator":"isTrue"}}]}]}`, []int{2}},
	}
	for _, tt := range tests {
		t.Run(tt.condition, func(t *testing.T) {
			t.Parallel()
			where, args, err := filter.Compile(json.RawMessage(tt.condition), schema, 2)
			if err != nil {
				t.Fatal(err)
			}
			args = append([]any{0}, args...)
			sql := "select t.id from " + rows + " where t.id > $1 and " + where + " order by t.id"
			found, err := pool.Query(t.Context(), sql, args...)
			if err != nil {
				t.Fatal(err)
			}
			ids, err := pgx.CollectRows(found, pgx.RowTo[int])
			if err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
			if !slices.Equal(ids, tt.want) {
				t.Errorf("rows %v, want %v, by %s", ids, tt.want, where)
			}
		})
	}
}

package automatch

import (
	"encoding/json"
	"testing"
)

var about = map[string]any{"type": "series", "bookCount": 12.0, "metadata": map[string]any{"title": "Tom & <Jerry>", "year": 1999.0, "summary": "", "genres": []any{"Drama", "War"},
	"titleLock": true, "status": nil, "tags": []any{}}, "externalIds": map[string]any{"plugin:test": map[string]any{"id": "7", "url": "https://example.org/7", "hash": nil},
	"comicinfo": map[string]any{"id": "x"}, "example.id": map[string]any{"id": "y"}},
	"customMetadata": map[string]any{"my_key": map[string]any{"a": "b"}}}

func TestConditions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		field, operator, value string
		want                   bool
	}{
		{"metadata.title", "equals", `"Tom & <Jerry>"`, true}, {"metadata.title", "equals", `"tom & <jerry>"`, false}, {"metadata.title", "not_equals", `"x"`, true},
		{"metadata.year", "equals", `"1999"`, true}, {"metadata.year", "equals", `1999`, true}, {"metadata.year", "gt", `1998`, true}, {"metadata.year", "gte", `1999`, true},
		{"metadata.year", "lt", `1999`, false}, {"metadata.year", "lte", `"1999"`, true}, {"metadata.title", "gt", `1`, false}, {"book_count", "gt", `5`, true},
		{"metadata.genres", "contains", `"War"`, true}, {"metadata.genres", "not_contains", `"War"`, false}, {"metadata.title", "starts_with", `"Tom"`, true},
		{"metadata.title", "ends_with", `">"`, true}, {"metadata.title", "matches", `"^T.m"`, true}, {"metadata.title", "matches", `"("`, false},
		{"metadata.year", "in", `[1998, "1999"]`, true}, {"metadata.year", "not_in", `[1999]`, false}, {"metadata.none", "not_in", `[1]`, true},
		{"metadata.status", "is_null", `null`, true}, {"metadata.summary", "is_null", `null`, true}, {"metadata.tags", "is_null", `null`, true}, {"metadata.none", "is_null", `null`, true},
		{"metadata.title", "is_null", `null`, false}, {"metadata.title", "is_not_null", `null`, true}, {"metadata.none", "equals", `"x"`, false}, {"metadata.none", "not_equals", `"x"`, true},
		{"externalIds.count", "equals", `3`, true}, {"externalIds.plugin:test", "equals", `"7"`, true}, {"external_ids.plugin:other", "is_null", `null`, true},
		{"metadata.title_lock", "equals", `true`, true}, {"customMetadata.my_key.a", "equals", `"b"`, true}, {"custom_metadata.my_key.a", "equals", `"b"`, true},
		{"customMetadata.myKey.a", "is_null", `null`, true}, {"metadata.title.x", "is_null", `null`, true},
		{"externalIds.plugin:test.id", "equals", `"7"`, true}, {"externalIds.comicinfo.id", "is_null", `null`, false}, {"external_ids.plugin:test.url", "starts_with", `"https:"`, true},
		{"externalIds.plugin:test.hash", "is_null", `null`, true}, {"externalIds.plugin:test.title", "is_null", `null`, true}, {"externalIds.other.id", "is_null", `null`, true},
		{"externalIds.example.id", "equals", `"y"`, true}, {"externalIds.example.id.id", "equals", `"y"`, true},
		{"metadata.status", "not_equals", `"x"`, true}, {"metadata.status", "not_equals", `""`, false}, {"metadata.status", "equals", `""`, false}, {"metadata.status", "like", `""`, false},
	} {
		raw := json.RawMessage(`{"rules":[{"field":"` + c.field + `","operator":"` + c.operator + `","value":` + c.value + `}]}`)
		no, err := Unmet(raw, about)
		if err != nil || (no == nil) != c.want {
			t.Errorf("%s %s %s: %v, %v", c.field, c.operator, c.value, no == nil, err)
		}
	}
	yes, no := `{"field":"type","operator":"equals","value":"series"}`, `{"field":"type","operator":"equals","value":"book"}`
	for raw, want := range map[string]bool{"": true, "{}": true, `{"rules":[]}`: true, `{"rules":[` + yes + `,` + no + `]}`: false, `{"mode":"any","rules":[` + no + `,` + yes + `]}`: true,
		`{"mode":"any","rules":[` + no + `]}`: false, `{"mode":"any","rules":[]}`: true} {
		if failed, err := Unmet(json.RawMessage(raw), about); err != nil || (failed == nil) != want {
			t.Errorf("%s: %v %v", raw, failed, err)
		}
	}
}

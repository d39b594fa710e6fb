package filter

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

var (
	idA = uuid.MustParse("0190a3c2-0000-7000-8000-00000000000a")
	idB = uuid.MustParse("0190a3c2-0000-7000-8000-00000000000b")
)

func testSchema() Schema {
	title := Field{Type: Text, Column: "s.title"}
	return Schema{
		"title":     title,
		"name":      title,
		"libraryId": {Type: UUID, Column: "s.library_id"},
		"hasError":  {Type: Bool, Column: "b.has_error"},
		"pageCount": {Type: Number, Column: "b.page_count"},
		"dateAdded": {Type: Date, Column: "b.created_at"},
		"kind":      {Type: Enum, Column: "b.kind", Values: []string{"comic", "book"}},
		"readStatus": {Type: Enum, Values: []string{"unread", "in_progress", "read"}, Custom: func(b *Builder, op string, v any) (string, error) {
			switch {
			case v == "read" && op == "is":
				return "p.completed or p.pages = " + b.Arg(int64(7)), nil
			case v == "unread":
				return "", &Error{Message: "is not possible here"}
			}
			return "", errors.New("the database is on fire")
		}},
	}
}

func TestOperators(t *testing.T) {
	t.Parallel()
	moment := time.Date(2026, 11, 21, 8, 30, 0, 0, time.UTC)
	day := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	night := time.Date(2026, 11, 21, 23, 59, 59, 999999000, time.UTC)
	tests := []struct {
		raw, want string
		args      []any
	}{
		{`{"title":{"operator":"is","value":"Saga"}}`, "lower(s.title) = lower($3::text)", []any{"Saga"}},
		{`{"title":{"operator":"is","value":""}}`, "lower(s.title) = lower($3::text)", []any{""}},
		{`{"title":{"operator":"isNot","value":"Saga"}}`, "lower(s.title) is distinct from lower($3::text)", []any{"Saga"}},
		{`{"title":{"operator":"is_not","value":"Saga"}}`, "lower(s.title) is distinct from lower($3::text)", []any{"Saga"}},
		{`{"title":{"operator":"isNull"}}`, "s.title is null", nil},
		{`{"title":{"operator":"isNull","value":null}}`, "s.title is null", nil},
		{`{"title":{"operator":"isNotNull"}}`, "s.title is not null", nil},
		{`{"title":{"operator":"contains","value":"50%_\\"}}`, "s.title ilike $3::text", []any{`%50\%\_\\%`}},
		{`{"title":{"operator":"doesNotContain","value":"x"}}`, "(s.title ilike $3::text) is not true", []any{"%x%"}},
		{`{"title":{"operator":"does_not_contain","value":"x"}}`, "(s.title ilike $3::text) is not true", []any{"%x%"}},
		{`{"title":{"operator":"beginsWith","value":"x"}}`, "s.title ilike $3::text", []any{"x%"}},
		{`{"title":{"operator":"endsWith","value":"x"}}`, "s.title ilike $3::text", []any{"%x"}},

		{`{"libraryId":{"operator":"is","value":"0190A3C2-0000-7000-8000-00000000000A"}}`, "s.library_id = $3::uuid", []any{idA}},
		{`{"library_id":{"operator":"isNot","value":"` + idA.String() + `"}}`, "s.library_id is distinct from $3::uuid", []any{idA}},
		{`{"libraryId":{"operator":"in","values":["` + idA.String() + `","` + idB.String() + `"]}}`, "s.library_id = any($3::uuid[])", []any{[]uuid.UUID{idA, idB}}},
		{`{"libraryId":{"operator":"notIn","values":["` + idA.String() + `"]}}`, "(s.library_id = any($3::uuid[])) is not true", []any{[]uuid.UUID{idA}}},
		{`{"libraryId":{"operator":"in","values":[]}}`, "false", nil},
		{`{"libraryId":{"operator":"not_in","values":[]}}`, "true", nil},

		{`{"hasError":{"operator":"isTrue"}}`, "b.has_error is true", nil},
		{`{"has_error":{"operator":"is_false"}}`, "b.has_error is not true", nil},

		{`{"pageCount":{"operator":"eq","value":20}}`, "b.page_count = $3::bigint", []any{int64(20)}},
		{`{"pageCount":{"operator":"ne","value":-1}}`, "b.page_count <> $3::bigint", []any{int64(-1)}},
		{`{"pageCount":{"operator":"gt","value":1e2}}`, "b.page_count > $3::float8", []any{100.0}},
		{`{"pageCount":{"operator":"gte","value":0}}`, "b.page_count >= $3::bigint", []any{int64(0)}},
		{`{"pageCount":{"operator":"lt","value":10.5}}`, "b.page_count < $3::float8", []any{10.5}},
		{`{"pageCount":{"operator":"lte","value":99999999999999999999}}`, "b.page_count <= $3::float8", []any{1e20}},
		{`{"pageCount":{"operator":"between","min":1,"max":2}}`, "b.page_count between $3::bigint and $4::bigint", []any{int64(1), int64(2)}},
		{`{"pageCount":{"operator":"between","min":1}}`, "b.page_count >= $3::bigint", []any{int64(1)}},
		{`{"pageCount":{"operator":"between","min":null,"max":2}}`, "b.page_count <= $3::bigint", []any{int64(2)}},
		{`{"pageCount":{"operator":"between"}}`, "b.page_count is not null", nil},
		{`{"pageCount":{"operator":"isNull"}}`, "b.page_count is null", nil},
		{`{"pageCount":{"operator":"isNotNull"}}`, "b.page_count is not null", nil},

		{`{"dateAdded":{"operator":"after","value":"2026-11-21T09:30:00+01:00"}}`, "b.created_at > $3::timestamptz", []any{moment}},
		{`{"dateAdded":{"operator":"before","value":"2026-11-21"}}`, "b.created_at < $3::timestamptz", []any{day}},
		{`{"dateAdded":{"operator":"onOrAfter","value":"2026-11-21"}}`, "b.created_at >= $3::timestamptz", []any{day}},
		{`{"dateAdded":{"operator":"onOrBefore","value":"2026-11-21"}}`, "b.created_at <= $3::timestamptz", []any{night}},
		{`{"dateAdded":{"operator":"onOrBefore","value":"2026-11-21T00:00:00Z"}}`, "b.created_at <= $3::timestamptz", []any{day}},
		{`{"dateAdded":{"operator":"after","value":"2026-11-21"}}`, "b.created_at > $3::timestamptz", []any{night}},
		{`{"dateAdded":{"operator":"between","start":"2026-11-21","end":"2026-11-21"}}`, "b.created_at between $3::timestamptz and $4::timestamptz", []any{day, night}},
		{`{"dateAdded":{"operator":"between","start":"2026-11-21","end":"2026-11-21T08:30:00Z"}}`, "b.created_at between $3::timestamptz and $4::timestamptz", []any{day, moment}},
		{`{"dateAdded":{"operator":"between","end":"2026-11-21"}}`, "b.created_at <= $3::timestamptz", []any{night}},
		{`{"dateAdded":{"operator":"isNull"}}`, "b.created_at is null", nil},
		{`{"dateAdded":{"operator":"isNotNull"}}`, "b.created_at is not null", nil},

		{`{"kind":{"operator":"is","value":"comic"}}`, "b.kind = $3::text", []any{"comic"}},
		{`{"kind":{"operator":"isNot","value":"book"}}`, "b.kind is distinct from $3::text", []any{"book"}},
		{`{"readStatus":{"operator":"is","value":"read"}}`, "(p.completed or p.pages = $3)", []any{int64(7)}},
	}
	for _, tt := range tests {
		t.Run(tt.raw, func(t *testing.T) {
			t.Parallel()
			where, args, err := Compile(json.RawMessage(tt.raw), testSchema(), 3)
			if err != nil {
				t.Fatal(err)
			}
			if where != tt.want {
				t.Errorf("where %s\nwant  %s", where, tt.want)
			}
			if diff := cmp.Diff(tt.args, args); diff != "" {
				t.Errorf("arguments (-want +got)\n%s", diff)
			}
		})
	}
}

func TestTrees(t *testing.T) {
	t.Parallel()
	leaf := func(v string) string { return `{"title":{"operator":"is","value":"` + v + `"}}` }
	tests := []struct {
		raw, want string
		args      int
	}{
		{``, "true", 0},
		{` null `, "true", 0},
		{`{"allOf":[]}`, "true", 0},
		{`{"anyOf":[]}`, "false", 0},
		{`{"allOf":[` + leaf("a") + `]}`, "lower(s.title) = lower($1::text)", 1},
		{`{"any_of":[` + leaf("a") + `,{"all_of":[` + leaf("b") + `,{"name":{"operator":"isNull"}}]}]}`,
			"(lower(s.title) = lower($1::text) or (lower(s.title) = lower($2::text) and s.title is null))", 2},
	}
	for _, tt := range tests {
		where, args, err := Compile(json.RawMessage(tt.raw), testSchema(), 1)
		if err != nil || where != tt.want || len(args) != tt.args {
			t.Errorf("%s: %s %v %v, want %s", tt.raw, where, args, err, tt.want)
		}
	}
}

func nested(levels int) string {
	return strings.Repeat(`{"allOf":[`, levels-1) + `{"title":{"operator":"isNull"}}` + strings.Repeat(`]}`, levels-1)
}

func repeated(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }

func TestLimits(t *testing.T) {
	t.Parallel()
	leaf, id := `{"title":{"operator":"isNull"}}`, `"`+idA.String()+`"`
	text := func(n int) string {
		return `{"title":{"operator":"is","value":"` + strings.Repeat("é", n) + `"}}`
	}
	tests := []struct {
		name, raw string
		path      string // of the error; "ok" = none
	}{
		{"depth at the limit", nested(MaxDepth), "ok"},
		{"depth beyond", nested(MaxDepth + 1), strings.TrimPrefix(strings.Repeat(".allOf[0]", MaxDepth), ".")},
		{"absurd depth", strings.Repeat(`{"allOf":[`, 20_000), ""},
		{"leaves at the limit", `{"allOf":[` + repeated(maxLeaves, leaf) + `]}`, "ok"},
		{"leaves beyond in one group", `{"allOf":[` + repeated(maxLeaves+1, leaf) + `]}`, "allOf"},
		{"leaves beyond in two groups", `{"allOf":[{"anyOf":[` + repeated(40, leaf) + `]},{"anyOf":[` + repeated(40, leaf) + `]}]}`, "allOf[1].anyOf[24].title"},
		{"empty groups beyond", `{"allOf":[` + repeated(maxLeaves+1, `{"allOf":[]}`) + `]}`, "allOf"},
		{"string at the limit", text(maxString), "ok"},
		{"string beyond", text(maxString + 1), "title.value"},
		{"list at the limit", `{"libraryId":{"operator":"in","values":[` + repeated(maxList, id) + `]}}`, "ok"},
		{"list beyond", `{"libraryId":{"operator":"in","values":[` + repeated(maxList+1, id) + `]}}`, "libraryId.values"},
		{"bytes beyond", strings.Repeat(" ", maxBytes+1), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := Compile(json.RawMessage(tt.raw), testSchema(), 1)
			wantPath(t, err, tt.path)
		})
	}
}

func wantPath(t *testing.T, err error, path string) {
	t.Helper()
	var refused *Error
	switch {
	case path == "ok" && err != nil:
		t.Errorf("refused: %v", err)
	case path == "ok":
	case !errors.As(err, &refused):
		t.Errorf("not refused: %v", err)
	case refused.Path != path || refused.Message == "":
		t.Errorf("the error is at %q: %s; want %q", refused.Path, refused.Message, path)
	}
}

func TestErrorsNameTheNode(t *testing.T) {
	t.Parallel()
	tests := []struct{ raw, path string }{
		{`[]`, ""}, {`"title"`, ""}, {`{`, ""}, {`7`, ""}, {`{}`, ""}, {`{"allOf":[],"anyOf":[]}`, ""},
		{`{"allOf":{}}`, "allOf"}, {`{"anyOf":null}`, "anyOf"}, {`{"allOf":[7]}`, "allOf[0]"}, {`{"allOf":[null]}`, "allOf[0]"},
		{`{"nope":{"operator":"is","value":"x"}}`, "nope"},
		{`{"Title":{"operator":"is","value":"x"}}`, "Title"},
		{`{"s.title":{"operator":"is","value":"x"}}`, "s.title"},
		{`{"allOf":[{"title":{"operator":"isNull"}},{"anyOf":[{"name":{"operator":"like","value":"x"}}]}]}`, "allOf[1].anyOf[0].name.operator"},
		{`{"title":"x"}`, "title"}, {`{"title":null}`, "title"}, {`{"title":{}}`, "title.operator"}, {`{"title":{"operator":7}}`, "title.operator"},
		{`{"title":{"operator":"gt","value":"x"}}`, "title.operator"},
		{`{"title":{"operator":"is"}}`, "title.value"}, {`{"title":{"operator":"is","value":null}}`, "title.value"}, {`{"title":{"operator":"is","value":7}}`, "title.value"},
		{`{"title":{"operator":"is","value":"x","values":["y"]}}`, "title.values"},
		{`{"title":{"operator":"isNull","value":"x"}}`, "title.value"},
		{`{"title":{"operator":"is","value":"x","caseSensitive":true}}`, "title.caseSensitive"},
		{`{"title":{"operator":"is","value":"a\u0000b"}}`, "title.value"},
		{`{"libraryId":{"operator":"is","value":"not-a-uuid"}}`, "libraryId.value"},
		{`{"libraryId":{"operator":"is","value":"{0190a3c2-0000-7000-8000-00000000000a}"}}`, "libraryId.value"},
		{`{"libraryId":{"operator":"isNull"}}`, "libraryId.operator"},
		{`{"libraryId":{"operator":"in"}}`, "libraryId.values"}, {`{"libraryId":{"operator":"in","values":"x"}}`, "libraryId.values"},
		{`{"libraryId":{"operator":"in","values":["` + idA.String() + `",7]}}`, "libraryId.values[1]"},
		{`{"hasError":{"operator":"isTrue","value":true}}`, "hasError.value"}, {`{"hasError":{"operator":"is","value":"true"}}`, "hasError.value"}, {`{"hasError":{"operator":"isNot"}}`, "hasError.value"}, {`{"hasError":{"operator":"eq","value":true}}`, "hasError.operator"},
		{`{"pageCount":{"operator":"eq","value":"7"}}`, "pageCount.value"}, {`{"pageCount":{"operator":"eq","value":1e999}}`, "pageCount.value"},
		{`{"pageCount":{"operator":"between","min":"a"}}`, "pageCount.min"}, {`{"pageCount":{"operator":"between","max":[]}}`, "pageCount.max"},
		{`{"pageCount":{"operator":"between","start":1}}`, "pageCount.start"},
		{`{"dateAdded":{"operator":"after","value":"yesterday"}}`, "dateAdded.value"}, {`{"dateAdded":{"operator":"after","value":7}}`, "dateAdded.value"},
		{`{"dateAdded":{"operator":"between","start":"2026-13-01"}}`, "dateAdded.start"}, {`{"dateAdded":{"operator":"between","end":"2026-02-30"}}`, "dateAdded.end"},
		{`{"kind":{"operator":"is","value":"film"}}`, "kind.value"}, {`{"kind":{"operator":"isNull"}}`, "kind.operator"},
		{`{"allOf":[{"readStatus":{"operator":"is","value":"unread"}}]}`, "allOf[0].readStatus"},
	}
	for _, tt := range tests {
		t.Run(tt.raw, func(t *testing.T) {
			t.Parallel()
			_, _, err := Compile(json.RawMessage(tt.raw), testSchema(), 1)
			wantPath(t, err, tt.path)
		})
	}
}

func TestErrorsThatAreOurs(t *testing.T) {
	t.Parallel()
	var refused *Error
	_, _, err := Compile(json.RawMessage(`{"readStatus":{"operator":"isNot","value":"read"}}`), testSchema(), 1)
	if err == nil || errors.As(err, &refused) {
		t.Errorf("an error of a custom field became the client's: %v", err)
	}
	_, _, err = Compile(json.RawMessage(`{"title":{"operator":"isNull"}}`), testSchema(), 0)
	if err == nil || errors.As(err, &refused) {
		t.Errorf("argument number 0: %v", err)
	}
}

// allowed splits a clause into what the compiler and the test schema may write.
var allowed = regexp.MustCompile(`^(s\.title|s\.library_id|b\.has_error|b\.page_count|b\.created_at|b\.kind|p\.completed|p\.pages|` +
	`\$[0-9]+|::(text|uuid\[\]|uuid|bigint|float8|timestamptz)|lower|ilike|any|from|not|is|null|true|false|distinct|between|and|or|[()=<> ])`)

// FuzzCompile asserts for any input that the clause consists of our own words,
// has balanced parentheses, and uses each parameter once.
func FuzzCompile(f *testing.F) {
	f.Add(`{"allOf":[{"title":{"operator":"contains","value":"x' or 1=1 --"}},{"anyOf":[{"pageCount":{"operator":"between","min":1,"max":2}}]}]}`)
	f.Add(`{"libraryId":{"operator":"in","values":["` + idA.String() + `"]}}`)
	f.Add(`{"date_added":{"operator":"on_or_before","value":"2026-11-21"}}`)
	f.Add(`{"title":{"operator":"doesNotContain","value":"%_\\"}}`)
	f.Add(`{"kind":{"operator":"isNot","value":"book"}}`)
	f.Add(`{"readStatus":{"operator":"is","value":"read"}}`)
	schema := testSchema()
	f.Fuzz(func(t *testing.T, raw string) {
		where, args, err := Compile(json.RawMessage(raw), schema, 5)
		if err != nil {
			if where != "" || args != nil {
				t.Fatalf("%q beside the error %v", where, err)
			}
			return
		}
		used := regexp.MustCompile(`\$[0-9]+`).FindAllString(where, -1)
		var want []string
		for i := range args {
			want = append(want, fmt.Sprintf("$%d", 5+i))
		}
		if !slices.Equal(used, want) {
			t.Fatalf("%s uses %v of %v", where, used, want)
		}
		open := 0
		for rest := where; rest != ""; {
			token := allowed.FindString(rest)
			if token == "" {
				t.Fatalf("foreign text %q in %s", rest, where)
			}
			switch token {
			case "(":
				open++
			case ")":
				open--
			}
			if open < 0 {
				t.Fatalf("unbalanced: %s", where)
			}
			rest = rest[len(token):]
		}
		if open != 0 || where == "" {
			t.Fatalf("unbalanced or empty: %q", where)
		}
	})
}

func BenchmarkCompile(b *testing.B) {
	raw := json.RawMessage(`{"allOf":[{"libraryId":{"operator":"is","value":"` + idA.String() + `"}},{"anyOf":[{"title":{"operator":"contains","value":"x"}},{"readStatus":{"operator":"is","value":"read"}}]}]}`)
	schema := testSchema()
	for b.Loop() {
		if _, _, err := Compile(raw, schema, 1); err != nil {
			b.Fatal(err)
		}
	}
}

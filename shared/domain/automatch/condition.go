package automatch

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/longbox/longbox/shared/domain/strategy"
	"github.com/longbox/longbox/shared/platform/filter"
)

// conditions are the conditions of automatic matching.
type conditions struct {
	Mode  string `json:"mode"`
	Rules []Rule `json:"rules"`
}

// Rule is a condition on one field.
type Rule struct {
	Field    string `json:"field"`
	Operator string `json:"operator"`
	Value    any    `json:"value"`
}

// Ruled reports whether conditions have rules.
func Ruled(raw json.RawMessage) bool {
	var c conditions
	return len(raw) > 0 && json.Unmarshal(raw, &c) == nil && len(c.Rules) > 0
}

// Unmet returns a rule that a context fails, nil if the conditions hold.
func Unmet(raw json.RawMessage, context map[string]any) (*Rule, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var c conditions
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, fmt.Errorf("read conditions of automatic matching: %w", err)
	}
	var last *Rule
	for i := range c.Rules {
		if c.Rules[i].met(context) {
			if c.Mode == "any" {
				return nil, nil
			}
			continue
		}
		last = &c.Rules[i]
		if c.Mode != "any" {
			return last, nil
		}
	}
	return last, nil
}

// operator compares the value of a field with the value of a rule.
type operator struct {
	name    string
	missing bool // whether it holds for a missing field
	holds   func(v, want any) bool
}

// operators are all operators, in the order in which messages list them. Null satisfies those that hold for a missing
// field only if their function says so, and no others.
var operators = []operator{
	{"is_null", true, func(v, _ any) bool { return empty(v) }},
	{"is_not_null", false, func(v, _ any) bool { return !empty(v) }},
	{"equals", false, func(v, want any) bool { return Text(v) == Text(want) }},
	{"not_equals", true, func(v, want any) bool { return Text(v) != Text(want) }},
	{"gt", false, numbers(func(a, b float64) bool { return a > b })},
	{"gte", false, numbers(func(a, b float64) bool { return a >= b })},
	{"lt", false, numbers(func(a, b float64) bool { return a < b })},
	{"lte", false, numbers(func(a, b float64) bool { return a <= b })},
	{"contains", false, func(v, want any) bool { return strings.Contains(Text(v), Text(want)) }},
	{"not_contains", true, func(v, want any) bool { return !strings.Contains(Text(v), Text(want)) }},
	{"starts_with", false, func(v, want any) bool { return strings.HasPrefix(Text(v), Text(want)) }},
	{"ends_with", false, func(v, want any) bool { return strings.HasSuffix(Text(v), Text(want)) }},
	{"matches", false, matches},
	{"in", false, func(v, want any) bool { return slices.Contains(listed(want), Text(v)) }},
	{"not_in", true, func(v, want any) bool { return !slices.Contains(listed(want), Text(v)) }},
}

// met reports whether the rule holds.
func (r *Rule) met(context map[string]any) bool {
	o := operatorOf(r.Operator)
	v, there := lookup(context, r.Field)
	switch {
	case o == nil:
		return false
	case !there:
		return o.missing
	case v == nil && !o.missing:
		return false
	}
	return o.holds(v, r.Value)
}

// numbers is an operator on numbers; it does not hold for other values.
func numbers(holds func(a, b float64) bool) func(v, want any) bool {
	return func(v, want any) bool {
		a, errA := strconv.ParseFloat(Text(v), 64)
		b, errB := strconv.ParseFloat(Text(want), 64)
		return errA == nil && errB == nil && holds(a, b)
	}
}

// maxMatched is how many bytes of a text a regular expression sees.
const maxMatched = 4 << 10

func matches(v, want any) bool {
	re, err := strategy.Compile(Text(want))
	searched := Text(v)
	return err == nil && re.MatchString(searched[:min(len(searched), maxMatched)])
}

func empty(v any) bool {
	list, ok := v.([]any)
	return v == nil || v == "" || ok && len(list) == 0
}

// lookup finds a field by its path. Names may be in snake_case, except in customMetadata. For a book, the path series
// leads to the context of its series.
func lookup(context map[string]any, path string) (any, bool) {
	first, rest, nested := strings.Cut(path, ".")
	first = filter.Camel(first)
	if within, ok := context[first].(map[string]any); ok && nested {
		switch first {
		case "series":
			return lookup(within, rest)
		case "externalIds":
			return externalID(within, rest)
		}
	}
	var at any = context
	for i, name := range strings.Split(path, ".") {
		m, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if i == 0 || first != "customMetadata" {
			name = filter.Camel(name)
		}
		if at, ok = m[name]; !ok {
			return nil, false
		}
	}
	return at, true
}

// externalID finds a field of the ids: count is their number, <source> and <source>.id the id of a service, and
// <source>.url and <source>.hash what belongs to it. The name of a service may contain points, so it is searched first.
func externalID(ids map[string]any, name string) (any, bool) {
	if name == "count" {
		return float64(len(ids)), true
	}
	if id, ok := ids[name].(map[string]any); ok {
		return id["id"], true
	}
	i := strings.LastIndexByte(name, '.')
	if i < 0 || !slices.Contains([]string{"id", "url", "hash"}, name[i+1:]) {
		return nil, false
	}
	id, ok := ids[name[:i]].(map[string]any)
	return id[name[i+1:]], ok
}

// Text returns a value as text, the same for a number and its digits; the elements of a list are joined by commas.
func Text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = Text(e)
		}
		return strings.Join(parts, ", ")
	}
	data, _ := json.Marshal(v) // cannot fail: it was decoded from JSON
	return string(data)
}

// listed returns the texts of a list, or of a single value.
func listed(v any) []string {
	list, ok := v.([]any)
	if !ok {
		return []string{Text(v)}
	}
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = Text(e)
	}
	return out
}

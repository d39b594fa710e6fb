package plugin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/longbox/longbox/shared/domain/strategy"
)

// conditions are those of automatic matching, as libraries and plugins have them.
type conditions struct {
	Mode  string `json:"mode"`
	Rules []rule `json:"rules"`
}

// rule demands something of a field.
type rule struct {
	Field    string `json:"field"`
	Operator string `json:"operator"`
	Value    any    `json:"value"`
}

// unmet is the rule that a context does not meet, nil where the conditions are met. None are met by everything.
func unmet(raw json.RawMessage, context map[string]any) (*rule, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var c conditions
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, fmt.Errorf("conditions of automatic matching: %w", err)
	}
	var last *rule
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

// maxMatched is how much of a text a regular expression looks at, in bytes.
const maxMatched = 4 << 10

// met tells whether the rule is met. What is missing meets nothing but what it is not to be.
func (r *rule) met(context map[string]any) bool {
	value, there := lookup(context, r.Field)
	empty := !there || value == nil || value == "" || isEmpty(value)
	switch r.Operator {
	case "is_null":
		return empty
	case "is_not_null":
		return !empty
	case "not_equals":
		return !there || text(value) != text(r.Value)
	case "not_contains":
		return !there || !strings.Contains(text(value), text(r.Value))
	case "not_in":
		return !there || !slices.Contains(listed(r.Value), text(value))
	}
	if !there || value == nil {
		return false
	}
	switch r.Operator {
	case "equals":
		return text(value) == text(r.Value)
	case "contains":
		return strings.Contains(text(value), text(r.Value))
	case "in":
		return slices.Contains(listed(r.Value), text(value))
	case "starts_with":
		return strings.HasPrefix(text(value), text(r.Value))
	case "ends_with":
		return strings.HasSuffix(text(value), text(r.Value))
	case "matches":
		re, err := strategy.Compile(text(r.Value))
		searched := text(value)
		return err == nil && re.MatchString(searched[:min(len(searched), maxMatched)])
	}
	a, errA := strconv.ParseFloat(text(value), 64)
	b, errB := strconv.ParseFloat(text(r.Value), 64)
	if errA != nil || errB != nil {
		return false
	}
	switch r.Operator {
	case "gt":
		return a > b
	case "gte":
		return a >= b
	case "lt":
		return a < b
	case "lte":
		return a <= b
	}
	return false
}

// lookup finds a field by its path. Names may be written in snake_case; externalIds.count is how many there are, and
// externalIds.<source> the id.
func lookup(context map[string]any, path string) (any, bool) {
	if rest, ok := strings.CutPrefix(camel(path), "externalIds."); ok {
		ids, _ := context["externalIds"].(map[string]any)
		if rest == "count" {
			return float64(len(ids)), true
		}
		source := path[strings.IndexByte(path, '.')+1:] // as it is written
		id, ok := ids[source].(map[string]any)
		if !ok {
			return nil, false
		}
		return id["id"], true
	}
	custom := strings.HasPrefix(camel(path), "customMetadata.")
	var at any = context
	for i, name := range strings.Split(path, ".") {
		m, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if !custom || i == 0 {
			name = camel(name)
		}
		if at, ok = m[name]; !ok {
			return nil, false
		}
	}
	return at, true
}

// camel is a name in snake_case in camelCase.
func camel(name string) string {
	var out strings.Builder
	up := false
	for _, r := range name {
		if r == '_' {
			up = true
			continue
		}
		if up {
			r = unicode.ToUpper(r)
		}
		up = false
		out.WriteRune(r)
	}
	return out.String()
}

func isEmpty(v any) bool {
	list, ok := v.([]any)
	return ok && len(list) == 0
}

// text is a value as a text, the same for a number and its digits; that of a list has its elements with commas between.
func text(v any) string {
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
			parts[i] = text(e)
		}
		return strings.Join(parts, ", ")
	}
	data, _ := json.Marshal(v) // of what was read from JSON: never fails
	return string(data)
}

// listed are the texts of a list, or the one of a single value.
func listed(v any) []string {
	list, ok := v.([]any)
	if !ok {
		return []string{text(v)}
	}
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = text(e)
	}
	return out
}

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

// conditions are the conditions of automatic matching, of libraries and plugins.
type conditions struct {
	Mode  string `json:"mode"`
	Rules []rule `json:"rules"`
}

// rule is a condition on one field.
type rule struct {
	Field    string `json:"field"`
	Operator string `json:"operator"`
	Value    any    `json:"value"`
}

// unmet returns a rule that a context fails, nil if the conditions hold. Without rules they always hold.
func unmet(raw json.RawMessage, context map[string]any) (*rule, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var c conditions
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, fmt.Errorf("read conditions of automatic matching: %w", err)
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

// maxMatched is how many bytes of a text a regular expression sees.
const maxMatched = 4 << 10

// met reports whether the rule holds. A missing value satisfies only negative rules and is_null.
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

// lookup finds a field by its path. Names may be in snake_case; externalIds.count is the number of ids, and
// externalIds.<source> the id of a source.
func lookup(context map[string]any, path string) (any, bool) {
	if rest, ok := strings.CutPrefix(camel(path), "externalIds."); ok {
		ids, _ := context["externalIds"].(map[string]any)
		if rest == "count" {
			return float64(len(ids)), true
		}
		source := path[strings.IndexByte(path, '.')+1:] // in its original spelling
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

// camel converts snake_case to camelCase.
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

// text returns a value as text, the same for a number and its digits; the elements of a list are joined by commas.
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
	data, _ := json.Marshal(v) // cannot fail: it was decoded from JSON
	return string(data)
}

// listed returns the texts of a list, or of a single value.
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

package automatch

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/longbox/longbox/shared/domain/strategy"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// field is the name of the conditions in libraries and plugins.
const field = "autoMatchConditions"

const (
	maxRules   = 50
	maxPattern = 1000 // bytes
	maxName    = 200  // bytes
)

// Check validates conditions; null becomes nil.
func Check(raw *json.RawMessage) []fault.Field {
	if msg := httpapi.CheckObject(raw); msg != "" || *raw == nil {
		if msg == "" {
			return nil
		}
		return []fault.Field{{Field: field, Message: msg}}
	}
	var c struct {
		Mode  *string `json:"mode"`
		Rules []struct {
			Field    string          `json:"field"`
			Operator string          `json:"operator"`
			Value    json.RawMessage `json:"value"`
		} `json:"rules"`
	}
	var readable any // a JSON number may not be readable as one
	if err := errors.Join(json.Unmarshal(*raw, &c), json.Unmarshal(*raw, &readable)); err != nil {
		return []fault.Field{{Field: field, Message: "must have mode (all or any) and rules, an array of {field, operator, value}"}}
	}
	var bad []fault.Field
	add := func(at, format string, args ...any) {
		bad = append(bad, fault.Field{Field: field + at, Message: fmt.Sprintf(format, args...)})
	}
	if c.Mode != nil && *c.Mode != "all" && *c.Mode != "any" {
		add(".mode", "must be all or any")
	}
	if len(c.Rules) > maxRules {
		add(".rules", "has %d rules; the limit is %d", len(c.Rules), maxRules)
		return bad
	}
	for i, r := range c.Rules {
		at := fmt.Sprintf(".rules[%d]", i)
		if r.Field == "" || len(r.Field) > maxName {
			add(at+".field", "must name a field, for example metadata.language")
		}
		if operatorOf(r.Operator) == nil {
			add(at+".operator", "must be one of %s", strings.Join(names(), ", "))
		}
		if r.Operator == "matches" {
			var pattern string
			if err := json.Unmarshal(r.Value, &pattern); err != nil || len(pattern) > maxPattern {
				add(at+".value", "must be a regular expression of at most %d bytes", maxPattern)
			} else if _, err := strategy.Compile(pattern); err != nil {
				add(at+".value", "%v", err)
			}
		}
	}
	return bad
}

// operatorOf returns the operator with a name, or nil.
func operatorOf(name string) *operator {
	i := slices.IndexFunc(operators, func(o operator) bool { return o.name == name })
	if i < 0 {
		return nil
	}
	return &operators[i]
}

func names() []string {
	out := make([]string, len(operators))
	for i, o := range operators {
		out[i] = o.name
	}
	return out
}

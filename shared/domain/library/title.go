package library

import (
	"fmt"
	"strings"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/domain/strategy"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/fault"
)

// TitleRule is one replacement in the name of a series' folder on its way to the title.
type TitleRule struct {
	Pattern     string  `json:"pattern" minLength:"1" maxLength:"1000" doc:"Regular expression in RE2 syntax"`
	Replacement string  `json:"replacement" required:"false" maxLength:"1000" doc:"Replacement text; $1 is the first group"`
	Description *string `json:"description" required:"false" maxLength:"1000"`
	Enabled     *bool   `json:"enabled" required:"false" doc:"Defaults to true"`
}

const (
	maxRules   = 50
	maxPattern = 1000 // bytes
	maxTitle   = 1024 // bytes; bounds the growth by a chain of replacements
)

// CheckTitleRules validates the rules of a field and enables those that do not say.
func CheckTitleRules(field string, rules []TitleRule) []fault.Field {
	if len(rules) > maxRules {
		return []fault.Field{{Field: field, Message: fmt.Sprintf("has %d rules; the limit is %d", len(rules), maxRules)}}
	}
	var bad []fault.Field
	for i := range rules {
		r := &rules[i]
		if r.Enabled == nil {
			r.Enabled = new(true)
		}
		at := fmt.Sprintf("%s[%d]", field, i)
		if r.Pattern == "" || len(r.Pattern) > maxPattern {
			bad = append(bad, fault.Field{Field: at + ".pattern", Message: fmt.Sprintf("must be 1 to %d bytes", maxPattern)})
		} else if _, err := strategy.Compile(r.Pattern); err != nil {
			bad = append(bad, fault.Field{Field: at + ".pattern", Message: err.Error()})
		}
		if len(r.Replacement) > maxPattern {
			bad = append(bad, fault.Field{Field: at + ".replacement", Message: fmt.Sprintf("must be at most %d bytes", maxPattern)})
		}
		if strings.ContainsRune(r.Pattern+r.Replacement, 0) || r.Description != nil && strings.ContainsRune(*r.Description, 0) {
			bad = append(bad, fault.Field{Field: at, Message: "must not contain a NUL character"})
		}
	}
	return bad
}

// CleanTitle applies the enabled rules in order, every match of each, and trims the result. If nothing would be left,
// the name stays as it is. Rules that do not compile are skipped.
func CleanTitle(rules []TitleRule, name string) string {
	name = naming.Line(name)
	title := cut.Bytes(name, maxTitle)
	for _, r := range rules {
		if r.Enabled != nil && !*r.Enabled {
			continue
		}
		re, err := strategy.Compile(r.Pattern)
		if err != nil {
			continue // rejected when the library is saved
		}
		title = cut.Bytes(re.ReplaceAllString(title, r.Replacement), maxTitle)
	}
	if title = strings.TrimSpace(title); title == "" {
		return strings.TrimSpace(name)
	}
	return title
}

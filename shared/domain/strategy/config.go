package strategy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"

	"github.com/longbox/longbox/shared/lazyregexp"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Limits of configurations.
const (
	maxPatterns = 20
	maxPattern  = 1000 // bytes
	maxTemplate = 500  // bytes
	maxDepth    = 10   // folders
)

// config is a configuration being parsed, with its errors.
type config struct {
	field   string
	members map[string]json.RawMessage
	asked   []string // the members that the strategy has
	bad     []fault.Field
}

func parseConfig(field string, raw json.RawMessage) *config {
	c := &config{field: field, members: map[string]json.RawMessage{}}
	if len(bytes.TrimSpace(raw)) == 0 {
		return c
	}
	if err := json.Unmarshal(raw, &c.members); err != nil {
		c.fail("", "must be a JSON object or null")
	}
	return c
}

func (c *config) fail(member, format string, args ...any) {
	at := c.field
	if member != "" {
		at += "." + member
	}
	c.bad = append(c.bad, fault.Field{Field: at, Message: fmt.Sprintf(format, args...)})
}

// read decodes a field, in camelCase or snake_case, into dst; absent and null leave dst unchanged.
func (c *config) read(name string, dst any, must string) (present bool) {
	c.asked = append(c.asked, name)
	v, ok := c.members[name]
	if !ok {
		v, ok = c.members[snake(name)]
	}
	if !ok {
		return false
	}
	if err := json.Unmarshal(v, dst); err != nil {
		c.fail(name, "must be %s", must)
	}
	return true
}

// unknown lists the members that no strategy has, which are probably misspelt. A strategy without any takes whatever
// there is.
func (c *config) unknown() (bad []fault.Field) {
	if len(c.asked) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(c.members)) {
		is := func(known string) bool { return name == known || name == snake(known) }
		if !slices.ContainsFunc(c.asked, is) && !slices.ContainsFunc(memberNames, is) && !slices.ContainsFunc(otherNames, is) {
			bad = append(bad, fault.Field{Field: fmt.Sprintf("%s.%.60s", c.field, name), Message: "is unknown; use " + strings.Join(c.asked, ", ")})
		}
	}
	return bad
}

// pattern reads a regular expression.
func (c *config) pattern(name, value string) *regexp.Regexp {
	if value == "" || len(value) > maxPattern {
		c.fail(name, "must be a regular expression of 1 to %d bytes", maxPattern)
		return nil
	}
	re, err := Compile(value)
	if err != nil {
		c.fail(name, "is not a valid regular expression (RE2 syntax): %v", err)
		return nil
	}
	return re
}

// maxSteps limits the compiled size of a regular expression, with repetitions expanded; one without repetitions never
// reaches it. (A thousand bytes can expand to a million steps, each of which is tried at every character.)
const maxSteps = 2 * maxPattern

// Compile is regexp.Compile for user input: it rejects expressions that are too expensive.
func Compile(pattern string) (*regexp.Regexp, error) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if n := steps(tree); n > maxSteps {
		return nil, fmt.Errorf("it has %d steps with its repetitions expanded; the limit is %d", n, maxSteps)
	}
	return regexp.Compile(pattern)
}

// steps estimates the size of the compiled program. The parser limits nested repetitions to 1,000 in total.
func steps(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n += steps(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}

// patterns compiles a list.
func (c *config) patterns(name string, list []string) []*regexp.Regexp {
	if len(list) > maxPatterns {
		c.fail(name, "has %d patterns; the limit is %d", len(list), maxPatterns)
		return nil
	}
	out := make([]*regexp.Regexp, 0, len(list))
	for i, p := range list {
		if re := c.pattern(fmt.Sprintf("%s[%d]", name, i), p); re != nil {
			out = append(out, re)
		}
	}
	return out
}

var placeholder = lazyregexp.New(`\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// template checks that every placeholder of a template is known.
func (c *config) template(name, value string, known []string) {
	if value == "" || len(value) > maxTemplate || strings.ContainsFunc(value, unicode.IsControl) {
		c.fail(name, "must be 1 to %d bytes without control characters", maxTemplate)
		return
	}
	for _, m := range placeholder.FindAllStringSubmatch(value, -1) {
		if !slices.Contains(known, m[1]) {
			c.fail(name, "{%s} is not a placeholder here; use {%s}", m[1], strings.Join(known, "}, {"))
		}
	}
}

// fill fills the placeholders of a template; a missing value is empty.
func fill(template string, values map[string]string) string {
	s := placeholder.ReplaceAllStringFunc(template, func(m string) string { return values[m[1:len(m)-1]] })
	return strings.Join(strings.Fields(s), " ")
}

// memberNames are the field names of all configurations, in output spelling.
var memberNames = []string{"stripIdSuffix", "seriesMode", "readOpfMetadata", "authorFromFolder", "skipDepth", "storeSkippedAs",
	"filenamePatterns", "requireMetadata", "seriesNameTemplate", "additionalGenericPatterns", "titleTemplate"}

// otherNames have one spelling, or are written as they were sent.
var otherNames = []string{"pattern", "fallback", "genericPatterns"}

// Canonical writes the members that are known in camelCase, as every answer has them; others stay as they are.
func Canonical(raw json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		return raw
	}
	changed := false
	for _, name := range memberNames {
		s := snake(name)
		if v, ok := members[s]; ok {
			if _, both := members[name]; !both {
				members[name] = v
			}
			delete(members, s)
			changed = true
		}
	}
	if !changed {
		return raw
	}
	out, err := json.Marshal(members)
	if err != nil { // cannot happen: it was decoded before
		return raw
	}
	return out
}

func snake(camel string) string {
	var b strings.Builder
	for _, r := range camel {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

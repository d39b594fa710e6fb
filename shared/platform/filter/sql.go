package filter

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/text/unicode/norm"
)

// text writes a text comparison of a column. The value is normalised to NFC, like titles.
func (b *Builder) text(column, op, s string) string {
	s = norm.NFC.String(s)
	switch op {
	case "is":
		return "lower(" + column + ") = lower(" + b.Arg(s) + "::text)"
	case "isNot":
		return "lower(" + column + ") is distinct from lower(" + b.Arg(s) + "::text)"
	case "contains":
		return column + " ilike " + b.Arg("%"+escapeLike(s)+"%") + "::text"
	case "doesNotContain":
		return "(" + column + " ilike " + b.Arg("%"+escapeLike(s)+"%") + "::text) is not true"
	case "beginsWith":
		return column + " ilike " + b.Arg(escapeLike(s)+"%") + "::text"
	default: // endsWith
		return column + " ilike " + b.Arg("%"+escapeLike(s)) + "::text"
	}
}

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// escapeLike escapes the wildcards of like and ilike.
func escapeLike(s string) string { return likeEscaper.Replace(s) }

var comparisons = map[string]string{
	"eq": "=", "ne": "<>", "gt": ">", "gte": ">=", "lt": "<", "lte": "<=",
	"after": ">", "onOrAfter": ">=", "before": "<", "onOrBefore": "<=",
}

func (c *compiler) sql(f Field, op string, value any) string {
	col := f.Column
	switch {
	case f.Among != "":
		return c.among(f, op, value)
	case f.Type == Bool && op != "isTrue" && op != "isFalse":
		if value.(bool) == (op == "is") {
			return col + " is true"
		}
		return col + " is not true"
	case op == "isNull":
		return col + " is null"
	case op == "isNotNull":
		return col + " is not null"
	case op == "isTrue":
		return col + " is true"
	case op == "isFalse":
		return col + " is not true"
	case op == "between":
		return c.between(col, value.(Range))
	case f.Type == Text:
		return c.text(col, op, value.(string))
	case f.Type == Number, f.Type == Date:
		return col + " " + comparisons[op] + " " + c.typed(value)
	}
	switch op { // UUID and Enum
	case "is":
		return col + " = " + c.typed(value)
	case "isNot":
		return col + " is distinct from " + c.typed(value)
	}
	ids := value.([]uuid.UUID)
	switch {
	case op == "in" && len(ids) == 0:
		return "false"
	case op == "notIn" && len(ids) == 0:
		return "true"
	case op == "in":
		return col + " = any(" + c.typed(ids) + ")"
	default: // notIn
		return "(" + col + " = any(" + c.typed(ids) + ")) is not true"
	}
}

// among writes a condition on a field with any number of values. "is true" keeps the planner from turning it into a
// join: it takes two such conditions for rare ones and compares all matches of one with all of the other.
func (c *compiler) among(f Field, op string, value any) string {
	match, not := "true", ""
	switch op {
	case "isNull":
		not = "not "
	case "isNotNull":
	case "isNot", "doesNotContain":
		not = "not "
		match = c.text(f.Column, map[string]string{"isNot": "is", "doesNotContain": "contains"}[op], value.(string))
	default:
		match = c.sql(Field{Type: f.Type, Column: f.Column}, op, value)
	}
	return not + "((" + fmt.Sprintf(f.Among, match) + ") is true)"
}

func (c *compiler) between(col string, r Range) string {
	switch {
	case r.Min == nil && r.Max == nil:
		return col + " is not null"
	case r.Max == nil:
		return col + " >= " + c.typed(r.Min)
	case r.Min == nil:
		return col + " <= " + c.typed(r.Max)
	}
	low := c.typed(r.Min)
	return fmt.Sprintf("%s between %s and %s", col, low, c.typed(r.Max))
}

// typed adds a parameter with a cast, so that its type does not depend on the column. Otherwise comparing 10.5 with an
// integer column would fail.
func (c *compiler) typed(v any) string {
	cast := "::text"
	switch v.(type) {
	case int64:
		cast = "::bigint"
	case float64:
		cast = "::float8"
	case time.Time:
		cast = "::timestamptz"
	case uuid.UUID:
		cast = "::uuid"
	case []uuid.UUID:
		cast = "::uuid[]"
	}
	return c.Arg(v) + cast
}

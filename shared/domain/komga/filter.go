package komga

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/lazyregexp"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/filter"
)

// node is a part of a condition in the syntax of package filter.
type node = map[string]any

var (
	always = node{"allOf": []node{}}
	never  = node{"anyOf": []node{}} // for what Longbox lacks
)

// ongoing matches series that are shown as ONGOING, which includes series of unknown status.
var ongoing = node{"anyOf": []node{leaf("status", "is", "ongoing"), leaf("status", "is", "unknown"), {"status": node{"operator": "isNull"}}}}

// oneOf matches a field with one of some values; nil without values.
func oneOf(field string, values []string) []node {
	if len(values) == 0 {
		return nil
	}
	parts := make([]node, len(values))
	for i, v := range values {
		parts[i] = leaf(field, "is", v)
	}
	return []node{{"anyOf": parts}}
}

func leaf(field, operator string, value any) node {
	return node{field: node{"operator": operator, "value": value}}
}

func lower(values []string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = strings.ToLower(v)
	}
	return out
}

// ids validates values that must be ids.
func ids(field string, values []string) error {
	for _, v := range values {
		if _, err := uuid.Parse(v); err != nil {
			return fault.Invalid(field, "%q is not a UUID", v)
		}
	}
	return nil
}

// words returns the normalized search text for titles, nil if there is none.
func words(searches ...*string) *string {
	for _, s := range searches {
		if s == nil {
			continue
		}
		if found := naming.Normalize(*s); found != "" {
			return &found
		}
	}
	return nil
}

// all requires all parts.
func all(parts []node) (json.RawMessage, error) { return json.Marshal(node{"allOf": parts}) }

// translator translates a leaf of a client's condition to Longbox's syntax.
type translator func(operator string, value json.RawMessage) (node, error)

// condition translates a client's condition tree; fields holds the known leaves.
func condition(raw json.RawMessage, fields map[string]translator, depth int) (node, error) {
	var keys map[string]json.RawMessage
	err := json.Unmarshal(raw, &keys)
	if len(keys) > 1 {
		delete(keys, "type") // komga-client adds the name of its class
	}
	if err != nil || len(keys) > 1 {
		return nil, fault.Invalid("condition", "must be an object with one key: allOf, anyOf or the name of a field")
	}
	for key, body := range keys {
		if key == "allOf" || key == "anyOf" {
			return group(key, body, fields, depth)
		}
		translate := fields[key]
		if translate == nil {
			return nil, fault.Invalid("condition", "%q is not known; use one of %s", key, strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		}
		var l struct {
			Operator                  string
			Value, DateTime, Duration json.RawMessage
		}
		if err := json.Unmarshal(body, &l); err != nil {
			return nil, fault.Invalid("condition."+key, `must be an object such as {"operator": "is", "value": ...}`)
		}
		for _, value := range []json.RawMessage{l.DateTime, l.Duration} {
			if l.Value == nil {
				l.Value = value
			}
		}
		return translate(l.Operator, l.Value)
	}
	return always, nil
}

func group(key string, raw json.RawMessage, fields map[string]translator, depth int) (node, error) {
	var parts []json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, fault.Invalid("condition."+key, "must be an array of conditions")
	}
	if depth >= filter.MaxDepth {
		return nil, fault.Invalid("condition", "is nested deeper than %d levels", filter.MaxDepth)
	}
	out := make([]node, len(parts))
	for i, p := range parts {
		var err error
		if out[i], err = condition(p, fields, depth+1); err != nil {
			return nil, err
		}
	}
	return node{key: out}, nil
}

// same translates a leaf that differs only in its name.
func same(field string) translator {
	return func(operator string, value json.RawMessage) (node, error) {
		if value == nil {
			return node{field: node{"operator": operator}}, nil
		}
		return leaf(field, operator, value), nil
	}
}

// word translates a leaf with upper-case values.
func word(field string) translator {
	return func(operator string, value json.RawMessage) (node, error) {
		var s string
		if err := json.Unmarshal(value, &s); err != nil {
			return nil, fault.Invalid("condition."+field, "the value must be a string")
		}
		return leaf(field, operator, strings.ToLower(s)), nil
	}
}

// seriesStatus translates a leaf on the status of series.
func seriesStatus(operator string, value json.RawMessage) (node, error) {
	plain, err := word("status")(operator, value)
	if err != nil || !strings.EqualFold(string(value), `"ongoing"`) {
		return plain, err
	}
	switch operator {
	case "is":
		return ongoing, nil
	case "isNot":
		return node{"allOf": []node{plain, leaf("status", operator, "unknown"), {"status": node{"operator": "isNotNull"}}}}, nil
	}
	return plain, nil
}

// oneStatus matches series with one of the wanted statuses; nil if there are none.
func oneStatus(wanted []string) []node {
	parts := oneOf("status", lower(wanted))
	if slices.Contains(lower(wanted), "ongoing") {
		return []node{{"anyOf": append(parts, ongoing)}}
	}
	return parts
}

// names are the names of authors that are given as name, or as name,role.
func names(authors []string) (out []string) {
	for _, a := range authors {
		if i := strings.LastIndex(a, ","); i > 0 {
			a = a[:i]
		}
		out = append(out, a)
	}
	return out
}

// author is a leaf whose value is a name and a role; the role does not count.
func author(operator string, value json.RawMessage) (node, error) {
	var a struct{ Name string }
	if err := json.Unmarshal(value, &a); err != nil || a.Name == "" {
		return nil, fault.Invalid("condition.author", "the value must be an object with a name")
	}
	return leaf("author", operator, a.Name), nil
}

// released translates a leaf on a date. A series has only a year; for a book, an unknown month or day counts as the
// first.
func released(field string, number func(time.Time) int) translator {
	return func(operator string, value json.RawMessage) (node, error) {
		var day time.Time
		switch operator {
		case "isNull", "isNotNull":
			return node{"year": node{"operator": operator}}, nil
		case "after", "before":
			if err := json.Unmarshal(value, &day); err != nil {
				return nil, fault.Invalid("condition.releaseDate", "dateTime must be a time such as 2026-01-31T00:00:00Z")
			}
		case "isInTheLast", "isNotInTheLast":
			var duration string
			err := json.Unmarshal(value, &duration)
			if day = ago(duration); err != nil || day.IsZero() {
				return nil, fault.Invalid("condition.releaseDate", "duration must be an ISO 8601 duration such as P30D or PT720H")
			}
		default:
			return nil, fault.Invalid("condition.releaseDate", "the operator must be after, before, isInTheLast, isNotInTheLast, isNull or isNotNull, is %q", operator)
		}
		if operator == "after" || operator == "isInTheLast" {
			return leaf(field, "gt", number(day)), nil
		}
		return leaf(field, "lt", number(day)), nil
	}
}

var isoDuration = lazyregexp.New(`^P(?:(\d{1,6})D)?(?:T([\dHMS.]+))?$`)

// ago returns the time that was an ISO 8601 duration of days and smaller units ago; zero if the duration is invalid.
func ago(duration string) time.Time {
	m := isoDuration.FindStringSubmatch(duration)
	if m == nil || m[1]+m[2] == "" {
		return time.Time{}
	}
	days, _ := strconv.Atoi(m[1])
	rest, err := time.ParseDuration(strings.ToLower(cmp.Or(m[2], "0")))
	if err != nil {
		return time.Time{}
	}
	return time.Now().UTC().AddDate(0, 0, -days).Add(-rest)
}

// dayNumber encodes a date as the filter field releaseDay does.
func dayNumber(t time.Time) int { return t.Year()*10000 + int(t.Month())*100 + t.Day() }

// ages translates a leaf on the age rating. isNot includes series without one.
func ages(operator string, value json.RawMessage) (node, error) {
	switch operator {
	case "isNot":
		return node{"anyOf": []node{leaf("ageRating", "ne", value), {"ageRating": node{"operator": "isNull"}}}}, nil
	case "isNull", "isNotNull":
		return node{"ageRating": node{"operator": operator}}, nil
	}
	to := map[string]string{"is": "eq", "greaterThan": "gt", "lessThan": "lt"}[operator]
	if to == "" {
		return nil, fault.Invalid("condition.ageRating", "the operator must be is, isNot, greaterThan, lessThan, isNull or isNotNull, is %q", operator)
	}
	return leaf("ageRating", to, value), nil
}

// flag translates a leaf on a property that is always false.
func flag(operator string, _ json.RawMessage) (node, error) {
	switch operator {
	case "isTrue":
		return never, nil
	case "isFalse":
		return always, nil
	}
	return nil, fault.Invalid("condition", "the operator must be isTrue or isFalse, is %q", operator)
}

// member translates a leaf on an id: of a collection, read list, library or series. Nothing has any other value, such
// as the empty one that is not the library of "All" in some apps.
func member(field string) translator {
	return func(operator string, value json.RawMessage) (node, error) {
		var id string
		if err := json.Unmarshal(value, &id); err != nil || operator != "is" && operator != "isNot" {
			return nil, fault.Invalid("condition."+field, "must be a string with the operator is or isNot")
		}
		if id == wantedID {
			return leaf("wantToRead", operator, true), nil
		}
		if _, err := uuid.Parse(id); err == nil {
			return leaf(field, operator, id), nil
		}
		if operator == "is" {
			return never, nil
		}
		return always, nil
	}
}

// members matches members of one of the given collections or read lists; nil if none are given. automatic holds the
// conditions of automatic collections, which are used instead.
func members(field string, ids []string, automatic map[string]json.RawMessage) []node {
	if len(ids) == 0 {
		return nil
	}
	parts := []node{}
	for _, id := range ids {
		var condition node
		switch _, err := uuid.Parse(id); {
		case id == wantedID:
			parts = append(parts, leaf("wantToRead", "is", true))
		case err == nil && json.Unmarshal(automatic[id], &condition) == nil:
			parts = append(parts, condition)
		case err == nil:
			parts = append(parts, leaf(field, "is", id))
		}
	}
	return []node{{"anyOf": parts}}
}

// media translates a leaf on the readability of a book.
func media(operator string, value json.RawMessage) (node, error) {
	var status string
	if err := json.Unmarshal(value, &status); err != nil || operator != "is" {
		return nil, fault.Invalid("condition.mediaStatus", "must be a string with the operator is")
	}
	return statuses([]string{status})[0], nil
}

// profile translates a leaf on the kind of file: whatever is neither a PDF nor an EPUB consists of images.
func profile(operator string, value json.RawMessage) (node, error) {
	var kind string
	if err := json.Unmarshal(value, &kind); err != nil || operator != "is" && operator != "isNot" || !slices.Contains([]string{"DIVINA", "PDF", "EPUB"}, kind) {
		return nil, fault.Invalid("condition.mediaProfile", "must be DIVINA, PDF or EPUB with the operator is or isNot")
	}
	switch {
	case kind != "DIVINA":
		return leaf("format", operator, kind), nil
	case operator == "is":
		return node{"allOf": []node{leaf("format", "isNot", "PDF"), leaf("format", "isNot", "EPUB")}}, nil
	}
	return node{"anyOf": []node{leaf("format", "is", "PDF"), leaf("format", "is", "EPUB")}}, nil
}

// statuses matches books by readability; nil if none are given. Books that are not analysed yet count as readable.
func statuses(wanted []string) []node {
	if len(wanted) == 0 {
		return nil
	}
	parts := []node{}
	for _, s := range wanted {
		switch s {
		case "READY":
			parts = append(parts, node{"hasError": node{"operator": "isFalse"}})
		case "ERROR":
			parts = append(parts, node{"hasError": node{"operator": "isTrue"}})
		}
	}
	return []node{{"anyOf": parts}}
}

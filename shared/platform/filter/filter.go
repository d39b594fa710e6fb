// Package filter compiles a condition tree from a client into the where clause of an SQL query.
//
// A node is {"allOf": [...]}, {"anyOf": [...]} or a leaf {field: {"operator": ..., "value": ...}}. A Schema lists the
// fields and their SQL. Nothing else gets into the text of the query, and values only become parameters.
package filter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/cut"
)

// Limits of a condition.
const (
	MaxDepth  = 8
	maxLeaves = 64
	maxString = 1000 // characters
	maxList   = 500
	maxBytes  = 4 << 20 // all lists at their limits fit
)

// Type determines the operators of a field and the form of its values.
type Type int

// The types of fields. Comparisons of text ignore letter case; isNot,
// doesNotContain and notIn also match null; comparisons of numbers and dates
// never do. A date without a time is the whole day in UTC.
const (
	Text   Type = iota // is isNot isNull isNotNull contains doesNotContain beginsWith endsWith
	UUID               // is isNot in notIn
	Bool               // isTrue isFalse, or is isNot with true or false
	Number             // eq ne gt gte lt lte between isNull isNotNull
	Date               // after before onOrAfter onOrBefore between isNull isNotNull
	Enum               // is isNot, with one of Field.Values
)

// Field is one name that conditions may use.
type Field struct {
	Type   Type
	Column string   // SQL expression from our code
	Values []string // of an Enum
	// Among, for Text or Number, is the SQL condition that one of several values matches; %s stands for the comparison
	// of Column. isNot and doesNotContain then must hold for all values, and isNull means that there are none.
	Among string
	// Only, if set, is an SQL condition. Rows that do not meet it match every comparison.
	Only string
	// Custom, if set, writes the SQL instead. It gets a canonical operator of the Type and its checked value: string
	// for Text and Enum, bool, uuid.UUID or []uuid.UUID, int64 or float64, time.Time, Range, or nil. If it returns an
	// *Error, this gets the path of the condition. Any other error is internal.
	Custom func(b *Builder, op string, value any) (string, error)
}

// Range is the value of between. A nil bound is open. Bounds are int64 or float64, or time.Time, and inclusive.
type Range struct{ Min, Max any }

// Schema holds the fields by name in camelCase. Conditions may also use snake_case. Aliases are further keys.
type Schema map[string]Field

// Error says what is wrong with a condition, and where. Path is like allOf[1].genre.operator, or "" for the condition
// itself.
type Error struct{ Path, Message string }

func (e *Error) Error() string {
	if e.Path == "" {
		return "condition: " + e.Message
	}
	return "condition." + e.Path + ": " + e.Message
}

// Builder collects the parameters of the clause.
type Builder struct {
	first int
	args  []any
}

// Arg adds a parameter and returns its placeholder, such as $3.
func (b *Builder) Arg(v any) string {
	b.args = append(b.args, v)
	return "$" + strconv.Itoa(b.first+len(b.args)-1)
}

// Compile returns a where clause and its parameters, numbered from firstArg on. No condition (empty, null, or an empty
// allOf) is "true"; an empty anyOf is "false". The clause can be combined with "and". The error is an *Error, or that
// of a Field.Custom.
func Compile(raw json.RawMessage, s Schema, firstArg int) (where string, args []any, err error) {
	if len(raw) > maxBytes {
		return "", nil, &Error{"", fmt.Sprintf("is larger than %d bytes", maxBytes)}
	}
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return "true", nil, nil
	}
	if firstArg < 1 {
		return "", nil, fmt.Errorf("filter: first argument %d, want 1 or more", firstArg)
	}
	c := compiler{schema: s, Builder: Builder{first: firstArg}}
	where, err = c.node(raw, "", 1)
	if err != nil {
		return "", nil, err
	}
	return where, c.args, nil
}

// Required returns the id that a field of type UUID must have for a condition to hold: that of a leaf with the operator
// is which is the valid condition itself or in its allOf. It returns nil if there is none.
func Required(raw json.RawMessage, field string) *uuid.UUID {
	var keys map[string]json.RawMessage
	_ = json.Unmarshal(raw, &keys)
	for key, body := range keys {
		switch Camel(key) {
		case "allOf":
			var nodes []json.RawMessage
			_ = json.Unmarshal(body, &nodes)
			for _, node := range nodes {
				if id := Required(node, field); id != nil {
					return id
				}
			}
		case field:
			if op, id, err := readLeaf(Field{Type: UUID}, body, ""); err == nil && op == "is" {
				return new(id.(uuid.UUID))
			}
		}
	}
	return nil
}

type compiler struct {
	Builder
	schema Schema
	leaves int
}

func (c *compiler) node(raw json.RawMessage, path string, depth int) (string, error) {
	if depth > MaxDepth {
		return "", &Error{path, fmt.Sprintf("is nested deeper than %d levels", MaxDepth)}
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil || keys == nil {
		return "", &Error{path, "must be an object with one key: allOf, anyOf or the name of a field"}
	}
	if len(keys) != 1 {
		return "", &Error{path, fmt.Sprintf("must have exactly one key, has %d", len(keys))}
	}
	for key, body := range keys {
		at := join(path, key)
		switch Camel(key) {
		case "allOf":
			return c.group(body, at, depth, " and ", "true")
		case "anyOf":
			return c.group(body, at, depth, " or ", "false")
		}
		return c.leaf(key, body, at)
	}
	return "", nil // unreachable: there is one key
}

func (c *compiler) group(raw json.RawMessage, path string, depth int, operator, empty string) (string, error) {
	var nodes []json.RawMessage
	if err := json.Unmarshal(raw, &nodes); err != nil || nodes == nil {
		return "", &Error{path, "must be an array of conditions"}
	}
	if len(nodes) > maxLeaves {
		return "", &Error{path, fmt.Sprintf("has %d conditions, at most %d are allowed", len(nodes), maxLeaves)}
	}
	parts := make([]string, 0, len(nodes))
	for i, node := range nodes {
		part, err := c.node(node, fmt.Sprintf("%s[%d]", path, i), depth+1)
		if err != nil {
			return "", err
		}
		parts = append(parts, part)
	}
	switch len(parts) {
	case 0:
		return empty, nil
	case 1:
		return parts[0], nil
	}
	return "(" + strings.Join(parts, operator) + ")", nil
}

func (c *compiler) leaf(key string, raw json.RawMessage, path string) (string, error) {
	field, ok := c.schema[key]
	if !ok {
		field, ok = c.schema[Camel(key)]
	}
	if !ok {
		names := slices.Sorted(maps.Keys(c.schema))
		return "", &Error{path, "is not a field; the fields are " + strings.Join(names, ", ")}
	}
	if c.leaves++; c.leaves > maxLeaves {
		return "", &Error{path, fmt.Sprintf("is one condition too many, at most %d are allowed", maxLeaves)}
	}
	op, value, err := readLeaf(field, raw, path)
	if err != nil {
		return "", err
	}
	if field.Custom == nil {
		sql := c.sql(field, op, value)
		if field.Only != "" {
			sql = "(not " + field.Only + " or " + sql + ")"
		}
		return sql, nil
	}
	sql, err := field.Custom(&c.Builder, op, value)
	var refused *Error
	switch {
	case errors.As(err, &refused):
		return "", &Error{path, refused.Message}
	case err != nil:
		return "", fmt.Errorf("condition.%s: %w", path, err)
	}
	return "(" + sql + ")", nil // sql may contain an "or"
}

func join(path, key string) string {
	key = cut.Brief(key, 50) // it is the client's, and goes into a message
	if path == "" {
		return key
	}
	return path + "." + key
}

// Camel converts snake_case to camelCase and leaves camelCase unchanged.
func Camel(key string) string {
	if !strings.Contains(key, "_") {
		return key
	}
	head, rest, _ := strings.Cut(key, "_")
	for part := range strings.SplitSeq(rest, "_") {
		if part != "" {
			head += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return head
}

package filter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// shape says which keys an operator takes besides its name.
type shape int

const (
	noValue shape = iota
	oneValue
	manyValues
	twoBounds
)

var operators = map[Type]map[string]shape{
	Text: {"is": oneValue, "isNot": oneValue, "isNull": noValue, "isNotNull": noValue, "contains": oneValue,
		"doesNotContain": oneValue, "beginsWith": oneValue, "endsWith": oneValue},
	UUID: {"is": oneValue, "isNot": oneValue, "in": manyValues, "notIn": manyValues},
	Bool: {"isTrue": noValue, "isFalse": noValue, "is": oneValue, "isNot": oneValue},
	Number: {"eq": oneValue, "ne": oneValue, "gt": oneValue, "gte": oneValue, "lt": oneValue, "lte": oneValue,
		"between": twoBounds, "isNull": noValue, "isNotNull": noValue},
	Date: {"after": oneValue, "before": oneValue, "onOrAfter": oneValue, "onOrBefore": oneValue,
		"between": twoBounds, "isNull": noValue, "isNotNull": noValue},
	Enum: {"is": oneValue, "isNot": oneValue},
}

// readLeaf checks {operator, value|values|min,max|start,end} against the field. It returns the canonical operator and
// its value in the form of Field.Custom. Keys that the operator does not take must be absent or null: to ignore them
// would answer another query.
func readLeaf(f Field, raw json.RawMessage, path string) (op string, value any, err error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil || keys == nil {
		return "", nil, &Error{path, `must be an object such as {"operator": "is", "value": ...}`}
	}
	var name string
	if err := json.Unmarshal(keys["operator"], &name); err != nil {
		return "", nil, &Error{path + ".operator", "must be one of " + operatorNames(f.Type)}
	}
	op = Camel(name)
	takes, ok := operators[f.Type][op]
	if !ok {
		return "", nil, &Error{path + ".operator", "is not known for this field; use one of " + operatorNames(f.Type)}
	}
	low, high := "min", "max"
	if f.Type == Date {
		low, high = "start", "end"
	}
	allowed := map[shape][]string{oneValue: {"value"}, manyValues: {"values"}, twoBounds: {low, high}}[takes]
	for key, v := range keys {
		if key != "operator" && !slices.Contains(allowed, key) && !isNull(v) {
			return "", nil, &Error{join(path, key), "does not belong to the operator " + op}
		}
	}
	switch takes {
	case oneValue:
		value, err = readValue(f, keys["value"], path+".value")
		if op == "after" || op == "onOrBefore" {
			value = dayEnd(value, keys["value"])
		}
	case manyValues:
		value, err = readList(keys["values"], path+".values")
	case twoBounds:
		var r Range
		if r.Min, err = readBound(f, keys[low], path+"."+low); err == nil {
			r.Max, err = readBound(f, keys[high], path+"."+high)
			r.Max = dayEnd(r.Max, keys[high])
		}
		value = r
	}
	if err != nil {
		return "", nil, err
	}
	return op, value, nil
}

func operatorNames(t Type) string {
	names := make([]string, 0, 8)
	for name := range operators[t] {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

func readBound(f Field, raw json.RawMessage, path string) (any, error) {
	if isNull(raw) {
		return nil, nil
	}
	return readValue(f, raw, path)
}

// readValue reads one value of the field's type.
func readValue(f Field, raw json.RawMessage, path string) (any, error) {
	switch f.Type {
	case Number:
		return readNumber(raw, path)
	case Bool:
		var yes bool
		if isNull(raw) || json.Unmarshal(raw, &yes) != nil {
			return nil, &Error{path, "must be true or false"}
		}
		return yes, nil
	}
	var s string
	if isNull(raw) || json.Unmarshal(raw, &s) != nil {
		return nil, &Error{path, "must be a string"}
	}
	if utf8.RuneCountInString(s) > maxString {
		return nil, &Error{path, fmt.Sprintf("is longer than %d characters", maxString)}
	}
	if strings.ContainsRune(s, 0) { // Postgres text cannot hold it
		return nil, &Error{path, "must not contain the character NUL"}
	}
	switch f.Type {
	case UUID:
		return readUUID(s, path)
	case Date:
		return readDate(s, path)
	case Enum:
		if !slices.Contains(f.Values, s) {
			return nil, &Error{path, "must be one of " + strings.Join(f.Values, ", ")}
		}
	}
	return s, nil
}

func readUUID(s, path string) (any, error) {
	id, err := uuid.Parse(s)
	if err != nil || len(s) != 36 {
		return nil, &Error{path, "must be a UUID"}
	}
	return id, nil
}

func readList(raw json.RawMessage, path string) (any, error) {
	var list []json.RawMessage
	if isNull(raw) || json.Unmarshal(raw, &list) != nil {
		return nil, &Error{path, "must be an array of UUIDs"}
	}
	if len(list) > maxList {
		return nil, &Error{path, fmt.Sprintf("has %d values, at most %d are allowed", len(list), maxList)}
	}
	ids := make([]uuid.UUID, len(list))
	for i, item := range list {
		at := path + "[" + strconv.Itoa(i) + "]"
		id, err := readValue(Field{Type: UUID}, item, at)
		if err != nil {
			return nil, err
		}
		ids[i] = id.(uuid.UUID)
	}
	return ids, nil
}

// readNumber returns an int64 for an integer, otherwise a float64.
func readNumber(raw json.RawMessage, path string) (any, error) {
	wrong := &Error{path, "must be a number"}
	if isNull(raw) || !bytes.ContainsRune([]byte("-0123456789"), rune(raw[0])) {
		return nil, wrong
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n, nil
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.IsInf(n, 0) {
		return nil, wrong
	}
	return n, nil
}

// dayEnd is the last moment of a day where a date names no more than the day: what happens in the day is not after it,
// and belongs to a range that ends with it. Other values are as they are.
func dayEnd(value any, raw json.RawMessage) any {
	var s string
	day, ok := value.(time.Time)
	if !ok || json.Unmarshal(raw, &s) != nil || len(s) != len(time.DateOnly) {
		return value
	}
	return day.AddDate(0, 0, 1).Add(-time.Microsecond) // Postgres tells no times that are closer
}

func readDate(s, path string) (any, error) {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		// Postgres dates go further, but RFC 3339 ends with the year 9999.
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	return nil, &Error{path, "must be a date such as 2026-11-21 or 2026-11-21T08:30:00Z"}
}

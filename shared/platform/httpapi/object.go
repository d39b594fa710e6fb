package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
)

// maxObject limits free-form objects, in bytes.
const maxObject = 64 << 10

// CheckObject validates a free-form value, which must be a JSON object; null becomes nil. It returns an error message
// or "".
func CheckObject(value *json.RawMessage) string {
	v := bytes.TrimSpace(*value)
	switch {
	case len(v) == 0 || bytes.Equal(v, []byte("null")):
		*value = nil
		return ""
	case len(v) > maxObject:
		return fmt.Sprintf("is %d bytes of JSON; the limit is %d", len(v), maxObject)
	case v[0] != '{':
		return "must be a JSON object or null"
	case HoldsNUL(v):
		return "must not contain a NUL character"
	case TooDeep(v):
		return DepthMessage
	}
	return ""
}

// maxDepth limits the nesting of stored JSON; the database's own limit depends on its stack.
const maxDepth = 100

// DepthMessage is the error message of a value that is TooDeep.
const DepthMessage = "must not be nested more than 100 levels deep"

// TooDeep reports whether lists and objects are nested more than 100 levels deep in a JSON value.
func TooDeep(value json.RawMessage) bool {
	if bytes.Count(value, []byte("["))+bytes.Count(value, []byte("{")) <= maxDepth {
		return false
	}
	depth := 0
	for token := range tokens(value) {
		switch token {
		case json.Delim('['), json.Delim('{'):
			if depth++; depth > maxDepth {
				return true
			}
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
	}
	return false
}

// HoldsNUL reports whether a string or a name in the value contains NUL, which the database cannot store.
func HoldsNUL(value json.RawMessage) bool {
	if !bytes.Contains(value, []byte(`\u0000`)) {
		return false
	}
	for token := range tokens(value) {
		if text, ok := token.(string); ok && strings.ContainsRune(text, 0) {
			return true
		}
	}
	return false
}

// tokens returns the tokens of a JSON value, with numbers as they are written. Invalid JSON ends it.
func tokens(data []byte) iter.Seq[json.Token] {
	return func(yield func(json.Token) bool) {
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		for token, err := d.Token(); err == nil && yield(token); token, err = d.Token() {
		}
	}
}

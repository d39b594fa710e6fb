package preference

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/lazyregexp"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Limits per user.
const (
	maxKey   = 255
	maxValue = 64 << 10 // bytes of JSON
	maxKeys  = 1000
	maxAll   = 2 << 20 // bytes of all values together, as stored: one page loads them at once
)

var keyShape = lazyregexp.New(`^[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*$`)

// Preference is one value of the current user.
type Preference struct {
	Key       string          `json:"key" db:"key"`
	Value     json.RawMessage `json:"value" db:"value"`
	ValueType string          `json:"valueType" db:"-" enum:"string,integer,float,boolean,json"`
	UpdatedAt time.Time       `json:"updatedAt" db:"updated_at"`
}

func checkKey(key string) error {
	if len(key) > maxKey || !keyShape.MatchString(key) {
		return fault.Invalid("key", "must be at most %d characters: letters, digits and _ in parts joined by dots", maxKey)
	}
	return nil
}

func checkValue(field string, value json.RawMessage) error {
	if len(value) == 0 {
		return fault.Invalid(field, "is required; send null to store null")
	}
	if len(value) > maxValue {
		return fault.Invalid(field, "is %d bytes of JSON; the limit is %d", len(value), maxValue)
	}
	if httpapi.HoldsNUL(value) {
		return fault.Invalid(field, `must not contain the character NUL (\u0000), which the database cannot store`)
	}
	if httpapi.TooDeep(value) {
		return fault.Invalid(field, "%s", httpapi.DepthMessage)
	}
	return nil
}

// checkAll validates all values and lists every error.
func checkAll(values map[string]json.RawMessage) error {
	var bad []fault.Field
	for _, k := range slices.Sorted(maps.Keys(values)) {
		field := "preferences." + cut.Bytes(k, maxKey)
		for _, err := range []error{checkKey(k), checkValue(field, values[k])} {
			if wrong := new(fault.Error); errors.As(err, &wrong) {
				bad = append(bad, fault.Field{Field: field, Message: wrong.Fields[0].Message})
			}
		}
	}
	return fault.InvalidFields(bad)
}

// typeOf returns the type of a JSON value in the API's terms.
func typeOf(value json.RawMessage) string {
	v := bytes.TrimSpace(value)
	switch {
	case len(v) == 0:
		return "json"
	case v[0] == '"':
		return "string"
	case v[0] == 't', v[0] == 'f':
		return "boolean"
	case v[0] == '-', v[0] >= '0' && v[0] <= '9':
		if _, err := strconv.ParseInt(string(v), 10, 64); err != nil { // includes 1e300, which the database writes out
			return "float"
		}
		return "integer"
	}
	return "json"
}

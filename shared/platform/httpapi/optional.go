package httpapi

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// Optional is a member of a partial update. Absent (Set is false) keeps the value, null (Value is nil) clears it,
// anything else replaces it. Tag it `json:"name,omitempty"`.
type Optional[T any] struct {
	Set   bool
	Value *T
}

// UnmarshalJSON is only called if the member is present.
func (o *Optional[T]) UnmarshalJSON(b []byte) error {
	o.Set = true
	if bytes.Equal(bytes.TrimSpace(b), []byte("null")) {
		o.Value = nil
		return nil
	}
	o.Value = new(T)
	return json.Unmarshal(b, o.Value)
}

// Schema returns the value's schema, with null allowed.
func (o Optional[T]) Schema(r huma.Registry) *huma.Schema {
	t := reflect.TypeFor[T]()
	s := r.Schema(t, false, "")
	if s.Ref != "" {
		return &huma.Schema{AnyOf: []*huma.Schema{s, {Type: "null"}}}
	}
	copied := *s
	if copied.Type != "" {
		copied.Nullable = true
	}
	return &copied
}

// Or returns the new value if one was sent (the zero value for null), otherwise the old one.
func (o Optional[T]) Or(old T) T {
	if !o.Set {
		return old
	}
	if o.Value == nil {
		var zero T
		return zero
	}
	return *o.Value
}

// OrNil is Or for a nullable value.
func (o Optional[T]) OrNil(old *T) *T {
	if !o.Set {
		return old
	}
	return o.Value
}

package plug

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Misread rewords an error of decoding JSON for the author of the JSON: it names the member and the JSON type of a
// value instead of Go types.
func Misread(err error) error {
	var of *json.UnmarshalTypeError
	if !errors.As(err, &of) {
		return err
	}
	name := "it"
	if of.Field != "" {
		name = of.Field[strings.LastIndexByte(of.Field, '.')+1:]
	}
	return fmt.Errorf("%s must be %s, not %s", name, kindOf(of.Type), of.Value)
}

// kindOf is what a Go type is in JSON.
func kindOf(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

package lambdakit

import (
	"fmt"
	"reflect"
	"strings"
)

// Environment returns the environment variables for a configuration: every field with an `env` tag and a non-zero
// value, as NAME=value.
func Environment(config any) []string {
	var out []string
	collect(reflect.ValueOf(config), &out)
	return out
}

func collect(v reflect.Value, out *[]string) {
	for i := range v.NumField() {
		f := v.Field(i)
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("env"), ",")
		switch {
		case name == "" && f.Kind() == reflect.Struct:
			collect(f, out)
		case name == "" || !v.Type().Field(i).IsExported():
		case f.Kind() == reflect.Slice:
			var parts []string
			for j := range f.Len() {
				parts = append(parts, fmt.Sprint(f.Index(j)))
			}
			if len(parts) > 0 {
				*out = append(*out, name+"="+strings.Join(parts, ","))
			}
		case f.Kind() == reflect.Bool: // the default may be true
			*out = append(*out, name+"="+fmt.Sprint(f))
		case !f.IsZero():
			*out = append(*out, name+"="+fmt.Sprint(f))
		}
	}
}

// Package limit checks the limits of the formats that are settings, and fills in their defaults.
package limit

import (
	"fmt"
	"reflect"
	"strings"
)

// Check names the first setting, by the tag env of its field, of a struct of whole numbers that is less than 1. The
// zero value stands for the defaults.
func Check[L comparable](limits L) error {
	if limits == *new(L) {
		return nil
	}
	v := reflect.ValueOf(limits)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("env"), ",")
		if name != "" && v.Field(i).Int() < 1 {
			return fmt.Errorf("%s is %d: want at least 1", name, v.Field(i).Int())
		}
	}
	return nil
}

// Or is n, or where that is zero or less its default.
func Or[N int | int64](n, otherwise N) N {
	if n > 0 {
		return n
	}
	return otherwise
}

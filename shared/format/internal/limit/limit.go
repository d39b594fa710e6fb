// Package limit checks the configurable limits of the formats, and fills in their defaults.
package limit

import (
	"fmt"
	"reflect"
	"strings"
)

// Check returns an error for the first field of a struct of integers that is less than 1, with the name in its env tag.
// The zero value stands for the defaults.
func Check[L comparable](limits L) error {
	if limits == *new(L) {
		return nil
	}
	v := reflect.ValueOf(limits)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("env"), ",")
		if name != "" && v.Field(i).Int() < 1 {
			return fmt.Errorf("%s: must be at least 1, is %d", name, v.Field(i).Int())
		}
	}
	return nil
}

// Or returns n, or the default if n is zero or less.
func Or[N int | int64](n, otherwise N) N {
	if n > 0 {
		return n
	}
	return otherwise
}

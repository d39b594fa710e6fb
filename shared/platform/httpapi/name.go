package httpapi

import (
	"path"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// schemaName names a type in the OpenAPI description. The names of a slice's types begin with the slice's name
// (scan.Status is ScanStatus, series.Series is Series), so that slices do not collide.
func schemaName(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Name() == "" {
		return huma.DefaultSchemaNamer(t, hint)
	}
	base, argument, generic := strings.Cut(t.Name(), "[")
	name := prefixed(t.PkgPath(), base)
	if generic {
		argument = strings.TrimSuffix(argument, "]")
		dot := strings.LastIndex(argument, ".")
		name += prefixed(argument[:max(dot, 0)], argument[dot+1:])
	}
	return name
}

func prefixed(pkg, name string) string {
	name = strings.ToUpper(name[:1]) + name[1:]
	folder, slice := path.Split(pkg)
	if !strings.HasSuffix(folder, "/domain/") || strings.HasPrefix(strings.ToLower(name), slice) {
		return name
	}
	return strings.ToUpper(slice[:1]) + slice[1:] + name
}

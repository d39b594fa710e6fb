package httpapi

import (
	"reflect"
	"testing"

	"github.com/longbox/longbox/shared/platform/fault"
)

func TestPrefixed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ pkg, name, want string }{
		{"github.com/longbox/longbox/shared/domain/scan", "Status", "ScanStatus"},
		{"github.com/longbox/longbox/shared/domain/series", "Series", "Series"},
		{"github.com/longbox/longbox/shared/domain/setting", "SettingChange", "SettingChange"},
		{"github.com/longbox/longbox/shared/platform/fault", "Field", "Field"},
		{"", "int", "Int"},
	} {
		if got := prefixed(c.pkg, c.name); got != c.want {
			t.Errorf("%s.%s: %s, want %s", c.pkg, c.name, got, c.want)
		}
	}
}

func TestSchemaName(t *testing.T) {
	t.Parallel()
	for want, typ := range map[string]reflect.Type{
		"PageField": reflect.TypeFor[Page[fault.Field]](),
		"PageInt":   reflect.TypeFor[*Page[int]](),
		"Problem":   reflect.TypeFor[*Problem](),
		"Hint":      reflect.TypeFor[struct{ A int }](),
	} {
		if got := schemaName(typ, "hint"); got != want {
			t.Errorf("%v: %s, want %s", typ, got, want)
		}
	}
}

package plugin

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/platform/plug"
)

// withoutTail is a text that was perhaps cut off within a secret, without the beginning of that.
func withoutTail(text, secret string) string {
	whole := strings.TrimRight(text, "…)")
	for n := len(secret) - 1; n >= 4; n-- {
		if strings.HasSuffix(whole, secret[:n]) {
			return strings.TrimSuffix(whole, secret[:n]) + "…"
		}
	}
	return text
}

// maxDepth bounds how deep what is stored lies within itself: the database's own bound is a matter of its stack.
const maxDepth = 100

// storable is a manifest that the database takes and that can be read again: what plugins write may hold NUL, halves of
// characters, or other types than a manifest has.
func storable(raw json.RawMessage) (json.RawMessage, *plug.Fault) {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, plug.Failed(plug.InitFailed, "The plugin's manifest cannot be read: %v", err)
	}
	data, err := json.Marshal(cleaned(v))
	if err == nil {
		err = json.Unmarshal(data, &Manifest{})
	}
	if err == nil && depth(v) > maxDepth {
		err = errors.New("it is too deep")
	}
	if err != nil {
		return nil, plug.Failed(plug.InitFailed, "The plugin's manifest cannot be used: %v", plug.Misread(err))
	}
	return data, nil
}

// depth is how many lists and objects of a value lie within each other.
func depth(v any) (n int) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			n = max(n, depth(e))
		}
		return n + 1
	case map[string]any:
		for _, e := range v {
			n = max(n, depth(e))
		}
		return n + 1
	}
	return 0
}

func cleaned(v any) any {
	switch v := v.(type) {
	case string:
		return cut.Storable(v)
	case []any:
		for i := range v {
			v[i] = cleaned(v[i])
		}
	case map[string]any:
		for _, k := range slices.Collect(maps.Keys(v)) {
			e := v[k]
			delete(v, k)
			v[cut.Storable(k)] = cleaned(e)
		}
	}
	return v
}

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

// clip shortens a search text to its limit.
func clip(text string) string { return clipTo(text, 500) }

// clipTo shortens a text to n characters.
func clipTo(text string, n int) string { return cut.Chars(strings.TrimSpace(text), n) }

// withoutTail removes a beginning of the secret from the end of a text that may have been cut off within it.
func withoutTail(text, secret string) string {
	whole := strings.TrimRight(text, "…)")
	for n := len(secret) - 1; n >= 4; n-- {
		if strings.HasSuffix(whole, secret[:n]) {
			return strings.TrimSuffix(whole, secret[:n]) + "…"
		}
	}
	return text
}

// maxDepth limits the nesting of stored JSON; the database's own limit depends on its stack.
const maxDepth = 100

// storable returns a manifest that the database accepts and that can be decoded again: plugins may send NUL, halves of
// surrogate pairs, or other types than a manifest has.
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
		err = errors.New("it is nested too deeply")
	}
	if err != nil {
		return nil, plug.Failed(plug.InitFailed, "The plugin's manifest cannot be used: %v", plug.Misread(err))
	}
	return data, nil
}

// depth returns the nesting depth of lists and objects.
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

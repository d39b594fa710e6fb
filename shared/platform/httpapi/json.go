package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Input is understood in two spellings (contract decision 2): the members of a body, and of the object that
// describes scanning, may be written in snake_case, and a few have another name. Free-form values are left
// alone: only these levels are renamed.
var aliases = map[string]string{
	"is_completed":        "completed",
	"isCompleted":         "completed",
	"default_mode":        "scanMode",
	"defaultMode":         "scanMode",
	"progress_percentage": "progressPercentage",
}

func camel(key string) string {
	if to, ok := aliases[key]; ok {
		return to
	}
	if !strings.Contains(key, "_") {
		return key
	}
	parts := strings.Split(key, "_")
	for i, p := range parts[1:] {
		if p != "" {
			parts[i+1] = strings.ToUpper(p[:1]) + p[1:]
		}
	}
	return strings.Join(parts, "")
}

func renameKeys(data []byte) []byte {
	if !bytes.ContainsAny(data, "_") && !bytes.Contains(data, []byte("isCompleted")) && !bytes.Contains(data, []byte("defaultMode")) {
		return data
	}
	var body map[string]json.RawMessage
	if json.Unmarshal(data, &body) != nil {
		return data // not an object: validation says so
	}
	out := make(map[string]json.RawMessage, len(body))
	for k, v := range body {
		key := camel(k)
		if _, both := body[key]; both && key != k {
			continue // both spellings: the preferred one counts
		}
		if key == "scanningConfig" {
			v = renameKeys(v)
		}
		out[key] = v
	}
	renamed, err := json.Marshal(out)
	if err != nil {
		return data
	}
	return renamed
}

var jsonFormat = huma.Format{
	Marshal: func(w io.Writer, v any) error {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	},
	Unmarshal: func(data []byte, v any) error {
		if bytes.Count(data, []byte{','}) > maxValues {
			return errValues
		}
		return json.Unmarshal(renameKeys(data), v)
	},
}

// maxValues bounds what a body may hold: a value of two bytes that is wrong takes hundreds until that is said. The
// largest filters have 32,000.
const maxValues = 50_000

var errValues = fmt.Errorf("holds more than %d values; send fewer at once", maxValues)

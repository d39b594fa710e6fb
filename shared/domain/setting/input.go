package setting

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/longbox/longbox/shared/platform/fault"
)

// Text is a value as it is sent: a string, or a number or boolean that stands for itself.
type Text string

// UnmarshalJSON takes a string's content and the spelling of a number or boolean.
func (t *Text) UnmarshalJSON(data []byte) error {
	data = bytes.TrimSpace(data)
	switch {
	case len(data) > 0 && data[0] == '"':
		var s string
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
		*t = Text(s)
		return nil
	case bytes.Equal(data, []byte("null")) || len(data) == 0 || data[0] == '{' || data[0] == '[':
		return errors.New("must be a string, a number, true or false")
	}
	*t = Text(data)
	return nil
}

// Schema is the three types.
func (Text) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Description: "The value as a string; a number or boolean is taken as its spelling",
		OneOf: []*huma.Schema{{Type: "string", MaxLength: ptrInt(64 << 10)}, {Type: "number"}, {Type: "boolean"}}}
}

func ptrInt(n int) *int { return &n }

// SettingValue is one value of a bulk update.
type SettingValue struct {
	Key   string `json:"key" maxLength:"255"`
	Value Text   `json:"value"`
}

// SettingValues are values by key, or a list of keys with values.
type SettingValues []SettingValue

// UnmarshalJSON understands both forms.
func (e *SettingValues) UnmarshalJSON(data []byte) error {
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '[' {
		var list []SettingValue
		if err := json.Unmarshal(data, &list); err != nil {
			return err
		}
		*e = list
		return nil
	}
	var byKey map[string]Text
	if err := json.Unmarshal(data, &byKey); err != nil {
		return err
	}
	out := make(SettingValues, 0, len(byKey))
	for k, v := range byKey {
		out = append(out, SettingValue{k, v})
	}
	slices.SortFunc(out, func(a, b SettingValue) int { return cmp.Compare(a.Key, b.Key) })
	*e = out
	return nil
}

// Schema is the two forms.
func (SettingValues) Schema(r huma.Registry) *huma.Schema {
	value := Text("").Schema(r)
	one, most := 1, len(all)
	return &huma.Schema{Description: "Values by key, or a list of {key, value}", OneOf: []*huma.Schema{
		{Type: "object", AdditionalProperties: value, MinProperties: &one, MaxProperties: &most},
		{Type: "array", MinItems: &one, MaxItems: &most, Items: &huma.Schema{Type: "object", Required: []string{"key", "value"},
			Properties: map[string]*huma.Schema{"key": {Type: "string", MaxLength: ptrInt(255)}, "value": value}}},
	}}
}

// writes checks every entry and lists everything that is wrong.
func (e SettingValues) writes() ([]write, error) {
	out := make([]write, 0, len(e))
	var bad []fault.Field
	seen := map[string]bool{}
	for _, entry := range e {
		field := "settings." + shorten(entry.Key)
		d := find(entry.Key)
		switch {
		case d == nil:
			bad = append(bad, fault.Field{Field: field, Message: "there is no setting with this key"})
			continue
		case seen[entry.Key]:
			bad = append(bad, fault.Field{Field: field, Message: "is there twice; send each key once"})
			continue
		}
		seen[entry.Key] = true
		value, err := d.normalize(string(entry.Value))
		if err != nil {
			bad = append(bad, fault.Field{Field: field, Message: err.Error()})
			continue
		}
		out = append(out, write{d, value})
	}
	return out, fault.InvalidFields(bad)
}

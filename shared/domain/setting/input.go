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

// Text is a value as it is sent: a string, or a number or boolean in its JSON spelling. Any other or too long value is
// invalid, and is rejected together with the name of its setting.
type Text struct {
	text  string
	valid bool
}

const maxText = 64 << 10 // bytes

// UnmarshalJSON accepts a string, number or boolean.
func (t *Text) UnmarshalJSON(data []byte) error {
	var text string
	switch data = bytes.TrimSpace(data); data[0] {
	case 'n', '{', '[':
		*t = Text{}
		return nil
	case '"':
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
	default:
		text = string(data)
	}
	*t = Text{text, len(text) <= maxText}
	return nil
}

// Schema describes the three types.
func (Text) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Description: "The value as a string of at most 64 KiB; a number or boolean is taken as its spelling",
		Extensions: map[string]any{"type": []string{"string", "number", "boolean"}}}
}

// read returns the value in its stored form.
func (t Text) read(d *definition) (string, error) {
	if !t.valid {
		return "", errors.New("must be a string of at most 64 KiB, a number, true or false")
	}
	return d.normalize(t.text)
}

// SettingValue is one value of a bulk update.
type SettingValue struct {
	Key   string `json:"key"`
	Value Text   `json:"value"`

	malformed bool // the input is neither an object nor a list
}

// SettingValues are values by key, or a list of keys with values. Anything else is rejected when the settings are
// validated.
type SettingValues []SettingValue

const forms = "is required: an object of values by key, or a list of {key, value}"

// UnmarshalJSON accepts both forms.
func (e *SettingValues) UnmarshalJSON(data []byte) error {
	*e = nil
	if json.Unmarshal(data, (*[]SettingValue)(e)) == nil {
		return nil
	}
	*e = SettingValues{{malformed: true}}
	var byKey map[string]Text
	if json.Unmarshal(data, &byKey) == nil {
		*e = nil
		for k, v := range byKey {
			*e = append(*e, SettingValue{Key: k, Value: v})
		}
		slices.SortFunc(*e, func(a, b SettingValue) int { return cmp.Compare(a.Key, b.Key) })
	}
	return nil
}

// Schema describes both forms.
func (SettingValues) Schema(r huma.Registry) *huma.Schema {
	value := Text{}.Schema(r)
	one := 1
	return &huma.Schema{Description: "Values by key, or a list of {key, value}", Extensions: map[string]any{"oneOf": []*huma.Schema{
		{Type: "object", AdditionalProperties: value, MinProperties: &one},
		{Type: "array", MinItems: &one, Items: &huma.Schema{Type: "object", Required: []string{"key", "value"},
			Properties: map[string]*huma.Schema{"key": {Type: "string"}, "value": value}}},
	}}}
}

// writes validates the entries of both fields and lists every error.
func (u SettingUpdates) writes() ([]write, error) {
	out := []write{}
	var bad []fault.Field
	seen := map[string]bool{}
	for _, of := range []struct {
		member  string
		entries SettingValues
	}{{"settings", u.Settings}, {"updates", u.Updates}} {
		for _, entry := range of.entries {
			field := of.member + "." + shorten(entry.Key)
			d := find(entry.Key)
			switch {
			case entry.malformed:
				bad = append(bad, fault.Field{Field: of.member, Message: forms})
				continue
			case d == nil:
				bad = append(bad, fault.Field{Field: field, Message: "there is no setting with this key"})
				continue
			case seen[entry.Key]:
				bad = append(bad, fault.Field{Field: field, Message: "is sent twice; send each key once"})
				continue
			}
			seen[entry.Key] = true
			value, err := entry.Value.read(d)
			if err != nil {
				bad = append(bad, fault.Field{Field: field, Message: err.Error()})
				continue
			}
			out = append(out, write{d, value})
		}
	}
	return out, fault.InvalidFields(bad)
}

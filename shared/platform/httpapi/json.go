package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/longbox/longbox/shared/lazyregexp"
)

// Input is understood in two spellings (docs/interface.md): the members of a body, of the objects that describe
// scanning and a device, and of authors and files may be written in snake_case, and a few have another name. Free-form
// values are left alone: only these levels are renamed.
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

func renameKeys(data []byte) ([]byte, error) {
	var body map[string]json.RawMessage
	if json.Unmarshal(data, &body) != nil || body == nil {
		return data, nil // null, or no object: validation says so
	}
	out := make(map[string]json.RawMessage, len(body))
	names := make(map[string]string, len(body)) // by their folded form
	for k, v := range body {
		key := camel(k)
		if _, both := body[key]; both && key != k {
			continue // both spellings: the preferred one counts
		}
		if other, twice := names[fold(key)]; twice {
			return nil, fmt.Errorf("names a member twice, as %.100q and %.100q", min(other, k), max(other, k))
		}
		names[fold(key)] = k
		var err error
		switch key {
		case "action", "device", "internalConfig", "metadata", "scanningConfig", "taskType":
			v, err = renameKeys(v)
		case "authors", "awards", "files", "sessions", "titlePreprocessingRules":
			v, err = renameEach(v)
		}
		if err != nil {
			return nil, err
		}
		out[key] = v
	}
	return plainJSON(out)
}

// plainJSON is json.Marshal that leaves <, > and & as they are: their escapes take six bytes, and free-form values are
// measured.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	err := writeJSON(&b, v)
	return b.Bytes(), err
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// WriteDocument answers with v as a JSON document of a type of its own, which is whole before the answer begins.
func WriteDocument(w http.ResponseWriter, mediaType string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	_, _ = w.Write(b) // an answer that nobody takes is nobody's loss
	return nil
}

// fold is the same for names that differ in case: to encoding/json they are one, while validation looks at each.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, name)
}

func renameEach(data []byte) ([]byte, error) {
	var all []json.RawMessage
	if json.Unmarshal(data, &all) != nil {
		return data, nil // not an array: validation says so
	}
	for i, v := range all {
		renamed, err := renameKeys(v)
		if err != nil {
			return nil, err
		}
		all[i] = renamed
	}
	return plainJSON(all)
}

var jsonFormat = huma.Format{
	Marshal: writeJSON,
	Unmarshal: func(data []byte, v any) error {
		if bytes.Count(data, []byte{','}) > maxValues && commas(data) > maxValues {
			return errValues
		}
		if !utf8.Valid(data) { // encoding/json would store U+FFFD in its place
			return errUTF8
		}
		if err := checkExponents(data); err != nil {
			return err
		}
		renamed, err := renameKeys(wholeRunes(data))
		if err != nil {
			return err
		}
		err = json.Unmarshal(renamed, v)
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return outOfRange(wrong)
		}
		return err
	},
}

// outOfRange says what is wrong with a number; of all else validation says it. Before validation, no float64 is so
// large; after it, 1.0 is a whole number to JSON Schema but none to encoding/json.
func outOfRange(wrong *json.UnmarshalTypeError) error {
	literal := strings.TrimPrefix(wrong.Value, "number ")
	if f, err := strconv.ParseFloat(literal, 64); err == nil && f == math.Trunc(f) && strings.ContainsAny(literal, ".eE") {
		return fmt.Errorf("holds the number %s where a whole number belongs; write it without a point or an exponent", literal)
	}
	return fmt.Errorf("holds the %s, which is out of range", wrong.Value)
}

// leastExponent is less than that of any float64. The database writes numbers out: 1e-16000 would be 16 KB.
const leastExponent = -400

var small = lazyregexp.New(`[0-9][eE]-[0-9]{3}`)

// checkExponents refuses numbers in free-form values that encoding/json takes for 0.
func checkExponents(data []byte) error {
	if !small.Match(data) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return nil // the end, or no JSON: unmarshalling says so
		}
		number, _ := token.(json.Number)
		if _, exponent, ok := strings.Cut(strings.ToLower(number.String()), "e"); ok {
			if n, err := strconv.Atoi(exponent); err != nil || n < leastExponent {
				return fmt.Errorf("holds the number %.40s, which is out of range", number)
			}
		}
	}
}

// wholeRunes replaces the escape of half a surrogate pair (as of an emoji that was cut in two) by that of U+FFFD, which
// is what encoding/json makes of it in a string. In a json.RawMessage it would stay, and the database refuses it.
func wholeRunes(data []byte) []byte {
	if !bytes.Contains(data, []byte(`\ud`)) && !bytes.Contains(data, []byte(`\uD`)) {
		return data
	}
	out := bytes.Clone(data)
	const escape = len(`\u0000`)
	for i := 0; i < len(out); {
		unit := escaped(out[i:])
		switch {
		case out[i] != '\\':
			i++
		case unit < 0:
			i += 2
		case !utf16.IsSurrogate(unit):
			i += escape
		case utf16.DecodeRune(unit, escaped(out[i+escape:])) != unicode.ReplacementChar:
			i += 2 * escape
		default:
			i += copy(out[i:], `\ufffd`)
		}
	}
	return out
}

// escaped is the UTF-16 unit whose escape b begins with; negative where there is none.
func escaped(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(unit)
}

// maxValues bounds what a body may hold: a value of two bytes that is wrong takes hundreds until that is said. The
// largest filters have 32,000.
const maxValues = 50_000

// commas are those that separate values: not those in texts.
func commas(data []byte) (n int) {
	text := false
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			text = !text
		case '\\':
			i++
		case ',':
			if !text {
				n++
			}
		}
	}
	return n
}

var errUTF8 = errors.New("is not encoded as UTF-8 (RFC 8259 section 8.1); nothing of it was stored")

var errValues = fmt.Errorf("holds more than %d values; send fewer at once", maxValues)

// HoldsNUL tells whether a text in the value, or a name, has the character NUL, which the database cannot store.
func HoldsNUL(value json.RawMessage) bool {
	if !bytes.Contains(value, []byte(`\u0000`)) {
		return false
	}
	for d := json.NewDecoder(bytes.NewReader(value)); ; {
		token, err := d.Token()
		if err != nil {
			return false // the end
		}
		if text, ok := token.(string); ok && strings.ContainsRune(text, 0) {
			return true
		}
	}
}

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
	"github.com/longbox/longbox/shared/platform/filter"
)

// aliases maps further spellings of input members (docs/interface.md). The members of a body, of the objects for
// scanning and devices, and of authors and files may be in snake_case, and some have another name. Free-form values are
// unchanged: only these levels are renamed.
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
	if strings.HasPrefix(key, "_") { // no other spelling
		return key
	}
	return filter.Camel(key)
}

func renameKeys(data []byte) ([]byte, error) {
	var body map[string]json.RawMessage
	if json.Unmarshal(data, &body) != nil || body == nil {
		return data, nil // null or not an object: validation reports it
	}
	out := make(map[string]json.RawMessage, len(body))
	names := make(map[string]string, len(body)) // by folded form
	for k, v := range body {
		key := camel(k)
		if _, both := body[key]; both && key != k {
			continue // both spellings: the preferred one wins
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

// plainJSON is json.Marshal without escaping <, > and &. The escapes take six bytes, and the size of free-form values
// is limited.
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

// WriteDocument responds with v as a JSON document of a special media type. It encodes the document before it writes
// the response.
func WriteDocument(w http.ResponseWriter, mediaType string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	_, _ = w.Write(b) // the client may have left
	return nil
}

// fold maps names that differ only in case to one form: encoding/json treats them as the same, validation does not.
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
		return data, nil // not an array: validation reports it
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
		if !utf8.Valid(data) { // encoding/json would store U+FFFD instead
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

// outOfRange explains an invalid number; validation reports all else. Before validation, no float64 has this size.
// After it, 1.0 is an integer for JSON Schema but not for encoding/json.
func outOfRange(wrong *json.UnmarshalTypeError) error {
	literal := strings.TrimPrefix(wrong.Value, "number ")
	if f, err := strconv.ParseFloat(literal, 64); err == nil && f == math.Trunc(f) && strings.ContainsAny(literal, ".eE") {
		return fmt.Errorf("holds the number %s where a whole number belongs; write it without a point or an exponent", literal)
	}
	return fmt.Errorf("holds the %s, which is out of range", wrong.Value)
}

// leastExponent is below that of any float64. The database writes numbers in full: 1e-16000 would take 16 KB.
const leastExponent = -400

var small = lazyregexp.New(`[0-9][eE]-[0-9]{3}`)

// checkExponents refuses numbers in free-form values that encoding/json reads as 0.
func checkExponents(data []byte) error {
	if !small.Match(data) {
		return nil
	}
	for token := range tokens(data) {
		number, _ := token.(json.Number)
		if _, exponent, ok := strings.Cut(strings.ToLower(number.String()), "e"); ok {
			if n, err := strconv.Atoi(exponent); err != nil || n < leastExponent {
				return fmt.Errorf("holds the number %.40s, which is out of range", number)
			}
		}
	}
	return nil
}

// wholeRunes replaces the escape of an unpaired surrogate (for example of a truncated emoji) with that of U+FFFD, as
// encoding/json does in strings. In a json.RawMessage it would stay, and the database refuses it.
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

// escaped returns the UTF-16 unit of the escape at the start of b, or a negative number if there is none.
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

// maxValues limits the values in a body: an invalid value of two bytes takes hundreds until it is reported. The largest
// filters have 32,000.
const maxValues = 50_000

// commas counts the commas that separate values, not those in strings.
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

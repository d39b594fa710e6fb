package setting

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/format/cronexpr"
	"github.com/longbox/longbox/shared/format/language"
	"github.com/longbox/longbox/shared/format/naming"
)

// Limits of a JSON array.
const (
	maxItems      = 200
	maxItemLength = 200 // characters
)

// ownPaths are the first path segments of the API itself.
var ownPaths = []string{"api", "cdn", "health", "koreader", "opds"}

func compare(a, b definition) int { return cmp.Compare(a.Key, b.Key) }

// normalize validates a value and returns its stored form. The error says what is wrong and what would be valid.
func (d *definition) normalize(value string) (string, error) {
	if !utf8.ValidString(value) || strings.ContainsRune(value, 0) {
		return "", errors.New("must be valid UTF-8 without NUL")
	}
	switch d.Type {
	case typeInteger:
		return d.integer(strings.TrimSpace(value))
	case typeFloat:
		return d.float(strings.TrimSpace(value))
	case typeBoolean:
		if value != "true" && value != "false" {
			return "", fmt.Errorf("must be true or false, is %q", shorten(value))
		}
		return value, nil
	case typeArray:
		return d.array(value)
	}
	return d.text(value)
}

func (d *definition) integer(value string) (string, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return "", fmt.Errorf("must be a whole number from %d to %d, is %q", *d.Min, *d.Max, shorten(value))
	}
	if n < *d.Min || n > *d.Max {
		return "", fmt.Errorf("must be from %d to %d, is %d", *d.Min, *d.Max, n)
	}
	return strconv.FormatInt(n, 10), nil
}

func (d *definition) float(value string) (string, error) {
	f, err := strconv.ParseFloat(value, 64)
	if err != nil || strings.ContainsAny(value, "xX_") || math.IsNaN(f) || f < float64(*d.Min) || f > float64(*d.Max) {
		return "", fmt.Errorf("must be a number from %d to %d, is %q", *d.Min, *d.Max, shorten(value))
	}
	return strconv.FormatFloat(f+0, 'f', -1, 64), nil // -0 becomes 0
}

func (d *definition) text(value string) (string, error) {
	switch {
	case d.Allowed != nil && !slices.Contains(d.Allowed, value):
		return "", fmt.Errorf("must be one of %s, is %q", strings.Join(d.Allowed, ", "), shorten(value))
	case d.Min != nil && int64(utf8.RuneCountInString(strings.TrimSpace(value))) < *d.Min:
		return "", errors.New("must not be empty")
	case d.Max != nil && int64(utf8.RuneCountInString(value)) > *d.Max:
		return "", fmt.Errorf("must be at most %d characters", *d.Max)
	case d.Key != customMetadataFormat && strings.ContainsFunc(value, naming.Hidden):
		return "", errors.New("must not contain control characters or characters that change the direction of text")
	}
	if d.Cron && value != "" {
		if _, err := cronexpr.Parse(value, ""); err != nil {
			return "", fmt.Errorf("must be empty for never, or a cron schedule: %w", err)
		}
	}
	if d.Segment && value != "" && (slices.Contains(ownPaths, value) || strings.Trim(value, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "") {
		return "", fmt.Errorf("must be empty, or a word of lower-case letters, digits, - and _ other than %s", strings.Join(ownPaths, ", "))
	}
	if d.Zone {
		if _, err := cronexpr.Parse("0 0 * * *", value); err != nil {
			return "", err
		}
	}
	return value, nil
}

func (d *definition) array(value string) (string, error) {
	var items []string
	if err := json.Unmarshal([]byte(value), &items); err != nil || items == nil {
		return "", fmt.Errorf(`must be a JSON array of strings, for example ["en"], is %q`, shorten(value))
	}
	if len(items) > maxItems {
		return "", fmt.Errorf("must have at most %d items, has %d", maxItems, len(items))
	}
	for _, item := range items {
		if n := utf8.RuneCountInString(item); n == 0 || n > maxItemLength {
			return "", fmt.Errorf("every item must have 1 to %d characters", maxItemLength)
		}
		if strings.ContainsFunc(item, naming.Hidden) { // including escapes, which the database does not decode
			return "", errors.New("items must not contain control characters or characters that change the direction of text")
		}
		if d.Languages && !language.IsCode(item) {
			return "", fmt.Errorf("every item must be the ISO 639-1 code of a language, two lower-case letters such as en; one is %q", shorten(item))
		}
	}
	out, err := json.Marshal(items)
	return string(out), err
}

func shorten(s string) string {
	if short := cut.Chars(s, 40); short != s {
		return short + "…"
	}
	return s
}

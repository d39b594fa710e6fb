package library

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/longbox/longbox/shared/domain/strategy"
	"github.com/longbox/longbox/shared/format/cronexpr"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// The formats of the interface.
var formats = []string{"CBZ", "CBR", "CB7", "CBT", "EPUB", "PDF"}

const (
	maxName   = 200
	maxConfig = 64 << 10 // bytes of JSON
)

// check normalizes the library's values and lists everything that is invalid.
func check(l *Library) []fault.Field {
	var bad []fault.Field
	add := func(field, format string, args ...any) {
		bad = append(bad, fault.Field{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	l.Name = norm.NFC.String(strings.TrimSpace(l.Name))
	if n := utf8.RuneCountInString(l.Name); n == 0 || n > maxName || strings.ContainsFunc(l.Name, naming.Hidden) || !utf8.ValidString(l.Name) {
		add("name", "must be 1 to %d printable characters", maxName)
	}
	if l.Description != nil && strings.ContainsRune(*l.Description, 0) {
		add("description", "must not contain a NUL character")
	}
	for _, f := range l.AllowedFormats {
		if !slices.Contains(formats, strings.ToUpper(f)) {
			add("allowedFormats", "%q is not a book format; use %s", f, strings.Join(formats, ", "))
		}
	}
	l.AllowedFormats = upper(l.AllowedFormats)
	if l.ExcludedPatterns != nil {
		if _, err := Excluded(*l.ExcludedPatterns); err != nil {
			add("excludedPatterns", "%v", err)
		}
	}
	before := len(bad)
	for _, c := range []struct {
		field string
		value *json.RawMessage
	}{{"seriesConfig", &l.SeriesConfig}, {"bookConfig", &l.BookConfig}, {"numberConfig", &l.NumberConfig}} {
		if msg := checkObject(c.value); msg != "" {
			add(c.field, "%s", msg)
		}
		*c.value = strategy.Canonical(*c.value)
	}
	if len(bad) == before {
		_, wrong := strategy.New(l.strategies())
		bad = append(bad, wrong...)
	}
	bad = append(bad, CheckTitleRules("titlePreprocessingRules", l.TitlePreprocessingRules)...)
	if len(l.TitlePreprocessingRules) == 0 {
		l.TitlePreprocessingRules = nil
	}
	bad = append(bad, CheckConditions("autoMatchConditions", &l.AutoMatchConditions)...)
	return append(bad, checkSchedule(l.ScanningConfig)...)
}

func upper(formats []string) []string {
	var out []string // null if there is none
	for _, f := range formats {
		if f = strings.ToUpper(f); !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// checkObject validates a configuration, which must be a JSON object; null becomes nil. It returns an error message or
// "".
func checkObject(value *json.RawMessage) string {
	v := bytes.TrimSpace(*value)
	switch {
	case len(v) == 0 || bytes.Equal(v, []byte("null")):
		*value = nil
		return ""
	case len(v) > maxConfig:
		return fmt.Sprintf("is %d bytes of JSON; the limit is %d", len(v), maxConfig)
	case v[0] != '{':
		return "must be a JSON object or null"
	case httpapi.HoldsNUL(v):
		return "must not contain a NUL character"
	}
	return ""
}

func checkSchedule(s Scanning) []fault.Field {
	var bad []fault.Field
	if _, err := cronexpr.Parse("0 0 * * *", zone(s, "")); err != nil {
		bad = append(bad, fault.Field{Field: "scanningConfig.cronTimezone", Message: err.Error()})
	}
	if s.CronSchedule != nil {
		if _, err := cronexpr.Parse(*s.CronSchedule, "UTC"); err != nil {
			bad = append(bad, fault.Field{Field: "scanningConfig.cronSchedule", Message: err.Error()})
		}
	}
	return bad
}

// zone returns the schedule's time zone, by default the server's.
func zone(s Scanning, server string) string {
	if s.CronTimezone == nil {
		return server
	}
	return *s.CronTimezone
}

// nextScan returns the time of the library's next scheduled scan, or nil; server is the setting scheduler.timezone.
func nextScan(l Library, server string, now time.Time) (*time.Time, error) {
	s := l.ScanningConfig
	if !s.Enabled || !l.IsActive || s.CronSchedule == nil {
		return nil, nil
	}
	schedule, err := cronexpr.Parse(*s.CronSchedule, zone(s, server))
	if err != nil {
		return nil, fault.Invalid("scanningConfig", "%v", err)
	}
	next := schedule.Next(now)
	if next.IsZero() {
		return nil, fault.Invalid("scanningConfig.cronSchedule", "has no date in the coming years")
	}
	return &next, nil
}

// The operators of automatic matching (autoMatchConditions).
var operators = []string{"is_null", "is_not_null", "equals", "not_equals", "gt", "gte", "lt", "lte", "contains", "not_contains",
	"starts_with", "ends_with", "matches", "in", "not_in"}

// CheckConditions validates the conditions of automatic matching in a field; null becomes nil.
func CheckConditions(field string, raw *json.RawMessage) []fault.Field {
	if msg := checkObject(raw); msg != "" || *raw == nil {
		if msg == "" {
			return nil
		}
		return []fault.Field{{Field: field, Message: msg}}
	}
	var c struct {
		Mode  *string `json:"mode"`
		Rules []struct {
			Field    string          `json:"field"`
			Operator string          `json:"operator"`
			Value    json.RawMessage `json:"value"`
		} `json:"rules"`
	}
	var readable any // a JSON number may not be readable as one
	if err := errors.Join(json.Unmarshal(*raw, &c), json.Unmarshal(*raw, &readable)); err != nil {
		return []fault.Field{{Field: field, Message: "must have mode (all or any) and rules, an array of {field, operator, value}"}}
	}
	var bad []fault.Field
	if c.Mode != nil && *c.Mode != "all" && *c.Mode != "any" {
		bad = append(bad, fault.Field{Field: field + ".mode", Message: "must be all or any"})
	}
	if len(c.Rules) > maxRules {
		return append(bad, fault.Field{Field: field + ".rules", Message: fmt.Sprintf("has %d rules; the limit is %d", len(c.Rules), maxRules)})
	}
	for i, r := range c.Rules {
		at := fmt.Sprintf("%s.rules[%d]", field, i)
		if r.Field == "" || len(r.Field) > 200 {
			bad = append(bad, fault.Field{Field: at + ".field", Message: "must name a field, for example metadata.language"})
		}
		if !slices.Contains(operators, r.Operator) {
			bad = append(bad, fault.Field{Field: at + ".operator", Message: "must be one of " + strings.Join(operators, ", ")})
		}
		if r.Operator == "matches" {
			var pattern string
			if err := json.Unmarshal(r.Value, &pattern); err != nil || len(pattern) > maxPattern {
				bad = append(bad, fault.Field{Field: at + ".value", Message: fmt.Sprintf("must be a regular expression of at most %d bytes", maxPattern)})
			} else if _, err := strategy.Compile(pattern); err != nil {
				bad = append(bad, fault.Field{Field: at + ".value", Message: err.Error()})
			}
		}
	}
	return bad
}

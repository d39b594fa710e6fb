package library

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/longbox/longbox/shared/domain/automatch"
	"github.com/longbox/longbox/shared/domain/strategy"
	"github.com/longbox/longbox/shared/format/cronexpr"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// The formats of the interface.
var formats = []string{"CBZ", "CBR", "CB7", "CBT", "EPUB", "PDF"}

const maxName = 200

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
		if msg := httpapi.CheckObject(c.value); msg != "" {
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
	bad = append(bad, automatch.Check(&l.AutoMatchConditions)...)
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

package library

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/longbox/longbox/shared/domain/strategy"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Settings are the fields that create and update have in common: absent keeps the value, null resets it to its default.
type Settings struct {
	Description             httpapi.Optional[string]           `json:"description,omitempty" maxLength:"10000"`
	IsActive                httpapi.Optional[bool]             `json:"isActive,omitempty"`
	AllowedFormats          httpapi.Optional[[]string]         `json:"allowedFormats,omitempty" maxItems:"16" doc:"CBZ, CBR, CB7, CBT, EPUB or PDF, by file extension; null or empty means all of them"`
	ExcludedPatterns        httpapi.Optional[string]           `json:"excludedPatterns,omitempty" maxLength:"20000" doc:"Glob patterns, one per line; a pattern without a slash matches at any depth, one with a slash from the root"`
	DefaultReadingDirection httpapi.Optional[string]           `json:"defaultReadingDirection,omitempty" enum:"ltr,rtl,ttb,webtoon"`
	BookStrategy            httpapi.Optional[string]           `json:"bookStrategy,omitempty" enum:"filename,metadata_first,smart,series_name,custom" doc:"Existing books are renamed when they are analysed again, for example by a deep scan"`
	NumberStrategy          httpapi.Optional[string]           `json:"numberStrategy,omitempty" enum:"file_order,metadata,filename,smart"`
	SeriesStrategy          httpapi.Optional[string]           `json:"seriesStrategy,omitempty" enum:"series_volume,series_volume_chapter,flat,publisher_hierarchy,calibre,custom" doc:"Cannot be changed after creation"`
	BookConfig              httpapi.Optional[json.RawMessage]  `json:"bookConfig,omitempty"`
	NumberConfig            httpapi.Optional[json.RawMessage]  `json:"numberConfig,omitempty"`
	SeriesConfig            httpapi.Optional[json.RawMessage]  `json:"seriesConfig,omitempty" doc:"Cannot be changed after creation"`
	TitlePreprocessingRules httpapi.Optional[[]TitleRule]      `json:"titlePreprocessingRules,omitempty" maxItems:"50"`
	AutoMatchConditions     httpapi.Optional[json.RawMessage]  `json:"autoMatchConditions,omitempty" doc:"Object with mode (all or any) and rules"`
	ScanningConfig          httpapi.Optional[ScanningSettings] `json:"scanningConfig,omitempty"`
}

// ScanningSettings is scanningConfig on input; snake_case names and default_mode are accepted.
type ScanningSettings struct {
	Enabled            httpapi.Optional[bool]   `json:"enabled,omitempty"`
	CronSchedule       httpapi.Optional[string] `json:"cronSchedule,omitempty" maxLength:"200"`
	CronTimezone       httpapi.Optional[string] `json:"cronTimezone,omitempty" maxLength:"100"`
	ScanMode           httpapi.Optional[string] `json:"scanMode,omitempty" enum:"normal,deep"`
	ScanOnStart        httpapi.Optional[bool]   `json:"scanOnStart,omitempty"`
	PurgeDeletedOnScan httpapi.Optional[bool]   `json:"purgeDeletedOnScan,omitempty"`
}

// apply copies the fields that were sent into the library, without validation.
func (s Settings) apply(l *Library) {
	def := blank()
	l.Description = emptyIsNil(s.Description.OrNil(l.Description))
	l.IsActive = or(s.IsActive, l.IsActive, def.IsActive)
	l.AllowedFormats = s.AllowedFormats.Or(l.AllowedFormats)
	l.ExcludedPatterns = emptyIsNil(s.ExcludedPatterns.OrNil(l.ExcludedPatterns))
	l.DefaultReadingDirection = or(s.DefaultReadingDirection, l.DefaultReadingDirection, def.DefaultReadingDirection)
	l.BookStrategy = or(s.BookStrategy, l.BookStrategy, def.BookStrategy)
	l.NumberStrategy = or(s.NumberStrategy, l.NumberStrategy, def.NumberStrategy)
	l.SeriesStrategy = or(s.SeriesStrategy, l.SeriesStrategy, def.SeriesStrategy)
	l.BookConfig = s.BookConfig.Or(l.BookConfig)
	l.NumberConfig = s.NumberConfig.Or(l.NumberConfig)
	l.SeriesConfig = s.SeriesConfig.Or(l.SeriesConfig)
	l.TitlePreprocessingRules = s.TitlePreprocessingRules.Or(l.TitlePreprocessingRules)
	l.AutoMatchConditions = s.AutoMatchConditions.Or(l.AutoMatchConditions)
	if !s.ScanningConfig.Set {
		return
	}
	if s.ScanningConfig.Value == nil {
		l.ScanningConfig = def.ScanningConfig
		return
	}
	in, c := s.ScanningConfig.Value, &l.ScanningConfig
	c.Enabled = in.Enabled.Or(c.Enabled)
	c.CronSchedule = emptyIsNil(in.CronSchedule.OrNil(c.CronSchedule))
	c.CronTimezone = emptyIsNil(in.CronTimezone.OrNil(c.CronTimezone))
	c.ScanMode = or(in.ScanMode, c.ScanMode, def.ScanningConfig.ScanMode)
	c.ScanOnStart = in.ScanOnStart.Or(c.ScanOnStart)
	c.PurgeDeletedOnScan = in.PurgeDeletedOnScan.Or(c.PurgeDeletedOnScan)
}

// checkFixed refuses a change of the series strategy.
func checkFixed(old, now Library) []fault.Field {
	var bad []fault.Field
	if old.SeriesStrategy != now.SeriesStrategy {
		bad = append(bad, fault.Field{Field: "seriesStrategy", Message: "cannot be changed after creation (it is " + old.SeriesStrategy + "); create another library"})
	}
	if !sameJSON(old.SeriesConfig, strategy.Canonical(now.SeriesConfig)) {
		bad = append(bad, fault.Field{Field: "seriesConfig", Message: "cannot be changed after creation; create another library"})
	}
	return bad
}

func sameJSON(a, b json.RawMessage) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return bytes.Equal(a, b)
	}
	return reflect.DeepEqual(x, y)
}

func or[T any](o httpapi.Optional[T], old, def T) T {
	if o.Set && o.Value == nil {
		return def
	}
	return o.Or(old)
}

func emptyIsNil(s *string) *string {
	if s == nil || strings.TrimSpace(*s) == "" {
		return nil
	}
	return s
}

package library

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Library is the record of a library.
type Library struct {
	ID                      uuid.UUID       `json:"id" db:"id"`
	Name                    string          `json:"name" db:"name"`
	Path                    string          `json:"path" db:"path" doc:"Root as entered: an absolute path or s3://bucket/prefix"`
	Description             *string         `json:"description" db:"description"`
	IsActive                bool            `json:"isActive" db:"is_active"`
	AllowedFormats          []string        `json:"allowedFormats" db:"allowed_formats" nullable:"true" doc:"Null means all readable formats"`
	ExcludedPatterns        *string         `json:"excludedPatterns" db:"excluded_patterns" doc:"Glob patterns, one per line"`
	DefaultReadingDirection string          `json:"defaultReadingDirection" db:"default_reading_direction" enum:"ltr,rtl,ttb,webtoon"`
	BookStrategy            string          `json:"bookStrategy" db:"book_strategy" enum:"filename,metadata_first,smart,series_name,custom"`
	NumberStrategy          string          `json:"numberStrategy" db:"number_strategy" enum:"file_order,metadata,filename,smart"`
	SeriesStrategy          string          `json:"seriesStrategy" db:"series_strategy" enum:"series_volume,series_volume_chapter,flat,publisher_hierarchy,calibre,custom"`
	BookConfig              json.RawMessage `json:"bookConfig" db:"book_config"`
	NumberConfig            json.RawMessage `json:"numberConfig" db:"number_config"`
	SeriesConfig            json.RawMessage `json:"seriesConfig" db:"series_config"`
	TitlePreprocessingRules []TitleRule     `json:"titlePreprocessingRules" db:"title_preprocessing_rules" nullable:"true"`
	AutoMatchConditions     json.RawMessage `json:"autoMatchConditions" db:"auto_match_conditions"`
	ScanningConfig          Scanning        `json:"scanningConfig" db:"-"`
	BookCount               *int64          `json:"bookCount" db:"book_count"`
	SeriesCount             *int64          `json:"seriesCount" db:"series_count"`
	LastScannedAt           *time.Time      `json:"lastScannedAt" db:"last_scanned_at"`
	CreatedAt               time.Time       `json:"createdAt" db:"created_at"`
	UpdatedAt               time.Time       `json:"updatedAt" db:"updated_at"`
}

// Scanning is the schedule of a library's own scans (scanningConfig).
type Scanning struct {
	Enabled            bool    `json:"enabled" db:"scan_enabled"`
	CronSchedule       *string `json:"cronSchedule" db:"scan_cron" doc:"Cron expression of 5 fields, or 6 with seconds"`
	CronTimezone       *string `json:"cronTimezone" db:"scan_timezone" doc:"IANA time zone; null means that of the setting scheduler.timezone"`
	ScanMode           string  `json:"scanMode" db:"scan_mode" enum:"normal,deep"`
	ScanOnStart        bool    `json:"scanOnStart" db:"scan_on_start"`
	PurgeDeletedOnScan bool    `json:"purgeDeletedOnScan" db:"purge_deleted_on_scan"`
}

// blank returns a library with default values.
func blank() Library {
	return Library{IsActive: true, DefaultReadingDirection: "ltr", SeriesStrategy: "series_volume", BookStrategy: "filename",
		NumberStrategy: "file_order", ScanningConfig: Scanning{ScanMode: "normal"}}
}

package setting

import (
	"slices"
	"sync"

	"github.com/google/uuid"
)

// The types of values. A value is always stored as a string; Array is a JSON array of strings.
const (
	typeString  = "String"
	typeInteger = "Integer"
	typeFloat   = "Float"
	typeBoolean = "Boolean"
	typeArray   = "Array"
)

// customMetadataFormat is the key of the one text that may have line breaks.
const customMetadataFormat = "display.custom_metadata_template"

// Keys that other slices read.
const (
	ApplicationName      = "application.name"
	RegistrationEnabled  = "auth.registration_enabled"
	ConfirmEmail         = "auth.email_confirmation_required"
	ScanTimeout          = "scanner.scan_timeout_minutes"
	RetryFailedFiles     = "scanner.retry_failed_files"
	ScanBatchSize        = "scanner.batch_size"
	DeduplicationEnabled = "deduplication.enabled"
	DeduplicationCron    = "deduplication.cron_schedule"
	ThumbnailDimension   = "thumbnail.max_dimension"
	ThumbnailQuality     = "thumbnail.jpeg_quality"
	BookCoverCron        = "thumbnail.book_cron_schedule"
	SeriesCoverCron      = "thumbnail.series_cron_schedule"
	SchedulerZone        = "scheduler.timezone"
	TaskRetentionDays    = "tasks.retention_days"
	TrustedSources       = "duplicate_detection.trusted_external_id_sources"
	TaskMetricsDays      = "metrics.task_retention_days"
	KomgaPrefix          = "komga_api.prefix"
	KOReader             = "koreader_api.enabled"
	MatchThreshold       = "plugins.auto_match_confidence_threshold"
	MatchAfterScan       = "plugins.post_scan_auto_match_enabled"
	PluginTaskTimeout    = "plugin.task_request_timeout_seconds"
	ReleaseLanguages     = "release_tracking.default_languages"
	ReleaseNotifyIn      = "release_tracking.notify_languages"
	ReleaseNotifyBy      = "release_tracking.notify_plugins"
	ReleaseCron          = "release_tracking.default_cron_schedule"
	ExportRetentionDays  = "exports.retention_days"
	ExportsPerUser       = "exports.max_per_user"
	ExportsAtOnce        = "exports.max_concurrent_per_user"
	ExportBytes          = "exports.storage_cap_bytes"
	ExportCleanupCron    = "exports.cleanup_cron"
	PDFCacheCron         = "pdf_cache.cron_schedule"
	PDFCacheDays         = "pdf_cache.max_age_days"
)

// definition is the static part of a setting.
type definition struct {
	Key         string
	Category    string
	Type        string
	Default     string
	Min, Max    *int64 // of a number, or of a string's length in characters
	Allowed     []string
	Cron        bool // the value is a cron expression; "" is off
	Zone        bool // the value is the name of a time zone
	Segment     bool // the value is a path segment; "" is off
	Languages   bool // the items of the array are ISO 639-1 codes
	Public      bool // every signed-in user may read it
	Description string
}

// namespace is the UUID namespace of the ids of settings.
var namespace = uuid.MustParse("6f3b1c52-0d0e-5a53-9a4e-6b1c8f0f7d21")

// id returns the id of a setting, which is the same in every installation.
func (d *definition) id() uuid.UUID { return uuid.NewSHA1(namespace, []byte(d.Key)) }

func integer(key, category, value string, from, to int64, description string) definition {
	return definition{Key: key, Category: category, Type: typeInteger, Default: value, Min: &from, Max: &to, Description: description}
}

func boolean(key, category, value, description string) definition {
	return definition{Key: key, Category: category, Type: typeBoolean, Default: value, Description: description}
}

func list(key, category, value, description string) definition {
	return definition{Key: key, Category: category, Type: typeArray, Default: value, Description: description}
}

func languages(key, category, value, description string) definition {
	d := list(key, category, value, description)
	d.Languages = true
	return d
}

func schedule(key, category, value, description string) definition {
	return definition{Key: key, Category: category, Type: typeString, Default: value, Max: ptr(100), Cron: true, Description: description}
}

// all returns the definitions sorted by key.
var all = sync.OnceValue(func() []definition {
	return sorted(
		definition{Key: ApplicationName, Category: "Application", Type: typeString, Default: "Longbox", Min: ptr(1), Max: ptr(100),
			Public: true, Description: "Name of this library server, shown to its users"},
		boolean(RegistrationEnabled, "Authentication", "false", "Whether anyone may register as a user"),
		boolean(ConfirmEmail, "Authentication", "false", "A registered user must confirm the e-mail address before signing in"),
		boolean(DeduplicationEnabled, "Deduplication", "true", "Look for duplicates by the schedule"),
		schedule(DeduplicationCron, "Deduplication", "", "When to look for duplicates; empty is never"),
		list(TrustedSources, "Duplicate Detection", "[]",
			"Sources (plugin:<name>) whose external ids prove that two series are the same"),
		definition{Key: customMetadataFormat, Category: "Display", Type: typeString, Max: ptr(20_000), Public: true,
			Description: "Template that turns custom metadata into Markdown; empty shows none"},
		integer(ExportRetentionDays, "Exports", "7", 1, 90, "Days that a finished export is kept"),
		integer(ExportsPerUser, "Exports", "10", 1, 100, "Exports that a user may keep"),
		integer(ExportsAtOnce, "Exports", "3", 1, 10, "Exports of one user that may run at once"),
		integer(ExportBytes, "Exports", "2147483648", 104_857_600, 1<<50, "Bytes that all exports together may take; those of one user may take half"),
		schedule(ExportCleanupCron, "Exports", "0 30 * * * *", "When expired exports are removed; empty is never"),
		definition{Key: KomgaPrefix, Category: "Komga", Type: typeString, Max: ptr(64), Segment: true,
			Description: "Path of the Komga-compatible interface, for example komga for /komga/api/v1; empty turns it off"},
		boolean(KOReader, "KOReader", "false", "KOReader syncs progress with /koreader, with an API key as user name"),
		definition{Key: TaskMetricsDays, Category: "Metrics", Type: typeString, Default: "30",
			Allowed: []string{"disabled", "7", "30", "90", "180"}, Description: "Days that task metrics are kept; disabled records none and deletes the existing ones"},
		schedule(PDFCacheCron, "PDF", "", "When cached pages of PDF documents that are too old are deleted; empty is never"),
		integer(PDFCacheDays, "PDF", "30", 0, 365, "Cached pages of PDF documents are too old this many days after they were made; 0 is never"),
		definition{Key: MatchThreshold, Category: "Plugins", Type: typeFloat, Default: "0.8", Min: ptr(0), Max: ptr(1),
			Description: "Confidence that a plugin's match needs to be applied automatically"},
		boolean(MatchAfterScan, "Plugins", "false", "After a scan, match new series with the plugins that have the scope library:scan"),
		integer(PluginTaskTimeout, "Plugins", "300", 1, 600, "Seconds that a plugin may take to answer a background task"),
		boolean("purge.purge_empty_series", "Purge", "true", "Remove a series when its last book is purged"),
		languages(ReleaseLanguages, "Release Tracking", `["en"]`, "ISO 639-1 codes of the languages whose releases are tracked"),
		languages(ReleaseNotifyIn, "Release Tracking", "[]", "ISO 639-1 codes of the languages to announce releases in; empty is all"),
		list(ReleaseNotifyBy, "Release Tracking", "[]", "Names of plugins whose releases are announced; empty is all"),
		schedule(ReleaseCron, "Release Tracking", "0 0 * * *", "When release sources without their own schedule are polled; empty is never"),
		integer(ScanBatchSize, "Scanner", "100", 10, 500, "Number of books in one analysis task"),
		boolean(RetryFailedFiles, "Scanner", "false", "Whether a normal scan retries unchanged files whose analysis failed"),
		integer(ScanTimeout, "Scanner", "120", 10, 1440, "Minutes after which a scan that still lists files is stopped"),
		definition{Key: SchedulerZone, Category: "Scheduler", Type: typeString, Default: "UTC", Min: ptr(1), Max: ptr(100), Zone: true,
			Description: "Time zone of schedules without their own, for example Europe/Paris"},
		boolean("search.fuzzy.enabled", "Search", "false", "Whether a search for misspelt words finds titles that are similar"),
		integer(TaskRetentionDays, "Task", "7", 1, 365, "Days that finished tasks are kept"),
		integer(ThumbnailDimension, "Thumbnail", "400", 100, 2000, "Longest side of a cover image, in pixels"),
		integer(ThumbnailQuality, "Thumbnail", "85", 50, 100, "JPEG quality of cover images"),
		schedule(BookCoverCron, "Thumbnail", "", "When missing book covers are made; empty is never"),
		schedule(SeriesCoverCron, "Thumbnail", "", "When missing series covers are made; empty is never"),
	)
})

func ptr(n int64) *int64 { return &n }

func sorted(d ...definition) []definition {
	slices.SortFunc(d, compare)
	return d
}

// find returns the definition of a key, or nil.
func find(key string) *definition {
	i, ok := slices.BinarySearchFunc(all(), definition{Key: key}, compare)
	if !ok {
		return nil
	}
	return &all()[i]
}

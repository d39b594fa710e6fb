// Package release stores which series are tracked, and the releases that plugins announce for them: new volumes and
// chapters.
//
//   - Only people start tracking. Plugins also get the alternate titles of a tracked series.
//   - A source is what a plugin polls for releases. Plugins name their sources. A source is polled by its own schedule
//     or that of the setting, and is deleted with the plugin.
//   - A release is stored once: by its id at the source, and within a series by its torrent.
//   - It is announced if it is newer than what exists and what was known, in a tracked language. Otherwise it is
//     ignored, which people can see and change. Releases below the confidence threshold, or for series that are not
//     tracked, are not stored.
//   - The latest known volume and chapter increase with what is announced. Only a reset of a source takes back what it
//     has announced, except releases that a person has set to ignored.
//   - Package plugin asks the plugin, and passes its response to Record.
//
// Tables: series_tracking, series_alias, release_source, release; reads series, book, library, alternate_title,
// external_id, plugin and setting.
package release

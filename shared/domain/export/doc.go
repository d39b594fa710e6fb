// Package export writes what a user sees of the library, with what the user has read and thinks of it, into a file to
// keep: series, books or both, as CSV, JSON or Markdown. It belongs to who asked for it; nobody else sees it.
//
//   - A task reads the rows page by page, in the user's name (db.Acting): sharing tags hide from the file what they
//     hide from the user. It writes the file part by part into the media bucket, so that its memory does not grow with
//     the library, and goes on behind the last part when it was paused or has died.
//   - A file is given out while the user would see the same by the sharing tags (app.sight).
//   - Exports expire. A task, by the schedule among the settings and after deletions, removes the rows that have
//     expired and every object that no row names.
//
// Tables: series_export, export_cleanup; counts bytes in rendition_usage; reads account,
// series_sharing_tag, task, setting and what it exports (series, book, library and what belongs to them).
package export

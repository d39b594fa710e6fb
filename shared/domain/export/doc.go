// Package export writes what a user sees of the library, with the user's progress and ratings, to a file: series, books
// or both, as CSV, JSON or Markdown. It belongs to the user who requested it; nobody else sees it.
//
//   - A task reads the rows page by page, as the user (db.Acting): sharing tags hide from the file what they hide from
//     the user. It writes the file in parts to the media bucket, so that memory does not grow with the library. After a
//     pause or a crash it continues after the last part.
//   - A file can be downloaded while the sharing tags let the user see the same as when it was made (app.sight).
//   - Exports expire. A task, by the schedule in the settings and after deletions, deletes expired rows and
//     unreferenced objects.
//
// Tables: series_export, export_cleanup; counts bytes in rendition_usage; reads account,
// series_sharing_tag, task, setting and what it exports (series, book, library and what belongs to them).
package export

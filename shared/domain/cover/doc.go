// Package cover names covers, deletes unused ones, stores those that people upload or plugins provide for series and
// books, and starts the tasks that make covers: on request for books or series, and by the schedules in the settings
// for all missing covers. Package rendition makes the covers: in these tasks, during analysis, and when a cover is
// first requested. This package does not render, because the api and the scheduler link it and must not render either.
//
//   - A task makes missing covers; with force it makes all again.
//   - The cover of a series is the one that it shows: of one of its books, or a picture beside them.
//   - Covers that nothing shows any more are deleted once a day (Sweep), and with them unused objects of other
//     packages.
//   - Per target, at most one task without force and one with force is pending or running; a repeated request gets its
//     id.
//   - Uploaded pictures are in the database: no task makes them again. The shown one stays when a book's file is
//     replaced, and moves along if another series or book takes the place of its owner.
//
// Tables: cover_sweep, series_cover, book_cover, cover_source and updated_at of series and book; reads sidecar,
// library, setting, tenant.
package cover

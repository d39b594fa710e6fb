// Package cover names covers, deletes those that nothing shows any more, keeps those that people upload or plugins name
// for series and books, and starts the tasks that make them: by request for books or series, and by the schedules of
// the settings for all missing covers. Package rendition makes the covers: in these tasks, while a book is analysed,
// and when a cover is first asked for. This package does not render, because the api and the scheduler, which link it,
// must not either.
//
//   - A task makes what is missing; with force it makes all again.
//   - The cover of a series is the one that the series shows: of one of its books, or a picture beside them.
//   - Covers that nothing shows any more are deleted once a day (Sweep).
//   - For one target at most one task waits or runs at a time, and one with force; a repeated request gets its id.
//   - A picture that people upload lies in the database: it is nobody's to make again. The one that is shown stays when
//     a book's file is replaced, and goes on with the series or book that takes the place of its own.
//
// Tables: cover_sweep, series_cover, book_cover, cover_source and updated_at of series and book; reads sidecar,
// library, setting, tenant.
package cover

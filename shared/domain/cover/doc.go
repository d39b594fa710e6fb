// Package cover names covers, deletes those that nothing shows any more, and starts the tasks that make them: by
// request for books or series, and by the schedules of the settings for all missing covers. Package rendition makes the
// covers: in these tasks, while a book is analysed, and when a cover is first asked for. This package does not know
// images, because the api and the scheduler, which link it, must not either.
//
//   - A task makes what is missing; with force it makes all again.
//   - The cover of a series is the one that the series shows: of one of its books, or a picture beside them.
//   - Covers that nothing shows any more are deleted once a day (Sweep).
//   - For one target at most one task waits or runs at a time, and one with force; a repeated request gets its id.
//
// Tables: cover_sweep; reads book, series, series_cover, sidecar, library, setting, tenant.
package cover

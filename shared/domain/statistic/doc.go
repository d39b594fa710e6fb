// Package statistic reports what users have read: sessions, time and pages in a period, by day, week or month, by
// series, by format and by device. Nobody sees another user's.
//
//   - Time is measured if the client reports how long the reader was active. It is inferred if the client only writes
//     progress: from one write to the next, if they are within five minutes (package progress). Otherwise it is
//     unknown, also for clients that do not identify themselves.
//   - A session without activity does not count: no time passed and no page was turned.
//   - A book is finished if the history says so, even if the session is outside the period; what was removed from the
//     history does not count.
//   - A book whose file is gone counts until it is purged.
//
// Tables: reads reading_session, completion, book and series.
package statistic

// Package statistic tells users what they have read: sittings, time and pages of a span of time, by day, week or month,
// by series, by format and by device. Nobody sees another user's.
//
//   - Time is measured where the client says how long the reader was active. It is inferred where the client only
//     writes progress: from one write to the next, as long as they are within five minutes (package progress). Else it
//     is unknown, as it is of a client that does not say at all who it is.
//   - A sitting in which nothing happened does not count: no time passed and no page was turned.
//   - A book is finished where the history says so, also where its sitting is not in the span; what was removed from
//     the history does not count.
//   - A book whose file is gone still counts, until it is purged.
//
// Tables: reads reading_session, completion, book and series.
package statistic

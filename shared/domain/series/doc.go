// Package series serves series: lists, the full record and the books of one. It marks series as read, starts the tasks
// that analyse, number and name them, and applies people's changes.
//
//   - Every list takes one round trip, like the lists of books: ids by an index, records by id. If the list is narrowed
//     by library only, the total comes from the counters.
//   - Search uses app.find, like the search for books.
//   - The reading state in a record is the caller's: unread books, how often the whole series was completed (the fewest
//     completions of any of its books) and when that was last.
//   - Books whose file is gone are never counted.
//   - What people write stays until a file says otherwise. Locked fields stay in any case; setting a title locks it. A
//     reset clears and unlocks everything and analyses the books again, so that the series is as its files say.
//
// Tables: writes the metadata and locks of series; a reset also clears the rows that belong to the series. Reads
// series, its genres, tags, titles, ids, links and ratings, series_cover, series_rating, series_tracking, plugin,
// collection_member, wanted, sidecar, book, library, progress, setting and completion.
package series

// Package series shows series: lists, the full record and the books of one, marks them as read, starts the tasks
// that analyse, number and name them, and takes what people change of one.
//
//   - Every list is one round trip, made as the lists of books are: ids by an index, records by id, the total
//     from the counters where the list is no further narrowed than by library.
//   - What is searched for is found as books are, by app.find.
//   - What a record says of reading is the caller's: unread books, how often the whole series was completed (the
//     fewest completions of any of its books) and when that was last.
//   - Books whose file is gone count nowhere.
//   - What people write stays until a file says otherwise; what they lock stays, and a title they give is locked. A
//     reset clears and unlocks everything and has the books analysed, so that the series is as their files say.
//
// Tables: writes the metadata and locks of series, and at a reset what hangs on a series; reads series, its genres,
// tags, titles, ids, links and ratings, series_cover, series_rating, series_tracking, plugin, collection_member,
// wanted, sidecar, book, library, progress, setting and completion.
package series

// Package scanner compares a library's objects with its books and makes them agree; package scan is what people
// and schedules ask for it with. Only the worker links this one, with all that reads books.
//
//   - A scan is a task of type scan_library with a row of counters. It lists the library in parallel ranges of
//     keys, compares each page of 1,000 keys with the same range of books (key, size, ETag or modification
//     time), and writes differences in batches: series, books and the tasks that analyse them in one
//     transaction.
//   - Books are analysed in batches by tasks of type analyze_books, children of the scan, which is over when
//     all of them are.
//   - A rescan of an unchanged library writes nothing but its own row.
//   - A file that is gone is marked deleted at the end of a complete listing; an empty or failed one deletes
//     nothing. When the file comes back, so does the book with its progress.
//   - A scan that would mark more than half of its library deleted stops before that, until as many are confirmed.
//   - A file that has moved is a new book until it is read and the old one is marked deleted, whichever comes
//     last: then the two become one (app.follow_content).
//   - A file that has taken the name of another counts as a replacement of that file until both are read; then each
//     book goes to the file that has now the content that it had before (displaced). Every analysis that finds other
//     content, and every book marked deleted, looks for its partner among the earlier ones, so that tasks,
//     announcements and kills may come in any order.
//   - A file that has moved to another library is found when a scan of either has ended, or when it was announced
//     (app.follow_over): then all that both libraries know is written.
//   - Sidecars (shared/domain/library: package documents, series.json, cover pictures) are found by the same listing
//     and compared in the same way; those that changed or went are taken in by analyze_books tasks too. A book keeps
//     the version of the package document it was read with, so that it is read again when there is another. What a
//     cancelled scan has left of that, the next one catches up with.
//   - A book's position as its number, and titles made of that, depend on its neighbours (arrange). They are corrected
//     in the transaction that moves books between series or marks them deleted, and for new books at the end of the
//     scan; after a scan that did not reach its end, by the next one.
//   - Every write first checks that the task is still held: a cancelled or superseded scan changes nothing.
//     What was done stays done, and a repeated scan continues from it.
//   - Locks are taken in one order everywhere: task, scan, library_count, series, book.
//
// Tables: scan, series, book, displaced, book_metadata, sidecar, page_index, genre, tag and their links,
// alternate_title, external_id, external_link (source comicinfo); place and progress of its tasks, the page of progress
// beyond the last one; reads library, library_count, library_root, reading_session, setting and tenant.
package scanner

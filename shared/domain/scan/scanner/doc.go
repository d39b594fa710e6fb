// Package scanner syncs a library's books with its objects; package scan is its interface for people and schedules.
// Only the worker links this package, with all that reads books.
//
//   - A scan is a task of type scan_library with a row of counters. It lists the library in parallel ranges of keys and
//     compares each page of 1,000 keys with the books in the same range (key, size, ETag or modification time). It
//     writes differences in batches: series, books and the tasks that analyse them in one transaction.
//   - Books are analysed in batches by tasks of type analyze_books, children of the scan, which ends when all of them
//     have ended.
//   - A rescan of an unchanged library writes only its own row.
//   - A book whose file is missing is marked deleted at the end of a complete listing; an empty or failed listing
//     deletes nothing. When the file comes back, so does the book with its progress.
//   - A scan that would mark more than half of its library deleted stops before that, until that number is confirmed.
//   - A moved file is a new book until it is read and the old one is marked deleted, whichever comes last: then the two
//     become one (app.follow_content).
//   - A file under the name of another counts as its replacement until both are read; then each book moves to the file
//     that now has its former content (displaced). Every analysis that finds other content, and every book marked
//     deleted, looks for its counterpart among the earlier ones, so that tasks, notifications and crashes may come in
//     any order.
//   - A file that has moved to another library is found when a scan of either library has ended, or through its
//     notification (app.follow_over): then all that both libraries know is written.
//   - Sidecars (shared/domain/library: package documents, series.json, cover pictures) are found by the same listing
//     and compared in the same way; analyze_books tasks also process changed and deleted ones. A book stores the
//     version of the package document with which it was read, so that it is read again when that changes. The next scan
//     catches up on what a cancelled scan has left.
//   - A book's position as its number, and titles made from it, depend on its neighbours (arrange). They are corrected
//     in the transaction that moves books between series or marks them deleted, and for new books at the end of the
//     scan; after an incomplete scan, by the next one.
//   - Every write first checks that the lease of the task is still held: a cancelled or superseded scan changes
//     nothing. What was done stays done, and a repeated scan continues from it.
//   - Locks are taken in one order everywhere: task, scan, library_count, series, book.
//
// Tables: scan, series, book, displaced, book_metadata, sidecar, page_index, genre, tag and their links,
// alternate_title, external_id, external_link (source comicinfo); place and progress of its tasks, the page of progress
// beyond the last one; reads library, library_count, library_root, reading_session, setting and tenant.
package scanner

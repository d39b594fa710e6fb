// Package book serves books: lists, the full record, the list of pages, the neighbours in the series. It also starts
// the analysis of a book and applies people's changes to it.
//
//   - A book whose file is gone (deleted_at) is shown only with includeDeleted.
//   - Every list takes one round trip: the ids of the page by an index, then their records by id. If the list is
//     narrowed by library or series only, the total comes from the database's counters.
//   - The list of a library is the same list, limited to that library. An unknown library is NotFound, in the same
//     round trip.
//   - Lists of books in progress start from the caller's progress rows. They cost as much as the caller has read, not
//     as much as the library holds.
//   - The database function app.find searches, in titles only and within the library and series that a list is for.
//     Other conditions and sorting apply to its result.
//   - A book that cannot be read is listed with the reason. It is retried on request, when its file changes, or by a
//     deep scan.
//   - A request for the pages of a book whose page sizes are unknown queues the task that reads them (package measure).
//   - A field that a person gives a value is locked: no scan overwrites it until somebody unlocks it.
//
// Tables: writes error_*, title, number, volume, chapter and updated_at of book, what people change of book_metadata,
// and release_fill; reads book, book_metadata, page_index, koreader_digest, series, library, genre, tag,
// collection_member, wanted, progress, setting and the counters.
package book

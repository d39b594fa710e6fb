// Package book shows books: lists, the full record, the list of pages, the neighbours in the series. It also takes the
// request to analyse a book again, and what people change of a book.
//
//   - A book whose file is gone (deleted_at) is shown only where includeDeleted asks for it.
//   - Every list is one round trip: the ids of the page by an index, their records by id, the total from the
//     counters that the database keeps where the list is no further narrowed than by library or series.
//   - The list of a library is the same list, limited to that library; a library that does not exist is NotFound, in
//     the same round trip.
//   - Lists of what the caller reads come from the caller's progress and cost what the caller has read, not what
//     the library holds.
//   - What is searched for is found by the database's function app.find, in titles alone; conditions narrow it, and it
//     is put into order after that.
//   - A book that cannot be read is listed with the reason, and tried again when somebody asks for it, its file changes
//     or a deep scan comes.
//   - A request for the pages of a book queues the task that reads their sizes where these are unknown (package
//     measure).
//   - A field that a person gives a value is locked: no scan writes it again until somebody unlocks it.
//
// Tables: writes error_*, title, number, volume, chapter and updated_at of book, what people change of book_metadata, and
// release_fill; reads book, book_metadata, page_index, koreader_digest, series, library, genre, tag, collection_member,
// wanted, progress, setting and the counters.
package book

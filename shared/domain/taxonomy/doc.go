// Package taxonomy keeps the genres and tags of series and books: what there is of them, and what people change of one
// series or book or of several. What the files of a series name is added to it, and to the book that names it, by the
// analysis, unless somebody has locked the set.
//
//   - Names are the same in upper and lower case; the first spelling stays.
//   - What neither a series nor a book has any more is in no list. Its row stays until an administrator cleans up.
//   - Who adds a name holds its row. A clean-up waits for that, and looks again whether anything has it.
//   - A change of several series or books takes their libraries' turns before it locks them, as a scan does
//     (docs/decisions.md).
//
// Tables: genre, tag, series_genre, series_tag, book_genre, book_tag, term_fill; updated_at of series and book.
package taxonomy

// Package taxonomy manages the genres and tags of series and books: the lists of them, and people's changes to one or
// several series or books. The analysis adds what the files name, to the book and to its series, unless the set is
// locked.
//
//   - Names ignore case; the first spelling stays.
//   - Names that no series or book has are not listed. Their rows stay until an administrator cleans up.
//   - Adding a name locks its row. A clean-up waits for the lock, and checks again whether the name is in use.
//   - A change of several series or books locks their libraries' counters before it locks them, as a scan does
//     (docs/decisions.md).
//
// Tables: genre, tag, series_genre, series_tag, book_genre, book_tag, term_fill; updated_at of series and book.
package taxonomy

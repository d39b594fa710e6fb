// Package pdfcache tells of the pages of PDF documents that are kept, and lets administrators remove them. These are
// the page packs of such books (package pack, which makes and deletes them): a page that must be drawn is kept nowhere
// else, but for smaller pictures of it, which expire as those of any book. Removing a pack loses nothing: it is made
// again when somebody reads the book.
//
//   - What there is is read from the rows of the packs: exact, in one round trip, without asking the store.
//   - A worker deletes them, since the function api has no right in the media bucket. With the setting
//     pdf_cache.max_age_days these are the packs that were made so long ago; 0 keeps all.
//   - No documents are kept open: each picture of a page begins with the document anew. So the operations on handles
//     tell of none, and close none.
//
// Tables: reads page_pack, book, setting.
package pdfcache

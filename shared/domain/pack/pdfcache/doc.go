// Package pdfcache reports the stored pages of PDF documents, and lets administrators delete them. These are the page
// packs of such books (package pack makes and deletes them): a page that must be drawn is stored nowhere else, except
// for page renditions, which expire as for any book. Deleting a pack loses nothing: it is made again when somebody
// reads the book.
//
//   - The statistics come from the rows of the packs: exact, in one round trip, without a request to the store.
//   - A worker deletes the packs, since the function api has no access to the media bucket. With the setting
//     pdf_cache.max_age_days it deletes packs of that age; 0 keeps all.
//   - If all are deleted, the page renditions of these documents are too: a page may be drawn with other fonts or in
//     another size than before.
//   - No documents are kept open: drawing a page opens the document anew. So the operations on handles report none, and
//     close none.
//
// Tables: reads page_pack, book, setting.
package pdfcache

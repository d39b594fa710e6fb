// Package measure reads the pixel sizes of pages. The analysis of an archive reads its end and its cover, so it knows
// the sizes of few pages; a client that shows double pages needs all.
//
//   - The list of a book's pages queues a task of type measure_pages if sizes are unknown and readable (package book);
//     one per book at a time.
//   - The task reads the first bytes of each such page: one ranged request, a second one if the header is further back,
//     a third one if it is behind a printer's colour profile. It never reads a whole page.
//   - Pages that only a page pack makes cheap are read from the pack; without a pack they are skipped.
//   - It stores the size, or -1 if the page has none that it understands: then the page is not read again until the
//     next analysis rewrites the index.
//   - Sizes belong to the analysed version of the file. If the book has another by now, nothing is stored; if its file
//     turns out to have changed, its analysis is queued.
//
// Tables: writes widths and heights of page_index; reads book, library, page_pack.
package measure

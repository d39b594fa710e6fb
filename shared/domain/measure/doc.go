// Package measure reads the sizes of pages in pixels. The analysis of an archive reads its end and its cover, so it
// knows the sizes of few pages; a client that shows double pages needs them all.
//
//   - The list of a book's pages queues a task of type measure_pages where sizes are unknown that can be read (package
//     book); one for each book at a time.
//   - The task reads the first bytes of each such page: one ranged request, a second one where the header is further
//     back, a third one behind the colour profile of a printer. No page is read whole.
//   - Pages that only a page pack gives that cheaply are read from the pack; while there is none they are skipped.
//   - What is stored is the size, or -1 where the page states none that is understood here: the page is not read again
//     until the analysis writes the index anew.
//   - Sizes belong to the version of the file that was analysed. Where the book has another by now nothing is stored;
//     where its file turns out to be another, its analysis is queued.
//
// Tables: writes widths and heights of page_index; reads book, library, page_pack.
package measure

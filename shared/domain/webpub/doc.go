// Package webpub describes a book as a Readium Web Publication Manifest (https://readium.org/webpub-manifest/), for
// readers that show e-books document by document and comics page by page: what there is, in which order, with the
// addresses of the pages and of the files in the book. It stands below the prefix of the Komga-compatible interface
// (package komga), where such readers ask for it, and is answered by the function that reads books (package page).
//
// Tables: reads book, series, library, book_metadata, book_genre, genre, page_index and page_pack.
package webpub

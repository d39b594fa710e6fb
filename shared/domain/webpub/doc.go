// Package webpub describes a book as a Readium Web Publication Manifest (https://readium.org/webpub-manifest/), for
// clients that show e-books document by document and comics page by page: the reading order, and the URLs of the pages
// and of the files in the book. It is below the prefix of the Komga-compatible interface (package komga), where such
// clients expect it, and is served by the function that reads books (package page).
//
// Tables: reads book, series, library, book_metadata, book_genre, genre, page_index and page_pack.
package webpub

// Package upload gives out addresses to which books can be uploaded, for users who cannot reach the library's folder.
//
//   - The user's client sends the file to the store, to an address that is good for exactly one key below the library's
//     prefix, one size and one media type, for a quarter of an hour at most. Nothing passes through Longbox, which
//     never writes into a library by itself.
//   - Small files are one PUT, larger ones parts, completed or aborted by an operation. The store then tells
//     shared/domain/ingest, or the next scan finds the book.
//   - What the library would not take for a book is refused, but for the few files beside books (covers, package
//     documents, series.json, ComicInfo.xml); so is a book that exists, unless overwriting was asked for. The store
//     checks that again when the file arrives.
//   - Only libraries whose path is s3://… take uploads.
//
// Tables: upload; reads library, library_count, book, tenant.
package upload

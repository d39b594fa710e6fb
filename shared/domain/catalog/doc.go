// Package catalog shows the library to e-reader applications: as OPDS 1.2 (Atom, below /opds) and as OPDS 2.0 (JSON,
// below /opds/v2). Both have the same feeds; what one shows is read in one round trip, whichever version asks.
//
//   - Feeds have links that begin with a slash. Covers and files are those of the interface; single pages, whose
//     reading is progress, are answered by package rendition.
//   - Without a credential a request below /opds is answered with a challenge, since readers send a user name and
//     password only then (httpapi).
//   - What a feed shows needs the permission that the same list of the interface needs. A search shows series only to
//     who may read series.
//
// Tables: reads library, library_count, series, book, book_metadata, page_index, progress, collection,
// collection_member and setting.
package catalog

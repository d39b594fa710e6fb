// Package catalog serves the library to e-reader applications: as OPDS 1.2 (Atom, below /opds) and as OPDS 2.0 (JSON,
// below /opds/v2). Both have the same feeds. A feed takes one round trip in either version.
//
//   - Links in feeds begin with a slash. Covers and files are those of the API; package rendition serves single pages,
//     whose requests count as progress.
//   - A request below /opds without a credential gets a challenge, since clients send user name and password only then
//     (httpapi).
//   - A feed requires the same permission as the corresponding list of the API. A search shows series only to callers
//     who may read series.
//
// Tables: reads library, library_count, series, book, book_metadata, page_index, progress, collection,
// collection_member and setting.
package catalog

// Package komga serves clients of Komga, another library server for comics that many readers support: below a path
// prefix that each tenant chooses (setting komga_api.prefix), in Komga's formats. Without a prefix it is off, and its
// paths answer 404.
//
//   - Packages series and book select and order what is listed; this package only converts the format. A response takes
//     one round trip. Package rendition serves covers, pages and files.
//   - Lists count pages from 0 and contain content and the paging fields of a Spring server; short lists are plain
//     arrays.
//   - The caller's want-to-read list appears as a collection and a read list beside the manual ones. What Longbox lacks
//     (one-shots) is empty. Unknown filters and condition fields are rejected as below /api/v1; an unknown sort order
//     falls back to the list's default.
//   - Writing progress works as below /api/v1.
//
// Tables: reads library, library_count, series, book, book_metadata, genre, tag, external_link, alternate_title,
// page_index, progress, wanted, collection and collection_member.
package komga

// Package komga answers the clients of Komga, another library server for comics, for which many readers are made: below
// a path prefix that each tenant chooses (setting komga_api.prefix), in the shapes that they know. Without a prefix it
// is off, and its paths lead nowhere.
//
//   - What is listed, and in which order, is asked of packages series and book; this one only shows it in another
//     shape, all of an answer in one round trip. Covers, pages and files are answered by package rendition.
//   - Lists count from page 0 and are made of content and what a Spring server says of it; short ones are plain arrays.
//   - What the caller wants to read is a collection and a read list beside those that people made; what Longbox does
//     not have (one-shots) is answered as empty. Filters and fields of conditions that are not known are refused as in
//     the interface below /api/v1; an unknown order is the list's own.
//   - Writing a reader's progress is what it is in the interface below /api/v1.
//
// Tables: reads library, library_count, series, book, book_metadata, genre, tag, external_link, alternate_title,
// page_index, progress, wanted, collection and collection_member.
package komga

// Package reference stores what other services know about series and books: alternate titles, ids, pages and ratings.
//
//   - A series or book has one id, one page and one rating per service: a new one replaces the old one.
//   - References from files (ids of EPUB, PDF and OPF, the page in ComicInfo.xml, alternate titles) come back with the
//     next analysis, except titles that people have locked.
//   - A reference is removed by its id, or by the name of its service.
//
// Tables: alternate_title, alternate_title_fill, external_id, external_link, external_rating; updated_at of series and
// book.
package reference

// Package reference keeps what series and books are called and thought of elsewhere: other titles of a series, ids and
// pages of other services, and how their readers rate it.
//
//   - Of each service a series or book has one id, one page and one rating: another takes its place.
//   - What files say (ids of EPUB, PDF and OPF, the page that ComicInfo.xml names, other titles) comes back with the
//     next analysis. Titles do not where people have locked them.
//   - One is taken away by its id, or by the name of its service.
//
// Tables: alternate_title, alternate_title_fill, external_id, external_link, external_rating; updated_at of series and
// book.
package reference

// Package duplicate finds books with the same content (groups of the same fingerprint in all libraries of a tenant) and
// series that are likely the same (of one library with the same normalised title, or of any libraries with the same id
// at a source that the tenant trusts). It reads only what the analysis has stored.
//
//   - A task finds the groups, by request or by the schedule of the settings. A list reads from the books themselves
//     which are in a group now: a book that is gone is no duplicate any more, and a group of one is not shown. The same
//     holds for series.
//   - A group of books that somebody dismissed is shown again when its books are others; one of series, when others
//     join.
//
// Tables: duplicate, series_duplicate; reads book, series, library, external_id, setting.
package duplicate

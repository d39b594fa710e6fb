// Package duplicate finds books with the same content, groups of the same fingerprint over all libraries of a tenant, and
// series that are likely the same: of one library with the same normalised title, or of any with the same id at a source
// that the tenant trusts. Nothing is read for it but what the analysis has stored.
//
//   - A task finds the groups, by request or by the schedule of the settings; which books are in one now, a list asks the
//     books themselves, so that a book that is gone is no duplicate any more, and a group of one is not shown. So it is
//     with series.
//   - A group of books that somebody dismissed is shown again when its books are others; one of series, when others join.
//
// Tables: duplicate, series_duplicate; reads book, series, external_id.
package duplicate

// Package duplicate finds books with the same content (groups with the same fingerprint across all libraries of a
// tenant) and series that are likely the same (with the same normalized title in one library, or with the same id at a
// trusted source in any libraries). It uses only what the analysis has stored.
//
//   - A task finds the groups, on request or by the schedule in the settings. Lists read the current members from the
//     books: a book that is gone is no duplicate any more, and a group of one is not shown. The same holds for series.
//   - A dismissed group of books is shown again when its members change, and to users who do not see every series, when
//     others join that they see; a dismissed group of series, when others join.
//
// Tables: duplicate, series_duplicate; reads book, series, library, external_id, setting.
package duplicate

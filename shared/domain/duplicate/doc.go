// Package duplicate finds books with the same content: groups of the same fingerprint, over all libraries of a tenant.
// Nothing is read for it but what the analysis has stored.
//
//   - A task finds the groups; which books are in one now, a list asks the books themselves, so that a book that is gone
//     is no duplicate any more, and a group of one is not shown.
//   - A group that somebody dismissed is shown again when its books are others.
//
// Tables: duplicate; reads book.
package duplicate

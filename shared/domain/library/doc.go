// Package library manages libraries: named folders that are scanned for books, each with its own rules for
// finding series, naming and numbering books, and with its own schedule.
//
//   - The path is s3://bucket/prefix or an absolute path, below one of the roots that the operator gave the
//     tenant. Nothing is ever written there.
//   - How series are found cannot change after creation: it decides which series exist.
//   - Strategies and formats that cannot be scanned yet are refused, not accepted and ignored.
//   - The schedule is kept as given, with the next time computed whenever it changes.
//   - Deleting a library cancels its tasks and takes its series, books and progress along, never its files.
//
// Tables: library; reads library_count; cancels task rows on deletion.
package library

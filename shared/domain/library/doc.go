// Package library manages libraries: named folders that are scanned for books, each with its own rules for
// finding series, naming and numbering books, and with its own schedule.
//
//   - The path is s3://bucket/prefix or an absolute path, below one of the roots that the operator gave the
//     tenant. Nothing is ever written there.
//   - How series are found cannot change after creation: it decides which series exist.
//   - How books are named and numbered may change: it takes effect for a book when the book is next analysed (a deep
//     scan analyses all of them), and never for a field that somebody locked.
//   - A preview runs the strategies over the listing alone, within limits, and stores nothing.
//   - The schedule is kept as given, with the next time computed whenever it changes.
//   - Deleting a library cancels its tasks and takes its series, books and progress along, never its files. Books whose
//     files have gone to another library follow them before; it is refused while another one is about to know such
//     files.
//
// Tables: library; reads library_root, library_count, setting, task and scan; deleting a library also cancels its task
// rows and marks and deletes its book rows; foreign keys take the rest along. What follows goes through package follow.
package library

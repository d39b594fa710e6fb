// Package library manages libraries: named folders that are scanned for books, each with its own rules for finding
// series, naming and numbering books, and with its own schedule.
//
//   - The path is s3://bucket/prefix or an absolute path, below one of the roots that the operator gave the tenant.
//     Nothing is ever written there.
//   - The series strategy cannot change after creation: it decides which series exist.
//   - The book and number strategies may change. A change reaches a book at its next analysis (a deep scan analyses all
//     books), and never a locked field.
//   - A preview runs the strategies over the listing alone, within limits, and stores nothing.
//   - The schedule is stored as given; the next time is computed whenever it changes.
//   - Deleting a library cancels its tasks and deletes its series, books and progress, never its files. Before that,
//     books whose files have moved to another library follow them. The deletion is refused while another library may
//     soon find such files.
//
// Tables: writes library; reads library_root, library_count, setting, task and scan. Deleting a library also cancels
// its task rows, and marks and deletes its book rows; foreign keys cascade to the rest. Books follow their files
// through package follow.
package library

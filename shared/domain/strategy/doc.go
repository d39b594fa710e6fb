// Package strategy decides which series a file belongs to, and how its book is named and numbered: six strategies for
// series, five for names, four for numbers. docs/library.md explains them to people, with examples.
//
//   - They are pure functions of the key below the library's root and of the file's metadata, if known. Scans,
//     notifications and previews use the same ones.
//   - A series is identified by Place.Path: a folder, or "/" and a name if files of several folders belong together.
//     The same key always gives the same place, so that a rescan finds its series again.
//   - If the metadata decides (Place.Later), a book begins in the series of its key, and moves after it was read.
//   - Configurations are validated when they are saved; both spellings of field names are accepted.
package strategy

// Package strategy says which series a file belongs to and how its book is called and numbered: six ways to find
// series, five to name books, four to number them. docs/library.md explains them to people and
// has the examples.
//
//   - Pure functions of the key below the library's root and, where it is known, of what the file says about itself.
//     A scan, an announced change and the preview of a scan use the same ones.
//   - A series is identified by Place.Path: a folder, or "/" and a name where files of several folders belong
//     together. The same key always gives the same place, so that a rescan finds its series again.
//   - Where the metadata decides (Place.Later), a book begins in the series its key names and moves when it was read.
//   - Configurations are checked when they are saved; both spellings of their members are understood.
package strategy

// Package analysis extracts from a file what Longbox stores about a book: its pages and their places, its cover, its
// metadata, or the reason why it cannot be read. It reads the end of the object with one request, and each entry that
// it needs with one ranged request, or none if the end contains it.
//
// Tables: none; scan stores the results.
package analysis

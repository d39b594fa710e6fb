// Package digest computes the hashes by which KOReader identifies books, for books without one or with a changed file.
//
// Tables: koreader_digest; reads book and library.
package digest

// Package digest makes what KOReader knows books by, for those that have none yet or another file by now.
//
// Tables: koreader_digest; reads book and library.
package digest

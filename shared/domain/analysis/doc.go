// Package analysis turns a file in a library into what Longbox knows of a book: its pages and where they lie,
// its cover, its metadata, or the reason why it cannot be read. It reads the end of the object with one request
// and the few entries it needs with one ranged request each, none where the end already held them.
//
// Tables: none; scan stores the results.
package analysis

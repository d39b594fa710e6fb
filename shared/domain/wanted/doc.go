// Package wanted keeps what each user wants to read: a queue of series and books, in the order in which they were added
// or in one of the user's own. Nobody sees another user's. Reading something does not take it out.
//
// Tables: wanted; reads series and book.
package wanted

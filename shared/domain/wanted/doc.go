// Package wanted stores each user's want-to-read list: series and books in the order in which they were added, or in
// the user's own order. Nobody sees another user's. Reading an item does not remove it.
//
// Tables: wanted; reads series and book.
package wanted

// Package progress keeps how far each user has read each book. Nobody sees another user's.
//
//   - A pass through a book begins with the first page turned and ends when the book is completed; each completed
//     pass leaves exactly one row in completion, whatever is sent how often. Turning back in a completed book
//     begins the next pass.
//   - A book completes by itself at its last page or at 98 %, unless the client says completed: false; what it
//     says counts.
//   - A page beyond the last of an analysed book is refused. A book without page images (a reflowable EPUB) has no
//     last page: its readers count positions of their own and send a percentage.
//   - Several books, or the books of several series, are marked in one statement, like those of one series; ids of nothing
//     that the caller's tenant has are left out.
//   - Clearing progress keeps the completions. A book whose file is gone keeps both for its return.
//
// Tables: progress, completion; reads book and page_index.
package progress

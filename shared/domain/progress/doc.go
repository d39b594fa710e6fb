// Package progress keeps how far each user has read each book. Nobody sees another user's.
//
//   - Everything that is said of a book becomes a reading session, and progress is what the sessions say: the last page and percentage
//     in the order in which the sessions ended, whenever they were told.
//   - A pass through a book ends when it is marked unread, and takes with it what was read before, not what was read since, whenever a
//     device tells of either; each pass that was completed leaves one row in completion, whatever is sent
//     how often, and also when the reader turns back.
//   - A book completes by itself at its last page or at 98 %. A page beyond the last of an analysed book is its last. A book without
//     page images (a reflowable EPUB) has no last page: its readers count positions of their own and send a percentage.
//   - Several books, or the books of several series, are marked in one statement, like those of one series; ids of nothing
//     that the caller's tenant has are left out.
//   - Marking unread clears the progress and keeps sessions and completions. A book whose file is gone keeps all for its return.
//   - The history is what completion has. What a user takes out of it stays there as forgotten, or its pass would be logged again.
//
// Tables: reading_session, progress, completion; reads book and page_index, locks account.
package progress

// Package progress stores how far each user has read each book. Nobody sees another user's.
//
//   - Whatever clients send about a book becomes reading sessions. Progress is computed from them: the last page and
//     percentage in the order in which the sessions ended, regardless of when they were sent.
//   - A pass through a book ends when the book is marked unread. A session belongs to the pass in which it was read,
//     regardless of when it is sent. Each completed pass leaves one row in completion, however often it is sent, and
//     also when the reader turns back.
//   - A book completes by itself at its last page or at 98 %. A page beyond the last one of an analysed book counts as
//     the last. A book without page images (a reflowable EPUB) has no last page: its clients count positions of their
//     own and send a percentage.
//   - What a client sends for a book that has turned out to be another (its heir) is recorded for the heir: the client
//     could not know.
//   - Books, and those of whole series, are marked 1,000 per transaction; ids that the caller's tenant does not have
//     are ignored. If a transaction fails, those before it stay.
//   - Marking unread clears the progress and keeps sessions and completions. A book whose file is gone keeps all of
//     them for its return.
//   - The history is the rows of completion. A row that a user removes stays, marked as forgotten; otherwise its pass
//     would be logged again. Of each book only the newest are kept; an older pass is not logged again.
//
// Tables: reading_session, progress, completion; reads book, book_heir, series and page_index, locks account.
package progress

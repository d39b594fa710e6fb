// Package preset keeps filters that users want again: a condition with words to search for and an order, for lists or
// for searches, of series or of books, in all libraries or in one. What is kept is what the lists would take. Nobody
// sees another user's.
//
// Tables: filter_preset; locks account.
package preset

// Package preset stores users' filters: a condition with search text and sort order, for lists or searches of series or
// books, in all libraries or in one. Only filters that the lists would accept are stored. Nobody sees another user's.
//
// Tables: filter_preset; locks account.
package preset

// Package collection stores collections, which are lists of series, and read lists, which are lists of books. All users
// of a tenant see the same ones. A collection with a condition is automatic: its members are the series that meet the
// condition for the caller.
//
// Tables: collection, collection_member; reads series and book.
package collection

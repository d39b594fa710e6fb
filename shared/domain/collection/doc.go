// Package collection keeps what people put together: collections of series, and read lists, which are the same of
// books. All users of a tenant see the same ones. A collection with a condition is automatic: its members are the
// series that meet it for whoever asks.
//
// Tables: collection, collection_member; reads series and book.
package collection

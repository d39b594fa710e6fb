// Package page serves the pages and files of books directly from the library's store. A page is one ranged GET of
// exactly its bytes, streamed; a conditional request needs no GET. The place of a page, and whether the caller may see
// it, cost one round trip to Postgres; both are cached in the process for a minute under the tenant's access
// generation, which changes with every change of users and keys, and with the place or content of a book's file. Each
// request to the store names the version of the object, so that a cached place in a file that has changed is noticed
// before that.
//
// Tables: reads book, library, page_index, page_pack, tenant, api_key.
package page

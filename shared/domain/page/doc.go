// Package page serves the pages and files of books directly from the library's store. A page is one ranged GET of
// exactly its bytes, streamed; a conditional request needs no GET. The place of a page and the caller's permission take
// one round trip to Postgres. Both are cached in the process for a minute, under the tenant's access generation, which
// changes with every change of users and keys, and of the place or content of a book's file. Each request to the store
// names the version of the object, so a cached place in a changed file is detected even before that.
//
// Tables: reads book, library, page_index, page_pack, tenant, api_key.
package page

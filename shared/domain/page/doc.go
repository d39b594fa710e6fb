// Package page serves the pages and files of books from where they lie in the library. A page is one ranged GET
// of exactly its bytes, streamed; a conditional request costs none. Where a page lies and whether the caller
// may see it is one round trip to Postgres; both are remembered in the process for a minute under the tenant's
// access generation, which changes with every user and key, and with books whose files are others or lie elsewhere. The version
// of the object is part of each request to the store, so that a remembered place in a file that changed is noticed before that.
//
// Tables: reads book, library, page_index, page_pack, tenant, api_key.
package page

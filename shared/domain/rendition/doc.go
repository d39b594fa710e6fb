// Package rendition makes smaller pictures, pages fitted into a box and covers, and delivers them and original pages:
// itself, or by a signed address at the CDN, whose misses it answers (docs/cdn.md). A rendition is an object of the
// media bucket. Its key holds an HMAC, with the tenant's secret, of what it shows: so it never changes, is found
// without a lookup, and cannot be guessed. One process at a time makes it. Covers are stored when they are first made,
// by the worker or on demand, and made again by tasks (package cover). A page is stored at its second request, since
// storing costs more than two renders.
//
// Tables: reads book, series, book_cover, series_cover, sidecar, library, page_index, setting, tenant; counts bytes in
// rendition_usage (app.keep_rendition).
package rendition

// Package rendition makes smaller pictures: pages fitted into a box, and covers. A rendition is an object of the
// media bucket whose key is an HMAC, with the tenant's secret, of what it shows: it never changes, is found
// without asking anybody, and cannot be guessed. Covers are stored when they are first made, by the worker or on
// demand; a page is stored when it is asked for the second time, since storing costs more than two renders.
//
// Tables: reads book, series, library, page_index, setting.
package rendition

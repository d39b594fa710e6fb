// Package pack stores the pages of books whose files have no random access: pages of a solid RAR or compressed 7z,
// which must be decompressed from the beginning, and pages of a PDF that must be drawn.
//
//   - A page pack is an uncompressed ZIP in the media bucket, below the tenant's prefix, with an unguessable name. A
//     page of it takes one ranged request, like a page of any other book.
//   - It is made once, by a task of type pack_book: when such a page is first requested, or by the scan if PAGE_PACKS
//     says so. Until then, pages are read from the book itself. A reader who opens many books gets few packs at once
//     (Requester).
//   - It is streamed: neither the book nor the pack is ever completely in memory or on disk.
//   - A task that must stop before the last page stores an incomplete pack, whose row says which pages are missing
//     (offset -2). It is readable. The next run copies it to another object and adds pages. A run that dies adds none.
//   - It counts towards the tenant's max_rendition_bytes, like renditions (app.keep_rendition). A book whose pack would
//     exceed the limit gets none, and is read as before.
//   - Its row stores the fingerprint of the content. When the book is gone or has other content, the scheduler deletes
//     the pack.
//
// Tables: page_pack; counts bytes in rendition_usage; reads book, library, page_index, tenant.
package pack

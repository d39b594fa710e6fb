// Package pack keeps the pages of books whose files have no random access: those of a solid RAR or a compressed 7z,
// which must be decompressed from the beginning, and those of a PDF that must be drawn.
//
//   - A page pack is an uncompressed ZIP in the media bucket, below the tenant's prefix, under a name that nobody can
//     guess. A page of it is one ranged request like that of any other book.
//   - It is made once, by a task of type pack_book: when such a page is first asked for, or by the scan where
//     PAGE_PACKS says so. Until it is there, pages are read from the book itself.
//   - It is streamed: neither the book nor the pack is ever in memory or on a disk here. Making it again gives the
//     same; a task that was interrupted begins anew.
//   - It counts in the tenant's max_rendition_bytes, together with renditions (app.keep_rendition); a book whose pack
//     would not fit gets none, and is read as before.
//   - Its row names the content it is of. When the book is gone or has other content, the scheduler removes it.
//
// Tables: page_pack; counts bytes in rendition_usage; reads book, library, page_index, tenant.
package pack

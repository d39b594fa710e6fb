// Package upload issues addresses for uploading books, for users who cannot access the library's folder.
//
//   - The client sends the file to the store. An address is valid for exactly one key below the library's prefix, one
//     size and one media type, for at most five minutes. No data passes through Longbox, which never writes to
//     a library itself.
//   - Small files take one PUT; larger ones are multipart uploads, completed or aborted by an operation. The store then
//     notifies shared/domain/ingest, or the next scan finds the book.
//   - Files that the library would not accept as books are rejected, except the few kinds of files beside books
//     (covers, package documents, series.json, ComicInfo.xml). So is a book that exists, unless overwriting was
//     requested. The store checks that again when the file arrives.
//   - Every library accepts uploads, unless the operator has turned them off (UPLOAD_MAX_BYTES=0), as where Longbox may
//     only read the library folders.
//   - The scheduler aborts what was not completed within a day, and the deletion of a library what is open there. A
//     bucket without a lifecycle rule would keep, and bill, the parts for ever.
//   - A multipart upload is completed where it was begun, even if the library has moved. But if the tenant no longer
//     has that place, it can only be aborted.
//
// Tables: upload; reads library, library_count, library_root, book, tenant.
package upload

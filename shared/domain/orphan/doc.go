// Package orphan finds and deletes unreferenced objects of a tenant in the media bucket. There are few, since every
// package cleans up after itself: covers, and page packs whose maker died before it wrote their rows, are swept once a
// day (cover.Sweep with Packs), other page packs are deleted with their books (pack.Expirer), page renditions expire,
// exports have their own clean-up. This package is for administrators who want to see and delete them now.
//
//   - Orphans are covers that nothing shows, page packs without a row, and page renditions of a book that is gone or
//     has other content. Objects younger than a day are not orphans: their row may not be written yet. Objects whose
//     keys Longbox would not write are ignored.
//   - References are queried right before each deletion of at most a thousand objects, as the tenant, from whom no
//     series is hidden. An object that becomes referenced in between is made again on request, like anything lost from
//     the bucket.
//   - A worker deletes, in a task with a checkpoint: the function api, which starts it, has no access to the media
//     bucket. The function media, which may list it, counts for the statistics, as long as a request may take. For a
//     larger tenant it counts a part, and says so.
//
// Tables: reads book, page_pack, tenant, and what package cover reads for it.
package orphan

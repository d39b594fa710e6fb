// Package orphan finds and deletes what lies in the media bucket for nobody: objects of a tenant that no row names.
// There are few of them, since who makes objects cleans up behind them: covers are gone through once a day
// (cover.Sweep), page packs go with their books (pack.Expire), smaller pages expire, exports have a clean-up of their
// own. This package is for an administrator who wants to know, and to have it done now; of page packs whose maker died
// between the object and its row nobody else knows.
//
//   - Orphans are covers that nothing shows, page packs without a row, and smaller pages of a book that is gone or has
//     other content. What is younger than a day is none: it may be being made, its row is written after it. What is not
//     written as Longbox writes it is left alone.
//   - Which keys are named is asked right before a thousand objects at most are deleted, in the tenant's own name, from
//     whom no series is hidden. What comes to be named in the moment between is made again when somebody asks for it,
//     as whatever was lost from the bucket is.
//   - A worker deletes, in a task that keeps its place: the function api, which starts it, has no right in the media
//     bucket. The function media, which may list it, counts for the statistics, as long as a request may take; of a
//     tenant with more than that it counts a part, and says so.
//
// Tables: reads book, page_pack, tenant, and what package cover reads for it.
package orphan

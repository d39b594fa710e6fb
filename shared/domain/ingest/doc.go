// Package ingest receives the store's notifications about created and removed objects, and lets the scanner check these
// objects: a book appears seconds after its upload, without a scan.
//
//   - A notification only says where to look; the current state of the store decides. So notifications may be lost,
//     repeated, late or out of order, and a scan may run at the same time.
//   - An object belongs to every active library, of any active tenant, whose bucket and prefix contain it. Other
//     objects are dropped, and those that are neither books nor sidecars of the library.
//   - Notifications that arrive during processing are collected and processed together: the objects of one library in
//     one transaction.
//   - A malformed notification is rejected, so that it ends in the dead-letter queue, where it is noticed.
//
// Tables: reads library and tenant over all tenants; shared/domain/scan/scanner writes.
package ingest

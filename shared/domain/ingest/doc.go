// Package ingest receives the store's notifications that objects were created or removed, and has the scanner look at
// these objects: a book appears seconds after its upload, without a scan.
//
//   - A notification only says where to look. What the store has now decides, so that notifications may be lost,
//     repeated, late or in any order, and a scan may run at the same time.
//   - An object belongs to every active library, of any active tenant, whose bucket and prefix it lies in; other
//     objects, and those that are neither books nor sidecars of the library, are dropped.
//   - Notifications that arrive while others are being worked on are taken together afterwards: the objects of one
//     library in one transaction.
//   - A body that is no notification is refused, so that it ends in the dead-letter queue where it is seen.
//
// Tables: reads library and tenant over all tenants; shared/domain/scan/scanner writes.
package ingest

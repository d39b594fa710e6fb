// Package scan is what people and schedules see of scans: starting and cancelling them, their state, what is left to do
// when a scan has ended (Settler), and removing for good the books that scans found gone. Package scanner does the
// work; nothing here links what reads books.
//
// Tables: scan, written by scanner too; writes next_scan_at, last_scanned_at and looked_at of library, and of a scan's task
// its progress and result; reads book, series, setting and tenant.
package scan

// Package scan is the part of scans that people and schedules use: starting and cancelling them, their status, what
// follows the end of a scan (Settler), and permanently deleting the books that scans found gone. Package scanner does
// the work; nothing here links what reads books.
//
// Tables: scan, written by scanner too; writes next_scan_at, last_scanned_at and looked_at of library, and of a scan's
// task its progress and result; reads book, series, setting and tenant.
package scan

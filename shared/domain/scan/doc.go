// Package scan is what people and schedules see of scans: starting, their state, cancelling. Package scanner does
// the work; nothing here links what reads books.
//
// Tables: scan, written by scanner too.
package scan

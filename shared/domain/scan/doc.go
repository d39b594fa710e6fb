// Package scan is what people and schedules see of scans: starting, their state, cancelling, what is left to do when one has
// ended (Settler), and removing for good what they found gone. Package scanner does the work; nothing here links what reads books.
//
// Tables: scan, written by scanner too.
package scan

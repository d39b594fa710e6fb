// Package owner says what series and books differ in for slices that give both the same: covers (package cover), genres
// and tags (taxonomy), and what they are called elsewhere (reference).
//
// Tables: none.
package owner

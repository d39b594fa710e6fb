// Package rating keeps what each user thinks of a series: 1 to 100, with notes that nobody else sees. Others see the
// average. Analysis and resets of a series leave ratings alone.
//
// Tables: series_rating; reads series.
package rating

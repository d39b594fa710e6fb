// Package rating stores each user's rating of a series: 1 to 100, with private notes. Others see the average. Analysis
// and resets of a series leave ratings alone.
//
// Tables: series_rating; reads series.
package rating

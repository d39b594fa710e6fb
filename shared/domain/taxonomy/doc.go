// Package taxonomy keeps the genres and tags of series: what there is of them, and what people change of one series or
// of several. What the files of a series name is added by its analysis, unless somebody has locked the set.
//
//   - Names are the same in upper and lower case; the first spelling stays.
//   - What no series has any more is in no list. Its row stays until an administrator cleans up.
//   - Who adds a name holds its row. A clean-up waits for that, and looks again whether any series has it.
//   - A change of several series takes their libraries' turns before it locks them, as a scan does (docs/decisions.md).
//
// Tables: genre, tag, series_genre, series_tag; updated_at of series.
package taxonomy

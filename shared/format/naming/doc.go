// Package naming extracts information about a book from its file name, and normalises names and titles for sorting and
// searching.
//
//   - Detect handles the naming styles in use: markers of volumes, chapters and issues in a dozen languages, standalone
//     numbers, years, counts, ranges, fractions, revisions, kinds, groups. testdata/names.txt lists names with their
//     results; it is the specification.
//   - Volume and chapter come only from a marker. A standalone number only gives a Number.
//   - The time is proportional to the length of the name, for any input: expressions are RE2, and a name longer than an
//     object key is truncated.
package naming

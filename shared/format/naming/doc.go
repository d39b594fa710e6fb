// Package naming reads what the name of a file says about a book and puts names and titles into the forms that
// sorting and searching need.
//
//   - Detect reads a name in the styles that are found in the wild: markers of volumes, chapters and issues in a
//     dozen languages, numbers that stand alone, years, counts, ranges, fractions, revisions, kinds, groups.
//     testdata/names.txt lists names and what they mean; it is the specification.
//   - Volume and chapter come only from a marker; a number that stands alone is a number and nothing else.
//   - A name costs time in proportion to its length, whatever it is: expressions are RE2, and what is longer than
//     a key of an object can be is cut.
package naming

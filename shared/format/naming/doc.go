// Package naming reads what the name of a file says about a book (volume,
// chapter, number) and puts names and titles into the forms that sorting and
// searching need.
package naming

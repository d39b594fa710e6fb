// Package content reads single entries of books' files, however the file holds them: from a range of their own by
// one request, by decompressing what stands before them, or by drawing a page. Package analysis finds the entries,
// package page and package rendition show them, package pack keeps those that are costly.
//
// Tables: none.
package content

package koreader

import "testing"

// Clients name a document of an e-book in different ways.
func TestDocument(t *testing.T) {
	t.Parallel()
	k := &book{Spine: []string{"OPS/text/one.xhtml", "OPS/a b.xhtml", "OPS/resource/three.xhtml"}}
	for href, want := range map[string]int{
		"OPS/text/one.xhtml": 1, "/OPS/a%20b.xhtml": 2, "text/one.xhtml#p": 1, "a%20b.xhtml": 2, "three.xhtml": 3, "resource/three.xhtml": 3,
		"https://books.example.org/komga/api/v1/books/0/resource/OPS/a%20b.xhtml": 2,
		"/komga/api/v1/books/0/resource/OPS/resource/three.xhtml":                 3,
		"https://books.example.org/komga/api/v1/books/0/resource/OPS/none.xhtml":  0,
		"https://books.example.org/komga/api/v1/books/0/pages/1":                  0,
		"one": 0, "%zz": 0, "": 0,
	} {
		if got := k.document(href); got != want {
			t.Errorf("%q: document %d, want %d", href, got, want)
		}
	}
}

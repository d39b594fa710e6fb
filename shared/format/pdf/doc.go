// Package pdf reads PDF documents in an object store, in small ranges: the number of pages, the metadata, and which
// pages are one JPEG image, whose bytes are then a range of the object. It draws nothing.
//
// References are to ISO 32000-1. Documents are untrusted: objects, nesting, streams and pages are checked against
// Limits. Documents that need a password are refused. If the cross-reference table is wrong, the document is read
// completely, once, to find its objects, as viewers do.
package pdf

import (
	"bytes"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/internal/limit"
)

// Limits for a document. A field that is zero or less means its default.
type Limits struct {
	Objects     int   `env:"PDF_MAX_OBJECTS" envDefault:"500000"`    // entries of the cross-reference table
	Pages       int   `env:"PDF_MAX_PAGES" envDefault:"20000"`       // pages
	StreamBytes int64 `env:"PDF_MAX_STREAM" envDefault:"16777216"`   // one stream of structure, unpacked
	Requests    int   `env:"PDF_MAX_READS" envDefault:"100000"`      // objects that are read
	RepairBytes int64 `env:"PDF_MAX_REPAIR" envDefault:"1073741824"` // a damaged document, which is read completely
}

// Validate returns an error that names the first setting out of bounds. The zero value stands for the defaults.
func (l Limits) Validate() error { return limit.Check(l) }

// withDefaults fills unset fields with limits that fit every real book known to us.
func (l Limits) withDefaults() Limits {
	return Limits{
		Objects:     limit.Or(l.Objects, 500_000),
		Pages:       limit.Or(l.Pages, 20_000),
		StreamBytes: limit.Or(l.StreamBytes, 16<<20),
		Requests:    limit.Or(l.Requests, 100_000),
		RepairBytes: limit.Or(l.RepairBytes, 1<<30),
	}
}

const (
	maxDepth = 64   // nesting of arrays and dictionaries
	maxTree  = 1000 // depth of the page tree: some programs make it a chain; PDFium draws none that is 1024 deep
)

// headBytes is the range in which the document's signature must start: some programs write something before it.
const headBytes = 1024

// Is reports whether a file that starts with head is a PDF document.
func Is(head []byte) bool {
	return bytes.Contains(head[:min(len(head), headBytes)], []byte("%PDF-"))
}

// Document is the information about a document.
type Document struct {
	Pages       []Page
	Info        Info
	Fingerprint string // of the cross-reference table and size
}

// Page is one page. If JPEG is true, the page shows exactly one image, whose file is the Length bytes at Offset.
type Page struct {
	Number         int // from 0, as PDFium counts: a listed but missing page counts too
	JPEG           bool
	Offset, Length int64
	Width, Height  int // pixels of that image
}

func damaged(format string, args ...any) error {
	return archive.Errorf(archive.Corrupt, "the PDF document is damaged: "+format, args...)
}

// Package pdf reads what a library server needs of PDF documents in an object store, in small ranges: how many pages
// there are, what the document says about itself, and which pages are one JPEG image, whose bytes then are a range of
// the object. It draws nothing.
//
// References are to ISO 32000-1. Documents are hostile until proven otherwise: objects, nesting, streams and pages
// are held against Limits. Documents that need a password are refused. One whose
// cross-reference table is wrong is read whole, once, to find its objects, as viewers do.
package pdf

import (
	"bytes"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/internal/limit"
)

// Limits bound what a document may ask of us. A field that is zero or less stands for its default.
type Limits struct {
	Objects     int   `env:"PDF_MAX_OBJECTS" envDefault:"500000"`    // entries of the cross-reference table
	Pages       int   `env:"PDF_MAX_PAGES" envDefault:"20000"`       // pages
	StreamBytes int64 `env:"PDF_MAX_STREAM" envDefault:"16777216"`   // one stream of structure, unpacked
	Requests    int   `env:"PDF_MAX_READS" envDefault:"100000"`      // objects that are looked at
	RepairBytes int64 `env:"PDF_MAX_REPAIR" envDefault:"1073741824"` // a damaged document, which is read whole
}

// Validate names the first setting that is out of bounds. The zero value stands for the defaults.
func (l Limits) Validate() error { return limit.Check(l) }

// withDefaults fills the fields that are not set with limits that fit every real book known to us.
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
	maxDepth = 64   // of arrays in dictionaries in arrays
	maxTree  = 1000 // of the tree of pages: some programs make it a chain; PDFium draws none that is 1024 deep
)

// headBytes is where the mark of a document may stand at the latest: some programs write something before it.
const headBytes = 1024

// Is tells whether a file that begins with head is a PDF document.
func Is(head []byte) bool {
	return bytes.Contains(head[:min(len(head), headBytes)], []byte("%PDF-"))
}

// Document is what was read of a document.
type Document struct {
	Pages       []Page
	Info        Info
	Fingerprint string // of its cross-reference table and size
}

// Page is one page. Where JPEG is true, the page shows exactly one image, whose file is Length bytes from Offset.
type Page struct {
	Number         int // from 0, as PDFium counts: a page that is listed but missing has one too
	JPEG           bool
	Offset, Length int64
	Width, Height  int // pixels of that image
}

func damaged(format string, args ...any) error {
	return archive.Errorf(archive.Corrupt, "the PDF document is damaged: "+format, args...)
}

// Package epub reads EPUB 2 and 3: the metadata in the package document, the cover, and the page images of a book that
// consists of images.
//
// It uses a directory of package archive and reads single entries through a function, so that over an object store
// every entry costs one request. A reflowable book costs two (container.xml and the package document), rarely three. A
// book of images costs one more per document of its spine.
//
// DRM-encrypted content (META-INF/encryption.xml) is not decrypted, but such a book still has metadata.
package epub

import (
	"errors"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/internal/limit"
	"github.com/longbox/longbox/shared/format/xmllimit"
)

// NoPackage is the error kind for an archive without container.xml or without the package document that it names: not
// an EPUB, or one that lost its OPF.
const NoPackage archive.Kind = "no_package"

// Limits for a publication. A field that is zero or less means its default.
type Limits struct {
	Documents     int             `env:"EPUB_MAX_DOCUMENTS" envDefault:"2000"`  // spine documents read to find page images
	DocumentBytes int64           `env:"EPUB_MAX_DOCUMENT" envDefault:"262144"` // one spine document, uncompressed
	TotalBytes    int64           `env:"EPUB_MAX_TOTAL" envDefault:"16777216"`  // all spine documents read, uncompressed
	Items         int             `env:"EPUB_MAX_ITEMS" envDefault:"20000"`     // items of manifest and spine
	TextBytes     int             `env:"EPUB_MAX_TEXT" envDefault:"65536"`      // one text of the metadata
	XML           xmllimit.Limits // every document
}

// Validate returns an error that names the first setting out of bounds. The zero value stands for the defaults.
func (l Limits) Validate() error { return errors.Join(limit.Check(l), l.XML.Validate()) }

// withDefaults fills unset fields with limits that fit every real book known to us.
func (l Limits) withDefaults() Limits {
	return Limits{
		Documents:     limit.Or(l.Documents, 2000),
		DocumentBytes: limit.Or(l.DocumentBytes, 256<<10),
		TotalBytes:    limit.Or(l.TotalBytes, 16<<20),
		Items:         limit.Or(l.Items, 20_000),
		TextBytes:     limit.Or(l.TextBytes, 64<<10),
		XML:           l.XML.WithDefaults(),
	}
}

// Publication is the metadata of an EPUB. Texts are plain, with single spaces, and "" if absent.
type Publication struct {
	Version      string // "2.0", "3.0"
	Title        string
	TitleSort    string // file-as of the title
	Subtitle     string
	Edition      string   // the title of the type edition
	Original     string   // the title in its original script or language, if marked so
	OriginalYear int      // of the original publication, 0 when unknown
	Rating       *float64 // calibre's, 0 to 10
	Rights       string
	Titles       []string  // all of them, in order
	Creators     []Creator // in display order; one per role of a person
	Contributors []Creator // the same
	Publisher    string
	Language     string // the first one, as written (BCP 47)
	Languages    []string
	Description  string // plain text, paragraphs separated by line breaks
	Year         int    // 0 when unknown
	Month        int    // 0 when unknown
	Day          int    // 0 when unknown
	Subjects     []string
	Identifiers  []Identifier
	ISBNs        []string // valid ISBN-10 and ISBN-13, digits only
	Series       string
	Position     *float64 // in the series
	Direction    string   // "ltr", "rtl" or ""
	FixedLayout  bool     // rendition:layout is pre-paginated for the whole book

	Cover      *archive.Entry  // an image, or nil
	Spine      []Item          // in reading order; items missing from the archive are left out
	SpineCount int             // items that the spine names
	Pages      []archive.Entry // the page images in reading order; empty for a book that is not made of images

	// Fingerprint is archive.OrderedFingerprint for a book of page images, else archive.ContentFingerprint.
	Fingerprint string
	Warnings    []string // what is missing or was dropped, and why
}

// Creator is a person or organisation in one role.
type Creator struct {
	Name   string
	FileAs string
	Role   string // MARC relator code (aut, ill, trl, …) in lower case, or ""
}

// Identifier is an identifier as written.
type Identifier struct {
	Scheme string
	Value  string
}

// Item is one document of the spine.
type Item struct {
	Entry        archive.Entry
	MediaType    string
	Linear       bool
	PrePaginated bool // by its own properties or those of the book
	Nav          bool // the table of contents
}

// Open reads the publication in an archive. read returns the plain bytes of an entry and is only called for entries
// within the limits. Problems of the book are an *archive.Error: NoPackage, Corrupt or TooLarge (XML that is malformed,
// declares a DTD, or exceeds its limits), NoPages (nothing to read), or the error of opening an entry. Other errors of
// read are passed on.
func Open(dir *archive.Directory, read func(archive.Entry) ([]byte, error), lim Limits) (*Publication, error) {
	b := newBook(dir, read, lim.withDefaults())
	if err := b.open(); err != nil {
		return nil, err
	}
	b.readMetadata()
	if err := b.readManifest(); err != nil {
		return nil, err
	}
	if b.readSpine(); b.pub.SpineCount == 0 {
		return nil, archive.Errorf(archive.NoPages, "%s: no spine, or an empty one: there is nothing to read; get a complete copy", b.opfPath)
	}
	if err := b.findPages(); err != nil {
		return nil, err
	}
	if err := b.findCover(); err != nil {
		return nil, err
	}
	b.pub.Fingerprint = archive.ContentFingerprint(dir.Entries)
	if len(b.pub.Pages) > 0 {
		b.pub.Fingerprint = archive.OrderedFingerprint(b.pub.Pages)
	}
	return b.pub, nil
}

// ReadPackage reads the metadata of a separate package document, as calibre writes it beside a book. If all of it is
// unusable, the error is an *archive.Error. Warnings use name for it.
func ReadPackage(document []byte, name string, lim Limits) (*Publication, error) {
	b := newBook(&archive.Directory{}, nil, lim.withDefaults())
	b.opfPath = name
	var err error
	if b.opf, err = b.document(name, document, xmllimit.Doctype); err != nil {
		return nil, err
	}
	if err := b.checkPackage(); err != nil {
		return nil, err
	}
	b.readMetadata()
	return b.pub, nil
}

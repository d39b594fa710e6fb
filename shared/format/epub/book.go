package epub

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/xmllimit"
)

const maxWarnings = 50

// book is the state of one Open.
type book struct {
	dir   *archive.Directory
	read  func(archive.Entry) ([]byte, error)
	lim   Limits
	names Names
	pub   *Publication

	opf      *xmllimit.Node
	opfPath  string
	items    map[string]*item // manifest, by id
	order    []*item          // manifest, in order
	meta     []*xmllimit.Node // the elements of the metadata
	refines  map[refinement][]*xmllimit.Node
	listed   map[listed]bool  // texts that addNew has added
	rendered map[int]document // documents read so far, by entry
	spent    int64            // bytes of documents read so far
}

// item is one item of the manifest.
type item struct {
	id, mediaType, properties string
	nav                       bool   // the table of contents
	name                      string // of the entry that its href names, whether it exists or not
	entry                     int    // index in the directory, or -1
}

func newBook(dir *archive.Directory, read func(archive.Entry) ([]byte, error), lim Limits) *book {
	return &book{
		dir: dir, read: read, lim: lim, pub: &Publication{}, names: NamesOf(dir),
		items: map[string]*item{}, refines: map[refinement][]*xmllimit.Node{}, listed: map[listed]bool{}, rendered: map[int]document{},
	}
}

// open reads container.xml and the package document (OCF 3.3, section 4.2.6.3.1).
func (b *book) open() error {
	at := b.find("META-INF/container.xml")
	if at < 0 {
		return archive.Errorf(NoPackage, "the file is not an EPUB: META-INF/container.xml is missing")
	}
	container, err := b.parse(b.dir.Entries[at], xmllimit.Doctype)
	if err != nil {
		return err
	}
	first := ""
	for _, roots := range container.Children {
		for _, n := range roots.Children {
			if n.Name != "rootfile" {
				continue
			}
			if first == "" || n.Attr("media-type") == "application/oebps-package+xml" && b.find(resolve("", first)) < 0 {
				first = n.Attr("full-path")
			}
		}
	}
	if first == "" {
		return archive.Errorf(NoPackage, "META-INF/container.xml names no package document (OPF)")
	}
	b.opfPath = resolve("", first)
	if at = b.find(b.opfPath); at < 0 {
		return archive.Errorf(NoPackage, "the package document %.200q that META-INF/container.xml names is missing", b.opfPath)
	}
	b.opf, err = b.parse(b.dir.Entries[at], xmllimit.Doctype)
	if err != nil {
		return err
	}
	b.noteProtection()
	return b.checkPackage()
}

// licences are the files of DRM schemes: those of Adobe, Apple and Readium. A book with obfuscated fonts only has none.
var licences = []struct{ name, of string }{
	{"META-INF/rights.xml", "Adobe"}, {"META-INF/sinf.xml", "Apple"}, {"META-INF/license.lcpl", "Readium"},
}

func (b *book) noteProtection() {
	if b.find("META-INF/encryption.xml") < 0 {
		return
	}
	for _, l := range licences {
		if b.find(l.name) >= 0 {
			b.warn("the book is protected by the DRM of %s: only apps with its licence can open it, and its cover may not be shown", l.of)
		}
	}
}

func (b *book) checkPackage() error {
	if b.opf.Name != "package" {
		return archive.Errorf(archive.Corrupt, "the root element of %s is %.40q, not package", b.opfPath, b.opf.Name)
	}
	b.pub.Version = b.opf.Attr("version")
	return nil
}

// parse reads a required document. One that is malformed near its end is used up to there.
func (b *book) parse(e archive.Entry, mode xmllimit.Mode) (*xmllimit.Node, error) {
	if e.Size > b.lim.XML.Bytes {
		return nil, archive.Errorf(archive.TooLarge, "bytes in %s: %d, the limit XML_MAX_BYTES is %d", e.Name, e.Size, b.lim.XML.Bytes)
	}
	raw, err := b.read(e)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", e.Name, err)
	}
	return b.document(e.Name, raw, mode)
}

func (b *book) document(name string, raw []byte, mode xmllimit.Mode) (*xmllimit.Node, error) {
	root, err := xmllimit.Parse(raw, mode, b.lim.XML)
	if root == nil {
		kind := archive.Corrupt
		if errors.Is(err, xmllimit.ErrTooLarge) {
			kind = archive.TooLarge
		}
		return nil, &archive.Error{Kind: kind, Msg: fmt.Sprintf("%s: %v", name, err), Err: err}
	}
	if err != nil {
		b.warn("%s: malformed, read only up to the error: %v", name, err)
	}
	return root, nil
}

func (b *book) warn(format string, args ...any) {
	if len(b.pub.Warnings) < maxWarnings {
		b.pub.Warnings = append(b.pub.Warnings, fmt.Sprintf(format, args...))
	}
}

func (b *book) find(name string) int { return b.names.Find(name) }

// resolve returns the name of the entry that a reference in the document base points to, or "" if none. It cannot leave
// the archive.
func resolve(base, ref string) string {
	ref, _, _ = strings.Cut(strings.TrimSpace(ref), "#")
	ref, _, _ = strings.Cut(ref, "?")
	if ref == "" || isRemote(ref) {
		return ""
	}
	if plain, err := url.PathUnescape(ref); err == nil {
		ref = plain
	}
	ref = strings.ReplaceAll(ref, `\`, "/")
	if !strings.HasPrefix(ref, "/") {
		ref = path.Dir(base) + "/" + ref
	}
	return strings.TrimPrefix(path.Clean("/"+ref), "/")
}

// isRemote reports whether a reference starts with a scheme (RFC 3986, 3.1) or a host.
func isRemote(ref string) bool {
	if strings.HasPrefix(ref, "//") {
		return true
	}
	scheme, _, ok := strings.Cut(ref, ":")
	if !ok || scheme == "" {
		return false
	}
	for i, r := range strings.ToLower(scheme) {
		if letter := r >= 'a' && r <= 'z'; !letter && (i == 0 || !strings.ContainsRune("0123456789+-.", r)) {
			return false
		}
	}
	return true
}

// isImage reports whether an entry is an image that can be a page or a cover.
func (b *book) isImage(entry int, mediaType string) bool {
	if entry < 0 {
		return false
	}
	switch mediaType {
	case "image/svg+xml":
		return false
	case "image/jpeg", "image/jpg", "image/png", "image/gif", "image/webp", "image/avif", "image/jxl", "image/heic", "image/tiff", "image/bmp":
		return true
	}
	return archive.IsImage(b.dir.Entries[entry].Name)
}

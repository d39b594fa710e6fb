package page

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/epub"
	"github.com/longbox/longbox/shared/format/mediatype"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/flight"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Headers of an entry of an e-book. Its documents are untrusted: one that a browser opens directly runs no scripts and
// has an opaque origin.
const (
	resourceCache  = "private, max-age=86400"
	resourcePolicy = "sandbox; default-src 'self' data:; style-src 'self' 'unsafe-inline'; script-src 'none'; object-src 'none'; frame-src 'none'"
)

// Resource sends one entry of an e-book by its name in the archive, for readers that show the book document by
// document. It takes one ranged GET, plus one for the archive's directory if that is not cached in the process.
func (s *Server) Resource(w http.ResponseWriter, r *http.Request, i *Index, name string) error {
	if err := i.ebook(); err != nil {
		return err
	}
	tag := i.resourceTag(name, "")
	packed := i.resourceTag(name, "gz")
	w.Header().Add("Vary", "Accept-Encoding")
	gzip := httpapi.AcceptsGzip(r)
	if gzip && NotModified(w, r, packed, resourceCache) || NotModified(w, r, tag, resourceCache) {
		return nil
	}
	dir, err := s.directory(r.Context(), i)
	if err != nil {
		return s.unopened(r, i, err)
	}
	at := dir.names.Find(name)
	if at < 0 || dir.Entries[at].Symlink {
		return fault.New(fault.NotFound, "The book contains no file %.200q", name)
	}
	e := dir.Entries[at]
	if gzip = gzip && e.Method == archive.Deflated && e.Size > 0; gzip {
		tag = packed
	}
	send := func(kind string) {
		h := w.Header()
		describe(h, tag, kind, e, gzip)
		h.Set("Cache-Control", resourceCache)
		h.Set("Content-Security-Policy", resourcePolicy)
	}
	if r.Method == http.MethodHead || e.Size == 0 {
		send(resourceType(e.Name, ""))
		return nil
	}
	if e.Heavy() {
		give, err := s.Hold(r.Context(), e.Size, Patience)
		if err != nil {
			return err
		}
		defer give()
		data, err := s.unpacked(r.Context(), i, e)
		if err != nil {
			return s.unopened(r, i, err)
		}
		send(resourceType(e.Name, mediatype.Detect(data)))
		CopyHeld(w, r, data)
		return nil
	}
	give, err := s.turn(r.Context(), s.Content.Store)
	if err != nil {
		return s.explain(r, i, err)
	}
	defer give()
	body, err := s.Content.Store.Range(r.Context(), i.Bucket, i.Object(), e.Offset, e.Length)
	if err != nil {
		return s.unopened(r, i, err)
	}
	defer body.Close()
	plain, seen, err := open(e, body, gzip, s.Content.Limits)
	if err != nil {
		return s.explain(r, i, err)
	}
	send(resourceType(e.Name, seen))
	Copy(w, r, plain)
	drain(body)
	return nil
}

// unpacked returns a file that is heavy to unpack. It is held in memory, since few are unpacked at a time and a client
// may read slowly.
func (s *Server) unpacked(ctx context.Context, i *Index, e archive.Entry) ([]byte, error) {
	within, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	var data []byte
	give, err := s.costly.slots.take(within, httpapi.TenantOf(ctx).ID, auth.AccountOf(ctx), 1)
	if err == nil {
		defer give()
		data, err = s.Content.Bytes(within, i.Bucket, i.Object(), e)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fault.Wrap(err, fault.Unavailable, "Too many files are being unpacked; try again shortly").After(retryAfter)
	}
	return data, err
}

// Contents returns the structure of an e-book, from the cache or by three or four ranged GETs. The result is shared and
// must not be changed.
func (s *Server) Contents(r *http.Request, i *Index) (*epub.Contents, error) {
	if err := i.ebook(); err != nil {
		return nil, err
	}
	c, err := s.contents(r.Context(), i)
	if err != nil {
		return nil, s.unopened(r, i, err)
	}
	return c, nil
}

func (s *Server) contents(ctx context.Context, i *Index) (*epub.Contents, error) {
	dir, err := s.directory(ctx, i)
	if err != nil {
		return nil, err
	}
	if c := s.books.contents(dir); c != nil {
		return c, nil
	}
	return s.books.structures.Do(ctx, i.fileTag(), Patience, func(ctx context.Context, begin func()) (*epub.Contents, error) {
		begin()
		if c := s.books.contents(dir); c != nil { // a concurrent request has read it
			return c, nil
		}
		read := func(e archive.Entry) ([]byte, error) { return s.Content.Bytes(ctx, i.Bucket, i.Object(), e) }
		c, err := epub.ReadContents(dir.Directory, read, s.Content.Publications)
		if err != nil {
			return nil, err
		}
		s.books.keepContents(i.fileTag(), dir, c)
		return c, nil
	})
}

// ebook returns an error if the book is no e-book, or cannot be read as one.
func (i *Index) ebook() error {
	switch {
	case !strings.EqualFold(i.Format, "epub"):
		return fault.New(fault.NotFound, "The book is not an EPUB; read it by its pages")
	case i.Error != nil:
		return fault.New(fault.NotFound, "The book cannot be read: %s", *i.Error)
	}
	return nil
}

// resourceTag returns the ETag of an entry of this version of the file, in a form; "" is uncompressed.
func (i *Index) resourceTag(name, form string) string {
	sum := sha256.Sum256([]byte(i.fileTag() + form + "/" + name))
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

// maxRemembered limits the archive entries, and lines of e-book structure, that a process caches, at some 200 bytes
// each.
const maxRemembered = 50_000

// directories caches where the entries of e-books are stored: a reader requests dozens of one book, several at once.
type directories struct {
	reading    flight.Group[*directory] // share the work on cache misses
	structures flight.Group[*epub.Contents]
	mu         sync.Mutex
	known      map[string]*directory // by file version
	entries    int
}

type directory struct {
	*archive.Directory
	names    epub.Names
	contents *epub.Contents // nil until it was requested
}

func (d *directories) find(version string) *directory {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known[version]
}

func (d *directories) keep(version string, dir *directory) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.entries += len(dir.Entries); d.known == nil || d.entries > maxRemembered {
		d.known, d.entries = map[string]*directory{}, len(dir.Entries)
	}
	d.known[version] = dir
}

func (d *directories) contents(of *directory) *epub.Contents {
	d.mu.Lock()
	defer d.mu.Unlock()
	return of.contents
}

// keepContents caches the structure of a book, if its directory is cached and there is room.
func (d *directories) keepContents(version string, of *directory, c *epub.Contents) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := lines(c); d.known[version] == of && d.entries+n <= maxRemembered {
		of.contents = c
		d.entries += n
	}
}

// lines counts the items and places of an e-book, and a place with a long text as several.
func lines(c *epub.Contents) int {
	n := len(c.Spine) + len(c.Resources)
	var count func(places []epub.Place)
	count = func(places []epub.Place) {
		n += len(places)
		for _, p := range places {
			n += (len(p.Title) + len(p.Anchor)) / 200
			count(p.Places)
		}
	}
	for _, list := range [][]epub.Place{c.TOC, c.Landmarks, c.PageList} {
		count(list)
	}
	return n
}

// directory returns the directory of a book's archive, from the cache or by one ranged GET of the archive's end (two if
// the directory is long).
func (s *Server) directory(ctx context.Context, i *Index) (*directory, error) {
	version := i.fileTag()
	if dir := s.books.find(version); dir != nil {
		return dir, nil
	}
	return s.books.reading.Do(ctx, version, Patience, func(ctx context.Context, begin func()) (*directory, error) {
		begin()
		if dir := s.books.find(version); dir != nil { // a concurrent request has read it
			return dir, nil
		}
		o := i.Object()
		fetch := func(offset, n int64) ([]byte, error) { return s.Content.Store.ReadRange(ctx, i.Bucket, o, offset, n) }
		n := min(o.Size, archive.TailBytes)
		tail, err := fetch(o.Size-n, n)
		if err != nil {
			return nil, err
		}
		found, err := archive.ReadDirectory(tail, o.Size, s.Content.Limits, fetch)
		if err != nil {
			return nil, err
		}
		dir := &directory{Directory: found, names: epub.NamesOf(found)}
		s.books.keep(version, dir)
		return dir, nil
	})
}

// resourceTypes maps extensions to the types of e-book resources besides pictures (EPUB 3.3, section 3.2).
var resourceTypes = map[string]string{".xhtml": xhtml, ".html": xhtml, ".htm": xhtml, ".css": "text/css", ".js": "text/javascript", ".svg": mediatype.SVG,
	".ncx": "application/x-dtbncx+xml", ".opf": "application/oebps-package+xml", ".smil": "application/smil+xml", ".xml": "application/xml", ".pls": "application/pls+xml",
	".ttf": "font/ttf", ".otf": "font/otf", ".woff": "font/woff", ".woff2": "font/woff2",
	".mp3": "audio/mpeg", ".m4a": "audio/mp4", ".ogg": "audio/ogg", ".opus": "audio/ogg", ".mp4": "video/mp4", ".m4v": "video/mp4", ".webm": "video/webm"}

const xhtml = "application/xhtml+xml"

// resourceType returns the type of an entry: by its first bytes for pictures, by its name for others.
func resourceType(name, seen string) string {
	if mediatype.Servable(seen) {
		return seen
	}
	if kind := resourceTypes[strings.ToLower(path.Ext(name))]; kind != "" {
		return kind
	}
	if kind := mediatype.ByExtension(name); mediatype.Servable(kind) {
		return kind
	}
	return "application/octet-stream"
}

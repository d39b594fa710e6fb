package analysis

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/comicinfo"
	"github.com/longbox/longbox/shared/format/epub"
	"github.com/longbox/longbox/shared/format/mediatype"
	"github.com/longbox/longbox/shared/platform/blob"
)

// Result is the analysis of one file.
type Result struct {
	Format         string // cbz, cbr, cb7, cbt, epub or pdf: what it is, whatever its name says
	Fingerprint    string
	Pages          []Page
	SpineCount     int            // for an EPUB without pages
	Cover          *archive.Entry // nil: no image to show
	CoverImage     []byte         // the cover's bytes, if requested
	Metadata       Metadata
	Number         *float64 // from the metadata
	Direction      string   // reading direction, or ""
	Genres         []string
	Tags           []string
	Link           string // web address from the metadata, or ""
	AgeRating      *int   // lowest age in the metadata
	ExternalID     string // ISBN
	ExternalSource string // source of ExternalID: epub, pdf or opf; "" if there is none
	Titles         []SeriesTitle
	Warnings       []string
}

// Page is one page image and its place in the file.
type Page struct {
	archive.Entry
	MediaType     string
	Width, Height int // pixels; 0 when unknown
}

// SeriesTitle is an alternate title of the series with its kind.
type SeriesTitle struct {
	Label string `json:"label"`
	Title string `json:"title"`
}

// Problem is the reason why a book cannot be read, worded for its owner.
type Problem struct {
	Type    string // format_detection, encrypted, unsupported, limit, zero_pages, parser, timeout, killed or other
	Message string
	Err     error
}

func (p *Problem) Error() string { return p.Message }

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Err }

// Options says what to read besides the index.
type Options struct {
	CoverImage bool
	// Without lists fingerprints whose cover exists already and is not read.
	Without []string
}

func (o Options) cover(r *Result) bool {
	return o.CoverImage && r.Cover != nil && !slices.Contains(o.Without, r.Fingerprint)
}

// File analyses one object. A *Problem is a property of the file; any other error means that the store could not be
// read, and that the file should be retried.
func File(ctx context.Context, reader *content.Reader, bucket string, listed blob.Object, o Options) (*Result, error) {
	src, err := openSource(ctx, reader, bucket, listed)
	if err != nil {
		return nil, explain(err)
	}
	c, err := src.open(listed.Key)
	if err != nil {
		return nil, explain(err)
	}
	if c.document == nil { // after a timeout, the sandbox may still be reading the document
		defer src.release()
	}
	res := &Result{}
	switch {
	case c.document != nil:
		res.readPDF(src, c.document)
	case c.isEPUB(listed.Key):
		err = res.readEPUB(src, c)
	default:
		err = res.readComic(src, c, o)
	}
	if err != nil {
		return nil, explain(err)
	}
	if o.cover(res) && res.CoverImage == nil {
		res.CoverImage, err = src.cover(*res.Cover)
		switch {
		case err == nil:
		case ctx.Err() == nil && errors.As(err, new(*archive.Undrawn)):
			res.warn("the cover was not drawn; it is drawn when somebody requests it: " + err.Error())
		case !errors.As(explain(err), new(*Problem)):
			return nil, err
		default:
			res.warn("the cover cannot be read: " + err.Error())
		}
	}
	res.measure(src)
	res.compose()
	return res, nil
}

// OwnCover is the cover if it is not page 1, else nil.
func (r *Result) OwnCover() *archive.Entry {
	if c := r.Cover; c != nil && (len(r.Pages) == 0 || r.Pages[0].Offset != c.Offset) {
		return c
	}
	return nil
}

// CoverPrint identifies the cover, as cover.Print does. The fingerprint of a book of pages tells neither which of them
// is the cover, nor a picture that is none of them; that of a text book tells all.
func (r *Result) CoverPrint() string {
	c := r.OwnCover()
	if c == nil || len(r.Pages) == 0 {
		return r.Fingerprint
	}
	return fmt.Sprintf("%s-%d-%d", r.Fingerprint, c.CRC32, c.Size)
}

func (r *Result) warn(text string) { r.Warnings = append(r.Warnings, text) }

func (r *Result) readComic(src *source, c *container, o Options) error {
	entries := archive.Pages(c.Entries)
	if err := archive.CheckPages(entries); err != nil {
		return err
	}
	r.Format = c.format
	if r.Fingerprint = c.Fingerprint; r.Fingerprint == "" {
		r.Fingerprint = archive.Fingerprint(entries)
	}
	r.setPages(entries)
	info, err := r.readTogether(src, c, o)
	if err == nil && info != nil {
		r.applyComicInfo(info)
	}
	return err
}

func (r *Result) setPages(entries []archive.Entry) {
	r.Pages = make([]Page, len(entries))
	for i, e := range entries {
		r.Pages[i] = Page{Entry: e, MediaType: mediatype.ByExtension(e.Name)}
	}
	if len(entries) > 0 {
		r.Cover = &entries[0]
	}
}

// measure sets the pixel sizes of pages whose headers have been read already.
func (r *Result) measure(src *source) {
	for i := range r.Pages {
		p := &r.Pages[i]
		if p.Width == 0 {
			p.Width, p.Height = src.size(p.Entry)
		}
	}
	if len(r.Pages) > 0 && r.Pages[0].Width == 0 && r.CoverImage != nil && r.Cover.Offset == r.Pages[0].Offset {
		r.Pages[0].Width, r.Pages[0].Height, _ = mediatype.Dimensions(r.CoverImage)
	}
}

// infoEntry returns ComicInfo.xml: in the root, else nearest to it.
func infoEntry(entries []archive.Entry) *archive.Entry {
	var found *archive.Entry
	for i, e := range entries {
		if !e.Directory && strings.EqualFold(path.Base(e.Name), "ComicInfo.xml") &&
			(found == nil || strings.Count(e.Name, "/") < strings.Count(found.Name, "/")) {
			found = &entries[i]
		}
	}
	return found
}

// readTogether reads ComicInfo.xml and, if reading is expensive, the cover in the same pass over the file. An invalid
// ComicInfo.xml is a warning, not a failure.
func (r *Result) readTogether(src *source, c *container, o Options) (*comicinfo.Info, error) {
	found := infoEntry(c.Entries)
	if found == nil {
		return nil, nil
	}
	lim := src.reader.Publications.XML.WithDefaults()
	if found.Size > lim.Bytes {
		r.warn(fmt.Sprintf("ComicInfo.xml was not read: it has %d bytes; the limit XML_MAX_BYTES is %d", found.Size, lim.Bytes))
		return nil, nil
	}
	var data []byte
	var err error
	together := o.cover(r) && r.Cover.Method == found.Method && !found.Direct()
	if together {
		var all [][]byte
		if all, err = src.entries([]archive.Entry{*found, *r.Cover}); err == nil {
			data, r.CoverImage = all[0], all[1]
		}
	}
	if !together || errors.As(explain(err), new(*Problem)) { // the problem may be the cover's
		data, err = src.entry(*found)
	}
	if err == nil {
		var info *comicinfo.Info
		if info, err = comicinfo.Parse(data, lim); err == nil {
			return info, nil
		}
	} else if p := new(Problem); !errors.As(explain(err), &p) {
		return nil, err
	}
	r.warn("ComicInfo.xml was not read: " + strings.TrimPrefix(err.Error(), "ComicInfo.xml: "))
	return nil, nil
}

func (r *Result) readEPUB(src *source, c *container) error {
	pub, err := epub.Open(&c.Directory, src.entry, src.reader.Publications)
	if err != nil {
		if errors.Is(err, &archive.Error{Kind: epub.NoPackage}) && hasOnlyImages(&c.Directory) {
			return r.readComic(src, c, Options{}) // a comic with the wrong extension
		}
		return err
	}
	r.Format = "epub"
	r.Fingerprint = pub.Fingerprint
	r.setPages(pub.Pages)
	r.SpineCount = pub.SpineCount
	if pub.Cover != nil {
		r.Cover = pub.Cover
	}
	r.applyEPUB(pub)
	return nil
}

func hasOnlyImages(dir *archive.Directory) bool {
	pages := len(archive.Pages(dir.Entries))
	documents := slices.ContainsFunc(dir.Entries, func(e archive.Entry) bool {
		ext := strings.ToLower(path.Ext(e.Name))
		return ext == ".opf" || ext == ".xhtml" || ext == ".html"
	})
	return pages > 0 && !documents
}

// explain turns errors of the format packages into a Problem; errors of the store pass through.
func explain(err error) error {
	var known *Problem
	var a *archive.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &a):
		return &Problem{Type: problemType(a.Kind), Message: message(a), Err: err}
	case errors.Is(err, blob.ErrChanged), errors.Is(err, blob.ErrRange):
		return &Problem{Type: "other", Message: "the file changed while it was read; scan again", Err: err}
	}
	return err
}

func problemType(k archive.Kind) string {
	switch k {
	case archive.NotArchive, epub.NoPackage:
		return "format_detection"
	case archive.Encrypted:
		return "encrypted"
	case archive.Unsupported:
		return "unsupported"
	case archive.TooLarge:
		return "limit"
	case archive.NoPages:
		return "zero_pages"
	}
	return "parser"
}

func message(a *archive.Error) string {
	if a.Kind == archive.NotArchive {
		return a.Msg + "; supported are EPUB, PDF, and ZIP, RAR, 7z and tar archives of images"
	}
	return a.Msg
}

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

// Result is what was found in one file.
type Result struct {
	Format         string // cbz, cbr, cb7, cbt, epub or pdf: what it is, whatever its name says
	Fingerprint    string
	Pages          []Page
	SpineCount     int            // of an EPUB without pages
	Cover          *archive.Entry // nil: no image to show
	CoverImage     []byte         // the cover's bytes, where they were asked for
	Metadata       Metadata
	Number         *float64 // in the metadata
	Direction      string   // reading direction, or ""
	Genres         []string
	Tags           []string
	Link           string // of the metadata's web address, or ""
	AgeRating      *int   // the lowest age that the metadata names
	ExternalID     string // an ISBN
	ExternalSource string // what names it: epub, pdf or opf; "" without one
	Titles         []SeriesTitle
	Warnings       []string
}

// Page is one page image and where it lies.
type Page struct {
	archive.Entry
	MediaType     string
	Width, Height int // pixels; 0 when unknown
}

// SeriesTitle is another title of the series, and of what kind.
type SeriesTitle struct {
	Label string `json:"label"`
	Title string `json:"title"`
}

// Problem is a reason why a book cannot be read, in words for its owner.
type Problem struct {
	Type    string // format_detection, encrypted, unsupported, limit, zero_pages, parser, timeout, killed or other
	Message string
	Err     error
}

func (p *Problem) Error() string { return p.Message }

// Unwrap is the cause.
func (p *Problem) Unwrap() error { return p.Err }

// Options say what to read besides the index.
type Options struct {
	CoverImage bool
	// Without are fingerprints of contents whose cover is there already: it is not read.
	Without []string
}

func (o Options) cover(r *Result) bool {
	return o.CoverImage && r.Cover != nil && !slices.Contains(o.Without, r.Fingerprint)
}

// File analyses one object. A *Problem is a fact about the file; any other error means that the store could not
// be read, and that the file should be tried again.
func File(ctx context.Context, reader *content.Reader, bucket string, listed blob.Object, o Options) (*Result, error) {
	src, err := openSource(ctx, reader, bucket, listed)
	if err != nil {
		return nil, explain(err)
	}
	c, err := src.open(listed.Key)
	if err != nil {
		return nil, explain(err)
	}
	if c.document == nil { // one that is given up may be read by its sandbox for another moment
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
			res.warn("the cover was not drawn, it will be when somebody asks for it: " + err.Error())
		case !errors.As(explain(err), new(*Problem)):
			return nil, err
		default:
			res.warn("the cover cannot be read: " + err.Error())
		}
	}
	res.measure(src)
	return res, nil
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

// measure takes the pixel sizes of pages whose headers were read anyway.
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

// infoEntry is ComicInfo.xml: at the root, else the one nearest to it.
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

// readTogether reads ComicInfo.xml and, where that is dear, the cover in the same pass over the file. What is wrong
// with ComicInfo.xml is a warning, not a failed book.
func (r *Result) readTogether(src *source, c *container, o Options) (*comicinfo.Info, error) {
	found := infoEntry(c.Entries)
	if found == nil {
		return nil, nil
	}
	lim := src.reader.Publications.XML.WithDefaults()
	if found.Size > lim.Bytes {
		r.warn(fmt.Sprintf("ComicInfo.xml was not read: it has %d bytes, the limit XML_MAX_BYTES is %d", found.Size, lim.Bytes))
		return nil, nil
	}
	var data []byte
	var err error
	if list := []archive.Entry{*found}; o.cover(r) && r.Cover.Method == found.Method && !found.Direct() {
		var all [][]byte
		if all, err = src.entries(append(list, *r.Cover)); err == nil {
			data, r.CoverImage = all[0], all[1]
		}
	} else {
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
			return r.readComic(src, c, Options{}) // a comic under the wrong extension
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

// explain turns what the format packages say into a Problem; trouble of the store is passed on.
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
		return a.Msg + "; books are ZIP, RAR, 7z and tar archives of images, EPUB and PDF"
	}
	return a.Msg
}

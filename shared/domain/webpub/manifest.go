package webpub

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/longbox/longbox/shared/format/epub"
	"github.com/longbox/longbox/shared/format/mediatype"
	"github.com/longbox/longbox/shared/platform/fault"
)

// manifest is a Readium Web Publication Manifest. Every list is present, since some clients require it.
type manifest struct {
	Context      string   `json:"@context"`
	Metadata     metadata `json:"metadata"`
	Links        []link   `json:"links"`
	Images       []link   `json:"images"`
	ReadingOrder []link   `json:"readingOrder"`
	Resources    []link   `json:"resources"`
	TOC          []link   `json:"toc"`
	Landmarks    []link   `json:"landmarks"`
	PageList     []link   `json:"pageList"`
}

type link struct {
	Title    string `json:"title,omitempty"`
	Rel      string `json:"rel,omitempty"`
	Href     string `json:"href,omitempty"`
	Type     string `json:"type,omitempty"`
	Width    int    `json:"width,omitempty"`
	Height   int    `json:"height,omitempty"`
	Children []link `json:"children,omitempty"`
}

type metadata struct {
	Type         string   `json:"@type"`
	ConformsTo   string   `json:"conformsTo"`
	Title        string   `json:"title"`
	Identifier   string   `json:"identifier"`
	Modified     string   `json:"modified"`
	Published    string   `json:"published,omitempty"`
	Language     string   `json:"language,omitempty"`
	Description  string   `json:"description,omitempty"`
	Publisher    []string `json:"publisher,omitempty"`
	Author       []string `json:"author,omitempty"`
	Translator   []string `json:"translator,omitempty"`
	Editor       []string `json:"editor,omitempty"`
	Artist       []string `json:"artist,omitempty"`
	Illustrator  []string `json:"illustrator,omitempty"`
	Letterer     []string `json:"letterer,omitempty"`
	Penciler     []string `json:"penciler,omitempty"`
	Colorist     []string `json:"colorist,omitempty"`
	Inker        []string `json:"inker,omitempty"`
	Contributor  []string `json:"contributor,omitempty"`
	Subject      []string `json:"subject,omitempty"`
	Pages        int      `json:"numberOfPages,omitempty"`
	Progression  string   `json:"readingProgression,omitempty"`
	BelongsTo    belongs  `json:"belongsTo"`
	Presentation *layout  `json:"presentation,omitempty"`
	Rendition    *layout  `json:"rendition,omitempty"` // the former name of presentation
}

type belongs struct {
	Series []series `json:"series"`
}

type series struct {
	Name     string   `json:"name"`
	Position *float64 `json:"position,omitempty"`
}

type layout struct {
	Layout string `json:"layout"`
}

const profiles = "https://readium.org/webpub-manifest/profiles/"

// describe returns a manifest without reading order and resources.
func (b *book) describe(profile, kind, path string) *manifest {
	r := b.row
	m := &manifest{Context: "https://readium.org/webpub-manifest/context.jsonld",
		Metadata: metadata{Type: "http://schema.org/Book", ConformsTo: profiles + profile, Title: r.Title, Identifier: "urn:uuid:" + b.index.BookID.String(),
			Modified: r.UpdatedAt.UTC().Format(time.RFC3339), Published: r.published(), Language: r.Language, Description: r.Summary, Subject: r.Genres,
			Author: r.by("author", "co_author", "writer"), Translator: r.by("translator"), Editor: r.by("editor"), Artist: r.by("cover_artist"),
			Illustrator: r.by("illustrator"), Letterer: r.by("letterer"), Penciler: r.by("penciller"), Colorist: r.by("colorist"), Inker: r.by("inker"),
			Contributor: r.by("contributor"), Pages: b.index.Count, BelongsTo: belongs{[]series{{r.Series, r.Number}}}},
		Links: []link{{Rel: "self", Href: b.address + path, Type: kind},
			{Rel: "http://opds-spec.org/acquisition", Href: b.address + "/file", Type: mediatype.OfBook(b.index.Format)}},
		Images:       []link{{Href: b.address + "/thumbnail", Type: mediatype.JPEG}},
		ReadingOrder: []link{}, Resources: []link{}, TOC: []link{}, Landmarks: []link{}, PageList: []link{}}
	if r.ISBN != "" {
		m.Metadata.Identifier = "urn:isbn:" + r.ISBN
	}
	if r.Publisher != "" {
		m.Metadata.Publisher = []string{r.Publisher}
	}
	switch r.Direction {
	case "ltr", "rtl":
		m.Metadata.Progression = r.Direction
	case "ttb", "webtoon":
		m.Metadata.Progression = "ttb"
	}
	return m
}

// divina returns the manifest of a book's page images (https://readium.org/webpub-manifest/profiles/divina).
func (b *book) divina() (*manifest, error) {
	if _, err := b.index.Entry(1); err != nil { // its error says why there are none
		return nil, err
	}
	m := b.describe("divina", divinaType, "/manifest/divina")
	for n, kind := range b.index.Types {
		l := link{Href: b.page(n + 1), Type: kind}
		if n < len(b.row.Widths) && n < len(b.row.Heights) {
			l.Width, l.Height = max(0, b.row.Widths[n]), max(0, b.row.Heights[n])
		}
		m.ReadingOrder = append(m.ReadingOrder, l)
	}
	return m, nil
}

func (b *book) page(n int) string { return b.address + "/pages/" + strconv.Itoa(n) }

// epub returns the manifest of an EPUB's documents (https://readium.org/webpub-manifest/profiles/epub).
func (b *book) epub(r *http.Request) (*manifest, error) {
	c, err := b.server.Contents(r, b.index)
	if err != nil {
		return nil, err
	}
	return b.manifestOf(c)
}

func (b *book) manifestOf(c *epub.Contents) (*manifest, error) {
	m := b.describe("epub", webpubType, "/manifest/epub")
	if c.Direction != "" && !b.row.Settled { // the file was not analysed yet
		m.Metadata.Progression = c.Direction
	}
	m.Metadata.Presentation = &layout{"reflowable"}
	if c.FixedLayout {
		m.Metadata.Presentation = &layout{"fixed"}
	}
	m.Metadata.Rendition = m.Metadata.Presentation
	m.ReadingOrder, m.Resources = b.files(c.Spine), b.files(c.Resources)
	m.TOC, m.Landmarks, m.PageList = b.places(c.TOC), b.places(c.Landmarks), b.places(c.PageList)
	if b.size > maxDocument {
		return nil, errTooLarge
	}
	return m, nil
}

// maxDocument limits the bytes of a manifest of an EPUB, and of its list of positions: a small file can name a document
// with a long name in very many places.
const maxDocument = 16 << 20

var errTooLarge = fault.New(fault.Unprocessable, "The book names too many files: a list of them exceeds %d MiB. Read it as a file", maxDocument>>20)

// count counts n items of the document that are as long as one. It reports whether they fit.
func (b *book) count(one any, n int) bool {
	data, err := json.Marshal(one)
	b.size += n * (len(data) + len(","))
	return err == nil && b.size <= maxDocument
}

// files returns links to files, as far as they fit.
func (b *book) files(items []epub.Item) []link {
	out := []link{}
	for _, it := range items {
		l := link{Href: b.file(it.Entry.Name), Type: it.MediaType}
		if !b.count(l, 1) {
			break
		}
		out = append(out, l)
	}
	return out
}

// places returns links to places, as far as they fit.
func (b *book) places(places []epub.Place) []link {
	out := []link{}
	for _, p := range places {
		l := link{Title: p.Title}
		if p.Name != "" {
			l.Href = b.file(p.Name)
		}
		if p.Name != "" && p.Anchor != "" {
			l.Href += "#" + p.Anchor
		}
		if !b.count(l, 1) {
			break
		}
		if len(p.Places) > 0 {
			l.Children = b.places(p.Places)
		}
		out = append(out, l)
	}
	return out
}

// file returns the URL of a file in the book.
func (b *book) file(name string) string {
	return b.address + "/resource/" + (&url.URL{Path: name}).EscapedPath()
}

package epub

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/xmllimit"
)

// Contents is the structure of an EPUB, for readers that show it document by document.
type Contents struct {
	Direction   string // "ltr", "rtl" or ""
	FixedLayout bool   // for the whole book
	Spine       []Item // in reading order; items missing from the archive are left out
	Resources   []Item // other items of the manifest: images, style sheets, fonts
	TOC         []Place
	Landmarks   []Place  // the cover, the start of the text, ...
	PageList    []Place  // the pages of the printed book
	Warnings    []string // what is missing or was dropped, and why
}

// Place is a line of a table of contents.
type Place struct {
	Title  string
	Name   string // of the entry; "" for a heading without a link
	Anchor string // within it, as written, or ""
	Places []Place
}

// ReadContents reads the structure of an EPUB from its package document and its table of contents. It reads three
// entries, or four for an EPUB 3 without a navigation document. Errors are those of Open.
func ReadContents(dir *archive.Directory, read func(archive.Entry) ([]byte, error), lim Limits) (*Contents, error) {
	b := newBook(dir, read, lim.withDefaults())
	if err := b.open(); err != nil {
		return nil, err
	}
	b.meta = b.metadata()
	if err := b.readManifest(); err != nil {
		return nil, err
	}
	b.readSpine()
	c := &Contents{Direction: b.pub.Direction, FixedLayout: b.pub.FixedLayout, Spine: b.pub.Spine}
	shown := map[string]bool{}
	for _, it := range c.Spine {
		shown[it.Entry.Name] = true
	}
	for _, it := range b.order {
		if it.entry >= 0 && !shown[it.name] {
			shown[it.name] = true
			c.Resources = append(c.Resources, Item{Entry: dir.Entries[it.entry], MediaType: it.mediaType, Nav: it.nav})
		}
	}
	if err := b.readNav(c); err != nil {
		return nil, err
	}
	if err := b.readNCX(c); err != nil {
		return nil, err
	}
	if len(c.Landmarks) == 0 {
		c.Landmarks = b.guide()
	}
	c.Warnings = b.pub.Warnings
	return c, nil
}

// readNav reads the navigation document (EPUB 3.3, 7).
func (b *book) readNav(c *Contents) error {
	at := slices.IndexFunc(b.order, func(it *item) bool { return it.entry >= 0 && it.nav })
	if at < 0 {
		return nil
	}
	root, base, err := b.contents(b.order[at], xmllimit.XHTML)
	if root == nil {
		return err
	}
	lists := map[string]*[]Place{"toc": &c.TOC, "landmarks": &c.Landmarks, "page-list": &c.PageList}
	var walk func(n *xmllimit.Node)
	walk = func(n *xmllimit.Node) {
		if !strings.EqualFold(n.Name, "nav") {
			for _, child := range n.Children {
				walk(child)
			}
			return
		}
		left := b.lim.Items
		places := sync.OnceValue(func() []Place { return b.navList(n, base, &left) }) // the attribute may have many words
		for kind := range strings.FieldsSeq(n.Attr("type")) {
			if list := lists[kind]; list != nil && *list == nil {
				*list = places()
			}
		}
	}
	walk(root)
	return nil
}

// navList returns the entries of the list in n. left is how many more may be added.
func (b *book) navList(n *xmllimit.Node, base string, left *int) (out []Place) {
	list := n.Child("ol")
	if list == nil {
		return nil
	}
	for _, line := range list.Children {
		if !strings.EqualFold(line.Name, "li") || *left == 0 {
			continue
		}
		*left--
		var p Place
		for _, c := range line.Children {
			if name := strings.ToLower(c.Name); p.Title == "" && p.Name == "" && (name == "a" || name == "span") {
				p = b.place(c, base, c.Attr("href"))
			}
		}
		p.Places = b.navList(line, base, left)
		if p.Title != "" || p.Name != "" || p.Places != nil {
			out = append(out, p)
		}
	}
	return out
}

// readNCX reads the table of contents of EPUB 2 (OPF 2.0.1, 2.4.1), for what the navigation document lacks.
func (b *book) readNCX(c *Contents) error {
	if len(c.TOC) > 0 {
		return nil
	}
	var ncx *item
	if spine := b.opf.Child("spine"); spine != nil {
		ncx = b.items[spine.Attr("toc")]
	}
	if at := slices.IndexFunc(b.order, func(it *item) bool { return it.mediaType == "application/x-dtbncx+xml" }); ncx == nil && at >= 0 {
		ncx = b.order[at]
	}
	if ncx == nil || ncx.entry < 0 {
		return nil
	}
	root, base, err := b.contents(ncx, xmllimit.Doctype)
	if root == nil {
		return err
	}
	left := b.lim.Items
	if points := root.Child("navMap"); points != nil {
		c.TOC = b.ncxList(points, "navPoint", base, &left)
	}
	if pages := root.Child("pageList"); pages != nil && len(c.PageList) == 0 {
		c.PageList = b.ncxList(pages, "pageTarget", base, &left)
	}
	return nil
}

func (b *book) ncxList(n *xmllimit.Node, name, base string, left *int) (out []Place) {
	for _, point := range n.Children {
		if point.Name != name || *left == 0 {
			continue
		}
		*left--
		p := Place{}
		if content := point.Child("content"); content != nil {
			p = b.place(content, base, content.Attr("src"))
		}
		if label := point.Child("navLabel"); label != nil {
			p.Title = b.text(label)
		}
		p.Places = b.ncxList(point, name, base, left)
		out = append(out, p)
	}
	return out
}

// guide returns the landmarks of EPUB 2 (OPF 2.0.1, 2.6).
func (b *book) guide() (out []Place) {
	guide := b.opf.Child("guide")
	if guide == nil {
		return nil
	}
	for _, n := range guide.Children {
		if n.Name != "reference" || len(out) == b.lim.Items {
			continue
		}
		p := b.place(n, b.opfPath, n.Attr("href"))
		if p.Title = n.Attr("title"); p.Title == "" {
			p.Title = n.Attr("type")
		}
		out = append(out, p)
	}
	return out
}

// place returns the target of a reference in the document base, with the text of n as its title.
func (b *book) place(n *xmllimit.Node, base, ref string) Place {
	p := Place{Title: b.text(n)}
	ref = strings.TrimSpace(ref)
	at := b.find(resolve(base, ref))
	if strings.HasPrefix(ref, "#") {
		at = b.find(base)
	}
	if at < 0 {
		return p
	}
	p.Name = b.dir.Entries[at].Name
	_, p.Anchor, _ = strings.Cut(ref, "#")
	return p
}

// contents returns a document of the table of contents, and its name; nil if it cannot be parsed.
func (b *book) contents(it *item, mode xmllimit.Mode) (root *xmllimit.Node, base string, err error) {
	root, err = b.parse(b.dir.Entries[it.entry], mode)
	var problem *archive.Error
	if errors.As(err, &problem) {
		b.warn("%s", problem.Msg)
		return nil, "", nil
	}
	return root, it.name, err
}

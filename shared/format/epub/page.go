package epub

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/xmllimit"
)

const (
	// maxText limits the text, in characters, of a document that counts as an image: enough for a page number, not for
	// a caption.
	maxText = 20
	// smallDocument is the size limit in bytes for an image document of a book without declared fixed layout. Larger
	// documents count as text without being read.
	smallDocument = 16 << 10
)

// document is the visible content of a spine document.
type document struct {
	images []int // entries, each once: the first two
	text   int   // characters
	other  bool  // has other content, or is unreadable
}

func (d document) isPage() bool  { return len(d.images) == 1 && d.text <= maxText && !d.other }
func (d document) isBlank() bool { return len(d.images) == 0 && d.text == 0 && !d.other }

// findPages finds the page images of a book that consists of images: each document of the spine shows exactly one image
// and hardly any text, or is an image. It skips a few blank documents, non-linear documents with other content, the
// table of contents and, in a fixed-layout book, the reflowable documents (imprints, notes). With any other document
// the book is read as a file.
//
// It reads the largest documents first, because those hold the text of a text book: for such a book it stops after one.
func (b *book) findPages() error {
	var items []Item
	for _, it := range b.pub.Spine {
		if !it.Nav && (it.PrePaginated || !b.pub.FixedLayout) {
			items = append(items, it)
		}
	}
	if !b.worthReading(items) {
		return nil
	}
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int {
		return cmp.Compare(items[y].Entry.Size, items[x].Entry.Size)
	})
	images := make([]int, len(items)) // entry + 1
	blank := 0
	for _, i := range order {
		it := items[i]
		at := b.find(it.Entry.Name)
		if b.isImage(at, it.MediaType) {
			images[i] = at + 1
			continue
		}
		doc, err := b.show(at)
		switch {
		case err != nil:
			return err
		case doc.isPage():
			images[i] = doc.images[0] + 1
		case doc.isBlank():
			blank++
		case it.Linear:
			return nil
		}
	}
	if 3*blank > len(items) {
		return nil // the images come from elsewhere, such as a style sheet
	}
	for _, n := range images {
		if n > 0 {
			b.pub.Pages = append(b.pub.Pages, b.dir.Entries[n-1])
		}
	}
	return nil
}

// worthReading reports whether, judging by the directory alone, the spine could consist of images.
func (b *book) worthReading(items []Item) bool {
	if len(items) == 0 {
		return false
	}
	if len(items) > b.lim.Documents {
		if b.pub.FixedLayout {
			b.warn("%d spine documents, the limit is %d: not searched for page images", len(items), b.lim.Documents)
		}
		return false
	}
	images, largest := 0, int64(smallDocument)
	for _, it := range b.order {
		if b.isImage(it.entry, it.mediaType) {
			images++
		}
	}
	if b.pub.FixedLayout {
		largest = b.lim.DocumentBytes
	}
	var total int64
	for _, it := range items {
		if b.isImage(b.find(it.Entry.Name), it.MediaType) {
			continue
		}
		total += it.Entry.Size
		if it.Entry.Size > largest {
			return false
		}
	}
	return total <= b.lim.TotalBytes && 2*images >= len(items)
}

// show reads a document and returns its content. An unreadable document is noted and counts as other content. Only
// errors that are not the book's fault are returned.
func (b *book) show(entry int) (document, error) {
	if doc, ok := b.rendered[entry]; ok {
		return doc, nil
	}
	e := b.dir.Entries[entry]
	if e.Size > b.lim.DocumentBytes || b.spent+e.Size > b.lim.TotalBytes {
		b.warn("%s: has %d bytes, too many to be searched for page images", e.Name, e.Size)
		return document{other: true}, nil
	}
	b.spent += e.Size
	root, err := b.parse(e, xmllimit.XHTML)
	var problem *archive.Error
	if errors.As(err, &problem) {
		b.warn("%s", problem.Msg)
		b.rendered[entry] = document{other: true}
		return b.rendered[entry], nil
	}
	if err != nil {
		return document{}, fmt.Errorf("find page images: %w", err)
	}
	if body := root.Child("body"); body != nil {
		root = body
	}
	var doc document
	b.look(root, e.Name, &doc)
	b.rendered[entry] = doc
	return doc, nil
}

// look adds the content of an element to doc.
func (b *book) look(n *xmllimit.Node, base string, doc *document) {
	ref := ""
	switch strings.ToLower(n.Name) {
	case "":
		doc.text += utf8.RuneCountInString(strings.Join(strings.Fields(n.Text), " "))
		return
	case "head", "script", "style", "title", "desc", "metadata", "defs", "template":
		return
	case "iframe", "video", "audio", "canvas", "embed", "math":
		doc.other = true
		return
	case "img":
		ref = n.Attr("src")
	case "image": // svg: href or xlink:href
		ref = n.Attr("href")
	case "object":
		ref = n.Attr("data")
	}
	if ref != "" {
		at := b.find(resolve(base, ref))
		switch {
		case !b.isImage(at, ""):
			doc.other = true
		case len(doc.images) < 2 && !slices.Contains(doc.images, at): // more than one are as good as two
			doc.images = append(doc.images, at)
		}
	}
	for _, c := range n.Children {
		b.look(c, base, doc)
	}
}

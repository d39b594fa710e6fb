package epub

import (
	"path"
	"slices"
	"strings"
)

// findCover looks for the cover in this order: the item named by <meta name="cover">, the item with the property
// cover-image, the guide's cover, an item with "cover" in its id or file name, the first image. A document stands for
// its first image.
func (b *book) findCover() error {
	for _, look := range []func() (int, error){b.coverByMeta, b.coverByProperty, b.coverByGuide, b.coverByName, b.firstImage} {
		at, err := look()
		if err != nil {
			return err
		}
		if at >= 0 {
			b.pub.Cover = new(b.dir.Entries[at])
			return nil
		}
	}
	return nil
}

func (b *book) coverByMeta() (int, error) {
	for _, n := range b.meta {
		if n.Name != "meta" || n.Attr("name") != "cover" {
			continue
		}
		content := n.Attr("content")
		if it := b.items[content]; it != nil {
			return b.imageOf(it.entry, it.mediaType)
		}
		return b.imageAt(content)
	}
	return -1, nil
}

func (b *book) coverByProperty() (int, error) {
	for _, it := range b.order {
		if slices.Contains(strings.Fields(it.properties), "cover-image") {
			return b.imageOf(it.entry, it.mediaType)
		}
	}
	return -1, nil
}

func (b *book) coverByGuide() (int, error) {
	guide := b.opf.Child("guide")
	if guide == nil {
		return -1, nil
	}
	for _, n := range guide.Children {
		if n.Name == "reference" && strings.EqualFold(n.Attr("type"), "cover") {
			return b.imageAt(n.Attr("href"))
		}
	}
	return -1, nil
}

// imageAt is imageOf for a reference in the package document, with the media type in the manifest.
func (b *book) imageAt(href string) (int, error) {
	entry := b.find(resolve(b.opfPath, href))
	for _, it := range b.order {
		if it.entry == entry {
			return b.imageOf(entry, it.mediaType)
		}
	}
	return b.imageOf(entry, "")
}

// coverByName prefers images to documents. A back cover does not count.
func (b *book) coverByName() (int, error) {
	var documents []*item
	for _, it := range b.order {
		if it.entry < 0 {
			continue
		}
		names := strings.ToLower(it.id + " " + path.Base(b.dir.Entries[it.entry].Name))
		switch {
		case !strings.Contains(names, "cover") || strings.Contains(names, "back"):
		case b.isImage(it.entry, it.mediaType):
			return it.entry, nil
		case isDocument(it.mediaType, b.dir.Entries[it.entry].Name):
			documents = append(documents, it)
		}
	}
	if len(documents) == 0 {
		return -1, nil
	}
	return b.imageOf(documents[0].entry, documents[0].mediaType)
}

func (b *book) firstImage() (int, error) {
	if len(b.pub.Pages) > 0 {
		return b.find(b.pub.Pages[0].Name), nil
	}
	for _, it := range b.order {
		if b.isImage(it.entry, it.mediaType) {
			return it.entry, nil
		}
	}
	return -1, nil
}

// imageOf returns the entry of an image, or of the first image in a document, or -1.
func (b *book) imageOf(entry int, mediaType string) (int, error) {
	switch {
	case entry < 0:
		return -1, nil
	case b.isImage(entry, mediaType):
		return entry, nil
	case !isDocument(mediaType, b.dir.Entries[entry].Name):
		return -1, nil
	}
	doc, err := b.show(entry)
	if err != nil || len(doc.images) == 0 {
		return -1, err
	}
	return doc.images[0], nil
}

func isDocument(mediaType, name string) bool {
	switch mediaType {
	case "application/xhtml+xml", "image/svg+xml", "text/html":
		return true
	case "":
		low := strings.ToLower(name)
		return strings.HasSuffix(low, ".xhtml") || strings.HasSuffix(low, ".html") || strings.HasSuffix(low, ".htm") || strings.HasSuffix(low, ".svg")
	}
	return false
}

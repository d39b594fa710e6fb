package epub

import (
	"slices"
	"strings"

	"github.com/longbox/longbox/shared/format/archive"
)

const (
	maxMediaType = 255     // bytes: twice the 127 of RFC 6838 and a slash; a longer one counts as absent
	maxNames     = 1 << 20 // bytes of the names of all documents of a spine
)

// readManifest resolves the items of the manifest to entries.
func (b *book) readManifest() error {
	manifest := b.opf.Child("manifest")
	if manifest == nil {
		return archive.Errorf(archive.Corrupt, "%s: no manifest", b.opfPath)
	}
	for _, n := range manifest.Children {
		if n.Name != "item" {
			continue
		}
		if len(b.order) == b.lim.Items {
			return archive.Errorf(archive.TooLarge, "items in the manifest of %s: more than the limit of %d", b.opfPath, b.lim.Items)
		}
		it := &item{
			id:         n.Attr("id"),
			mediaType:  strings.ToLower(strings.TrimSpace(n.Attr("media-type"))),
			properties: n.Attr("properties"),
			name:       resolve(b.opfPath, n.Attr("href")),
		}
		it.nav = slices.Contains(strings.Fields(it.properties), "nav")
		if len(it.mediaType) > maxMediaType {
			it.mediaType = ""
		}
		if it.entry = b.find(it.name); it.entry >= 0 {
			it.name = b.dir.Entries[it.entry].Name
		}
		b.order = append(b.order, it)
		if _, taken := b.items[it.id]; !taken && it.id != "" {
			b.items[it.id] = it
		}
	}
	return nil
}

// readSpine resolves the reading order and the layout.
func (b *book) readSpine() {
	for _, n := range b.meta {
		switch {
		case n.Name != "meta" || n.Attr("refines") != "":
		case n.Attr("property") == "rendition:layout":
			b.pub.FixedLayout = b.text(n) == "pre-paginated"
		case n.Attr("name") == "fixed-layout": // from before EPUB 3 had a property for it
			b.pub.FixedLayout = n.Attr("content") == "true"
		case n.Attr("name") == "primary-writing-mode" && strings.HasSuffix(n.Attr("content"), "-rl"): // the same for Kindle
			b.pub.Direction = "rtl"
		}
	}
	spine := b.opf.Child("spine")
	if spine == nil {
		return
	}
	switch d := spine.Attr("page-progression-direction"); d {
	case "ltr", "rtl":
		b.pub.Direction = d
	}
	for _, n := range spine.Children {
		if n.Name != "itemref" || b.pub.SpineCount == b.lim.Items {
			continue
		}
		b.pub.SpineCount++
		it := b.items[n.Attr("idref")]
		if it == nil || it.entry < 0 {
			b.warn("%s: spine item %.100q is missing", b.opfPath, n.Attr("idref"))
			continue
		}
		b.pub.Spine = append(b.pub.Spine, Item{
			Entry:        b.dir.Entries[it.entry],
			MediaType:    it.mediaType,
			Linear:       n.Attr("linear") != "no",
			PrePaginated: prePaginated(n.Attr("properties"), b.pub.FixedLayout),
			Nav:          it.nav,
		})
	}
}

// Documents returns the names of the spine's documents in reading order, including those missing from the archive. As
// in KOReader, a document that the spine names twice occurs twice. It only reads the package document. Errors are those
// of Open, and TooLarge for too many bytes of names.
func Documents(dir *archive.Directory, read func(archive.Entry) ([]byte, error), lim Limits) ([]string, error) {
	b := newBook(dir, read, lim.withDefaults())
	if err := b.open(); err != nil {
		return nil, err
	}
	if err := b.readManifest(); err != nil {
		return nil, err
	}
	var names []string
	size := 0
	if spine := b.opf.Child("spine"); spine != nil {
		for _, n := range spine.Children {
			if it := b.items[n.Attr("idref")]; n.Name == "itemref" && it != nil && len(names) < b.lim.Items {
				if size += len(it.name); size > maxNames {
					return nil, archive.Errorf(archive.TooLarge, "the names of the documents in %s have more bytes than the limit of %d", b.opfPath, maxNames)
				}
				names = append(names, it.name)
			}
		}
	}
	return names, nil
}

func prePaginated(properties string, otherwise bool) bool {
	for _, p := range strings.Fields(properties) {
		switch p {
		case "rendition:layout-pre-paginated":
			return true
		case "rendition:layout-reflowable":
			return false
		}
	}
	return otherwise
}

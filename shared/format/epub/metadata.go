package epub

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/format/isbn"
	"github.com/longbox/longbox/shared/format/xmllimit"
)

// readMetadata reads the metadata element (EPUB 3.3, section 5.5; OPF 2.0.1, section 2.2).
func (b *book) readMetadata() {
	nodes := b.metadata()
	b.meta = nodes
	b.findRefinements()
	var titles, creators, contributors, dates []*xmllimit.Node
	for _, n := range nodes {
		value := b.text(n)
		switch strings.ToLower(n.Name) {
		case "title":
			titles = append(titles, n)
		case "creator":
			creators = append(creators, n)
		case "contributor":
			contributors = append(contributors, n)
		case "publisher":
			if b.pub.Publisher == "" {
				b.pub.Publisher = value
			}
		case "language":
			b.addNew(&b.pub.Languages, value)
		case "description":
			if b.pub.Description == "" {
				b.pub.Description = b.clip(n, PlainText(n.Content()))
			}
		case "subject":
			for subject := range strings.SplitSeq(value, ";") { // some programs write all subjects into one element
				b.addNew(&b.pub.Subjects, strings.TrimSpace(subject))
			}
		case "date":
			dates = append(dates, n)
		case "identifier":
			b.addIdentifier(n, value)
		case "rights":
			if b.pub.Rights == "" {
				b.pub.Rights = value
			}
		case "meta":
			b.readCalibre(n, value)
		}
	}
	if len(b.pub.Languages) > 0 {
		b.pub.Language = b.pub.Languages[0]
	}
	b.readTitles(titles)
	b.pub.Creators, b.pub.Contributors = b.people(creators), b.people(contributors)
	b.readDate(dates)
	b.readSeries(nodes)
}

// metadata returns the elements of the metadata, including those in dc-metadata and x-metadata in old files.
func (b *book) metadata() []*xmllimit.Node {
	var nodes []*xmllimit.Node
	meta := b.opf.Child("metadata")
	if meta == nil {
		b.warn("%s: no metadata", b.opfPath)
		return nil
	}
	for _, n := range meta.Children {
		if n.Name == "dc-metadata" || n.Name == "x-metadata" {
			nodes = append(nodes, n.Children...)
		} else {
			nodes = append(nodes, n)
		}
	}
	nodes = slices.DeleteFunc(nodes, func(n *xmllimit.Node) bool { return n.Name == "" }) // text
	if len(nodes) > b.lim.Items {
		b.warn("%s: %d metadata elements, the limit is %d", b.opfPath, len(nodes), b.lim.Items)
		nodes = nodes[:b.lim.Items]
	}
	return nodes
}

// text returns the content of an element with single spaces.
func (b *book) text(n *xmllimit.Node) string {
	return b.clip(n, strings.Join(strings.Fields(n.Content()), " "))
}

func (b *book) clip(n *xmllimit.Node, s string) string {
	if len(s) <= b.lim.TextBytes {
		return s
	}
	b.warn("%s: %s has %d bytes, the limit is %d", b.opfPath, n.Name, len(s), b.lim.TextBytes)
	return strings.Clone(cut.Bytes(s, b.lim.TextBytes)) // the rest is not kept in memory
}

// refinement is a property of an element that meta elements give a value (EPUB 3.3, section 5.5.6).
type refinement struct {
	of       *xmllimit.Node
	property string
}

// findRefinements records which meta elements refine which others. Of several elements with the same id the first
// counts.
func (b *book) findRefinements() {
	ids := map[string]*xmllimit.Node{}
	for _, n := range b.meta {
		if id := n.Attr("id"); id != "" && ids[id] == nil {
			ids[id] = n
		}
	}
	for _, n := range b.meta {
		id, ok := strings.CutPrefix(n.Attr("refines"), "#")
		if of := ids[id]; ok && of != nil && n.Name == "meta" {
			at := refinement{of, n.Attr("property")}
			b.refines[at] = append(b.refines[at], n)
		}
	}
}

// refined returns the value of the first meta element that refines n with a property, otherwise n's own attribute, as
// in EPUB 2.
func (b *book) refined(n *xmllimit.Node, property string) string {
	if metas := b.refines[refinement{n, property}]; len(metas) > 0 {
		return b.text(metas[0])
	}
	return strings.TrimSpace(n.Attr(property))
}

func (b *book) readTitles(titles []*xmllimit.Node) {
	b.inSequence(titles)
	main, calibre := false, b.pub.TitleSort
	for _, n := range titles {
		value, kind := b.text(n), b.refined(n, "title-type")
		if value == "" {
			continue
		}
		b.pub.Titles = append(b.pub.Titles, value)
		switch {
		case kind == "subtitle":
			if b.pub.Subtitle == "" {
				b.pub.Subtitle = value
			}
			continue
		case kind == "edition":
			if b.pub.Edition == "" {
				b.pub.Edition = value
			}
			continue
		case kind == "original" || kind == "original-title":
			b.pub.Original = value
			continue
		case kind == "short" || kind == "collection":
			continue // the same book under a shorter name, or the work it belongs to
		case b.pub.Title == "", kind == "main" && !main:
			b.pub.Title, main = value, kind == "main"
			b.pub.TitleSort = cmp.Or(b.refined(n, "file-as"), calibre) // of this title, not of one that it replaces
			if script := b.refined(n, "alternate-script"); script != "" && b.pub.Original == "" {
				b.pub.Original = script
			}
		}
	}
	if b.pub.Title == "" && len(b.pub.Titles) > 0 {
		b.pub.Title = b.pub.Titles[0]
	}
}

// readCalibre reads calibre's own metas: by name and content, in EPUB 3 by property and text.
func (b *book) readCalibre(n *xmllimit.Node, text string) {
	content := cmp.Or(strings.Join(strings.Fields(n.Attr("content")), " "), text)
	switch cmp.Or(n.Attr("name"), n.Attr("property")) {
	case "calibre:title_sort":
		if b.pub.TitleSort == "" {
			b.pub.TitleSort = b.clip(n, content)
		}
	case "calibre:rating":
		if f, err := strconv.ParseFloat(content, 64); err == nil && f >= 0 && f <= 10 {
			b.pub.Rating = &f
		}
	}
}

// inSequence sorts elements of one kind in display order.
func (b *book) inSequence(nodes []*xmllimit.Node) {
	slices.SortStableFunc(nodes, func(x, y *xmllimit.Node) int {
		return b.sequence(x) - b.sequence(y)
	})
}

// sequence returns display-seq. Elements without one keep their order after those with one.
func (b *book) sequence(n *xmllimit.Node) int {
	seq, err := strconv.Atoi(b.refined(n, "display-seq"))
	if err != nil || seq < 0 || seq > math.MaxInt32 {
		return math.MaxInt32
	}
	return seq
}

// people returns creators or contributors in display order. A person with several roles appears once per role.
func (b *book) people(nodes []*xmllimit.Node) []Creator {
	b.inSequence(nodes)
	var list []Creator
	for _, n := range nodes {
		person := Creator{Name: b.text(n), FileAs: b.refined(n, "file-as"), Role: strings.ToLower(b.refined(n, "role"))}
		if person.Name == "" || person.Name == "Unknown" { // calibre writes this for no author
			continue
		}
		list = append(list, person)
		metas := b.refines[refinement{n, "role"}]
		for i := 1; i < len(metas); i++ {
			person.Role = strings.ToLower(b.text(metas[i]))
			list = append(list, person)
		}
	}
	return list
}

func (b *book) addIdentifier(n *xmllimit.Node, value string) {
	if value == "" {
		return
	}
	scheme := strings.TrimSpace(n.Attr("scheme"))
	kind := b.refined(n, "identifier-type")
	if scheme == "" {
		scheme = kind
	}
	b.pub.Identifiers = append(b.pub.Identifiers, Identifier{Scheme: scheme, Value: value})
	const onixISBN10, onixISBN13 = "02", "15" // ONIX code list 5
	named := strings.Contains(strings.ToLower(scheme), "isbn") || kind == onixISBN10 || kind == onixISBN13
	number := isbn.Parse(value, named)
	if found := isbn.Find(value); number == "" && (named || isbn.Named(value)) && len(found) > 0 { // "978… (pbk.)"
		number = found[0]
	}
	if number != "" {
		b.addNew(&b.pub.ISBNs, number)
	} else if named || isbn.Named(value) {
		b.warn("%s: %.60q is not a valid ISBN", b.opfPath, value)
	}
}

// readSeries takes the first series from EPUB 3 (belongs-to-collection, section D.3.7), otherwise from calibre's metas.
func (b *book) readSeries(nodes []*xmllimit.Node) {
	var series, position, calibre, index string
	named := false // as a series, not as any collection
	for _, n := range nodes {
		if n.Name != "meta" {
			continue
		}
		switch {
		case n.Attr("property") == "belongs-to-collection" && n.Attr("refines") == "":
			kind := b.refined(n, "collection-type")
			if series == "" && kind != "set" || kind == "series" && !named {
				series, position, named = b.text(n), b.refined(n, "group-position"), kind == "series"
			}
		case n.Attr("name") == "calibre:series":
			calibre = strings.Join(strings.Fields(n.Attr("content")), " ")
		case n.Attr("name") == "calibre:series_index":
			index = n.Attr("content")
		}
	}
	if series == "" {
		series, position = b.clip(b.opf, calibre), index
	}
	if series == "" {
		return
	}
	b.pub.Series = series
	f, err := strconv.ParseFloat(strings.TrimSpace(position), 64)
	switch {
	case err == nil && math.Abs(f) < 1e9:
		b.pub.Position = &f
	case position != "":
		b.warn("%s: position %.60q in the series is not a number", b.opfPath, position)
	}
}

// mostTexts is the maximum number of languages, of subjects and of ISBNs.
const mostTexts = 1000

// listed is a text in a list.
type listed struct {
	list *[]string
	text string
}

// addNew appends a text to a list of the publication, unless the list has it already or is full.
func (b *book) addNew(list *[]string, text string) {
	at := listed{list, text}
	if text == "" || len(*list) == mostTexts || b.listed[at] {
		return
	}
	b.listed[at] = true
	*list = append(*list, text)
}

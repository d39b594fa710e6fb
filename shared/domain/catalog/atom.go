package catalog

import (
	"bytes"
	"encoding/xml"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/format/mediatype"
)

// Link relations (OPDS 1.2, section 8; OPDS-PSE 1.1).
const (
	relSubsection  = "subsection"
	relAcquisition = "http://opds-spec.org/acquisition"
	relImage       = "http://opds-spec.org/image"
	relThumbnail   = "http://opds-spec.org/image/thumbnail"
	relStream      = "http://vaemendis.net/opds-pse/stream"
	relPage        = "http://vaemendis.net/opds-pse/page"
)

// Media types of OPDS 1.2 (section 2).
const (
	navigation  = "application/atom+xml;profile=opds-catalog;kind=navigation"
	acquisition = "application/atom+xml;profile=opds-catalog;kind=acquisition"
	openSearch  = "application/opensearchdescription+xml"
)

const atomRoot = "/opds"

// atomFeed is a feed of OPDS 1.2: Atom (RFC 4287) with OpenSearch, Dublin Core and page streaming.
type atomFeed struct {
	XMLName    xml.Name    `xml:"feed"`
	Atom       string      `xml:"xmlns,attr"`
	OPDS       string      `xml:"xmlns:opds,attr"`
	DublinCore string      `xml:"xmlns:dc,attr"`
	PSE        string      `xml:"xmlns:pse,attr,omitempty"`
	OpenSearch string      `xml:"xmlns:opensearch,attr"`
	ID         string      `xml:"id"`
	Title      string      `xml:"title"`
	Updated    string      `xml:"updated"`
	Author     atomPerson  `xml:"author"`
	Total      *int64      `xml:"opensearch:totalResults"`
	PerPage    *int64      `xml:"opensearch:itemsPerPage"`
	Start      *int64      `xml:"opensearch:startIndex"`
	Links      []atomLink  `xml:"link"`
	Entries    []atomEntry `xml:"entry"`
}

type atomPerson struct {
	Name string `xml:"name"`
}

type atomLink struct {
	Rel          string `xml:"rel,attr"`
	Href         string `xml:"href,attr"`
	Type         string `xml:"type,attr,omitempty"`
	Title        string `xml:"title,attr,omitempty"`
	Length       int64  `xml:"length,attr,omitempty"`
	Count        int32  `xml:"pse:count,attr,omitempty"`
	LastRead     int32  `xml:"pse:lastRead,attr,omitempty"` // from 1
	LastReadDate string `xml:"pse:lastReadDate,attr,omitempty"`
}

type atomEntry struct {
	Title     string       `xml:"title"`
	ID        string       `xml:"id"`
	Updated   string       `xml:"updated"`
	Published string       `xml:"published,omitempty"`
	Authors   []atomPerson `xml:"author"`
	Publisher string       `xml:"dc:publisher,omitempty"`
	Language  string       `xml:"dc:language,omitempty"`
	Content   *atomText    `xml:"content"`
	Links     []atomLink   `xml:"link"`
}

type atomText struct {
	Type string `xml:"type,attr"`
	Text string `xml:",chardata"`
}

func date(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func urn(id uuid.UUID) string { return "urn:uuid:" + id.String() }

func text(s string) *atomText {
	if s == "" {
		return nil
	}
	return &atomText{"text", s}
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// counted formats a count: "1 book", "2 books".
func counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(n, 10) + " " + many
}

// atom returns a feed without entries.
func (f *feed) atom() *atomFeed {
	kind := navigation
	if f.reads {
		kind = acquisition
	}
	out := &atomFeed{Atom: "http://www.w3.org/2005/Atom", OPDS: "http://opds-spec.org/2010/catalog", DublinCore: "http://purl.org/dc/elements/1.1/",
		OpenSearch: "http://a9.com/-/spec/opensearch/1.1/", ID: "urn:longbox:" + f.name, Title: f.title, Updated: date(f.updated()), Author: atomPerson{f.site},
		Links: []atomLink{{Rel: "self", Href: atomRoot + f.path + f.paging.at(f.paging.page), Type: kind},
			{Rel: "start", Href: atomRoot, Type: navigation},
			{Rel: "search", Href: atomRoot + "/search.xml", Type: openSearch}}}
	if f.reads {
		out.PSE = "http://vaemendis.net/opds-pse/ns"
	}
	if f.path != "" {
		out.Links = append(out.Links, atomLink{Rel: "up", Href: atomRoot + f.up, Type: navigation})
	}
	if f.paging.size > 0 {
		size, start := int64(f.paging.size), int64(f.paging.offset()+1)
		out.Total, out.PerPage, out.Start = &f.total, &size, &start
		add := func(rel string, page int) {
			out.Links = append(out.Links, atomLink{Rel: rel, Href: atomRoot + f.path + f.paging.at(page), Type: kind})
		}
		if f.paging.page > 1 {
			add("previous", min(f.paging.page-1, f.last()))
		}
		if f.paging.page < f.last() {
			add("next", f.paging.page+1)
		}
	}
	return out
}

// writeAtom writes a feed as OPDS 1.2.
func writeAtom(w http.ResponseWriter, f *feed) error {
	out := f.atom()
	for _, p := range f.places {
		kind := navigation
		if p.rel != relSubsection {
			kind = acquisition
		}
		out.Entries = append(out.Entries, atomEntry{Title: p.title, ID: "urn:longbox:" + p.path[1:], Updated: out.Updated, Content: text(p.about),
			Links: []atomLink{{Rel: p.rel, Href: atomRoot + p.path, Type: kind}}})
	}
	for _, l := range f.libraries {
		out.Entries = append(out.Entries, atomEntry{Title: l.Name, ID: urn(l.ID), Updated: date(l.UpdatedAt), Content: text(counted(l.Series, "series", "series")),
			Links: append([]atomLink{{Rel: relSubsection, Href: atomRoot + "/libraries/" + l.ID.String(), Type: navigation}}, pictures(l.cover())...)})
	}
	for _, l := range f.lists {
		kind := navigation
		if l.kind.reads {
			kind = acquisition
		}
		out.Entries = append(out.Entries, atomEntry{Title: l.Name, ID: urn(l.ID), Updated: date(l.UpdatedAt), Content: text(value(l.Summary)),
			Links: append([]atomLink{{Rel: relSubsection, Href: atomRoot + l.kind.path + "/" + l.ID.String(), Type: kind}}, pictures(l.cover())...)})
	}
	for _, s := range f.series {
		about := value(s.Summary)
		if about == "" {
			about = counted(s.Books, "book", "books")
		}
		out.Entries = append(out.Entries, atomEntry{Title: s.Title, ID: urn(s.ID), Updated: date(s.UpdatedAt), Content: text(about),
			Links: append([]atomLink{{Rel: relSubsection, Href: atomRoot + "/series/" + s.ID.String(), Type: acquisition}}, pictures(s.cover())...)})
	}
	for _, p := range f.books {
		out.Entries = append(out.Entries, p.atom())
	}
	return writeXML(w, out.Links[0].Type, out)
}

func pictures(cover string) []atomLink {
	return []atomLink{{Rel: relImage, Href: cover, Type: "image/jpeg"}, {Rel: relThumbnail, Href: cover, Type: "image/jpeg"}}
}

func (p publication) atom() atomEntry {
	e := atomEntry{Title: p.Title, ID: urn(p.ID), Updated: date(p.UpdatedAt), Published: date(p.CreatedAt), Publisher: value(p.Publisher),
		Language: value(p.Language), Content: text(value(p.Summary))}
	for _, name := range p.names() {
		e.Authors = append(e.Authors, atomPerson{name})
	}
	e.Links = append(pictures(p.cover()), atomLink{Rel: relAcquisition, Href: p.file(), Type: mediatype.OfBook(p.Format), Length: p.Size})
	if p.Images > 0 {
		stream := atomLink{Rel: relStream, Href: atomRoot + "/books/" + p.ID.String() + "/pages/stream/{pageNumber}?width={maxWidth}", Type: "image/jpeg", Count: p.Images}
		if p.CurrentPage != nil && *p.CurrentPage > 0 {
			stream.LastRead, stream.LastReadDate = min(*p.CurrentPage, p.Images), date(*p.ReadAt)
		}
		// Not subsection, which makes a folder of the entry: KOReader would download a page in place of the comic.
		e.Links = append(e.Links, stream, atomLink{Rel: "related", Href: atomRoot + "/books/" + p.ID.String() + "/pages", Type: acquisition, Title: "Pages"})
	}
	return e
}

// writePages writes the pages of a book, one entry each.
func writePages(w http.ResponseWriter, id uuid.UUID, f *feed, of *pages) error {
	out := f.atom()
	out.Updated = date(of.UpdatedAt)
	for i, kind := range of.Types {
		n := strconv.Itoa(f.paging.offset() + i + 1)
		out.Entries = append(out.Entries, atomEntry{Title: "Page " + n, ID: urn(id) + "#" + n, Updated: out.Updated,
			Links: []atomLink{{Rel: relPage, Href: atomRoot + "/books/" + id.String() + "/pages/" + n, Type: kind}}})
	}
	return writeXML(w, acquisition, out)
}

// openSearchDocument describes the search to clients (OpenSearch 1.1).
type openSearchDocument struct {
	XMLName     xml.Name `xml:"http://a9.com/-/spec/opensearch/1.1/ OpenSearchDescription"`
	ShortName   string
	Description string
	Encoding    string `xml:"InputEncoding"`
	URL         struct {
		Type     string `xml:"type,attr"`
		Template string `xml:"template,attr"`
	} `xml:"Url"`
}

func writeSearchDocument(w http.ResponseWriter, site string) error {
	out := openSearchDocument{ShortName: site, Description: "Series and books by words of their titles", Encoding: "UTF-8"}
	out.URL.Type, out.URL.Template = acquisition, atomRoot+"/search?q={searchTerms}"
	return writeXML(w, openSearch, out)
}

// writeXML encodes a document completely before the response starts.
func writeXML(w http.ResponseWriter, kind string, document any) error {
	var b bytes.Buffer
	b.WriteString(xml.Header)
	if err := xml.NewEncoder(&b).Encode(document); err != nil {
		return err
	}
	out := decimal.Replace(b.String())
	w.Header().Set("Content-Type", kind+";charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(out)))
	_, _ = io.WriteString(w, out) // the client may have disconnected
	return nil
}

// decimal replaces the hexadecimal references with which the encoder writes whitespace: KOReader cannot read them. Text
// has none of its own, because & in it is &amp;.
var decimal = strings.NewReplacer("&#x9;", "&#9;", "&#xA;", "&#10;", "&#xD;", "&#13;")

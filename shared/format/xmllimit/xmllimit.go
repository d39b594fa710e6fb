// Package xmllimit parses XML from books: small trees from untrusted documents. It fetches nothing and knows no
// entities except the five predefined ones. Size, depth, number of elements and length of tags are limited before they
// cost anything.
package xmllimit

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/longbox/longbox/shared/format/internal/limit"
)

// Limits for a document. A field that is zero or less means its default.
type Limits struct {
	Bytes    int64 `env:"XML_MAX_BYTES" envDefault:"4194304"` // as stored
	Depth    int   `env:"XML_MAX_DEPTH" envDefault:"64"`      // nesting of elements
	Elements int   `env:"XML_MAX_ELEMENTS" envDefault:"100000"`
}

// Validate returns an error that names the first setting out of bounds. The zero value stands for the defaults.
func (l Limits) Validate() error { return limit.Check(l) }

// WithDefaults returns the effective limits.
func (l Limits) WithDefaults() Limits {
	return Limits{Bytes: limit.Or(l.Bytes, 4<<20), Depth: limit.Or(l.Depth, 64), Elements: limit.Or(l.Elements, 100_000)}
}

// maxTag limits the bytes of one tag without attribute values, and so the number of its attributes.
const maxTag = 64 << 10

// Reasons to refuse a whole document.
var (
	ErrDTD      = errors.New("declares a DTD or entities, which are never read")
	ErrTooLarge = errors.New("too large")
	ErrEmpty    = errors.New("contains no XML element")
)

// Mode says how strictly a document is parsed.
type Mode int

const (
	// NoDoctype refuses every document type declaration.
	NoDoctype Mode = iota
	// Doctype ignores a declaration without an internal subset, as in old OPF files.
	Doctype
	// XHTML is Doctype with HTML's named entities and void elements.
	XHTML
)

// Node is an element or, without a name, a piece of text.
type Node struct {
	Name     string // local name, without its prefix
	Attrs    []xml.Attr
	Text     string
	Children []*Node
}

// Attr returns the value of the attribute with a local name, or "".
func (n *Node) Attr(local string) string {
	for _, a := range n.Attrs {
		if a.Name.Local == local {
			return a.Value
		}
	}
	return ""
}

// Child returns the first child element with a name, ignoring case, or nil.
func (n *Node) Child(name string) *Node {
	for _, c := range n.Children {
		if strings.EqualFold(c.Name, name) {
			return c
		}
	}
	return nil
}

// blocks are the HTML elements that start and end a line.
var blocks = map[string]bool{"p": true, "div": true, "br": true, "li": true, "ul": true, "ol": true, "tr": true, "blockquote": true,
	"h1": true, "h2": true, "h3": true, "h4": true, "h5": true, "h6": true}

// Content returns all text in the node. HTML elements, in descriptions with unescaped markup, become line breaks.
func (n *Node) Content() string {
	if n.Name == "" {
		return n.Text
	}
	var b strings.Builder
	n.writeContent(&b)
	return b.String()
}

func (n *Node) writeContent(b *strings.Builder) {
	b.WriteString(n.Text)
	for _, c := range n.Children {
		block := blocks[strings.ToLower(c.Name)]
		if block {
			b.WriteByte('\n')
		}
		c.writeContent(b)
		if block {
			b.WriteByte('\n')
		}
	}
}

// Parse parses a document and returns its root element. If the document is malformed further on, it returns the content
// before, together with the error. Errors that wrap ErrDTD, ErrTooLarge or ErrEmpty come without a root.
func Parse(b []byte, mode Mode, lim Limits) (*Node, error) {
	lim = lim.WithDefaults()
	if int64(len(b)) > lim.Bytes {
		return nil, fmt.Errorf("%w: %d bytes, the limit XML_MAX_BYTES is %d", ErrTooLarge, len(b), lim.Bytes)
	}
	b = decode(b)
	if err := scan(b, mode, lim.Elements); err != nil {
		return nil, err
	}
	d := xml.NewDecoder(bytes.NewReader(b))
	d.Strict = false
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil } // decoded already
	if mode == XHTML {
		d.Entity, d.AutoClose = xml.HTMLEntity, xml.HTMLAutoClose
	}
	root := &Node{}
	open := []*Node{root}
	for {
		token, err := d.Token()
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return first(root, err)
		}
		top := open[len(open)-1]
		switch t := token.(type) {
		case xml.StartElement:
			if len(open) > lim.Depth {
				return nil, fmt.Errorf("%w: elements are nested more than %d levels deep, the limit XML_MAX_DEPTH", ErrTooLarge, lim.Depth)
			}
			n := &Node{Name: t.Name.Local, Attrs: t.Attr}
			top.Children = append(top.Children, n)
			open = append(open, n)
		case xml.EndElement:
			if len(open) > 1 {
				open = open[:len(open)-1]
			}
		case xml.CharData:
			if len(open) > 1 {
				top.Children = append(top.Children, &Node{Text: string(t)})
			}
		}
	}
}

// first returns the document's root element.
func first(root *Node, err error) (*Node, error) {
	for _, c := range root.Children {
		if c.Name != "" {
			return c, err
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEmpty, err)
	}
	return nil, ErrEmpty
}

// scan walks over the markup and refuses what would make the decoder use too much memory.
func scan(b []byte, mode Mode, maxElements int) error {
	elements := 0
	for len(b) > 0 {
		at := bytes.IndexByte(b, '<')
		if at < 0 {
			return nil
		}
		b = b[at:]
		switch {
		case bytes.HasPrefix(b, []byte("<!--")):
			b = after(b[4:], "-->")
		case bytes.HasPrefix(b, []byte("<![CDATA[")):
			b = after(b[9:], "]]>")
		case bytes.HasPrefix(b, []byte("<?")):
			b = after(b[2:], "?>")
		case bytes.HasPrefix(b, []byte("<!")):
			end, _ := tagEnd(b)
			if mode == NoDoctype || bytes.IndexByte(b[:end], '[') >= 0 || bytes.Contains(b[2:end], []byte("<")) {
				return ErrDTD
			}
			b = b[end:]
		default:
			if elements++; elements > 2*maxElements { // start and end tags
				return fmt.Errorf("%w: more than %d elements, the limit XML_MAX_ELEMENTS", ErrTooLarge, maxElements)
			}
			end, values := tagEnd(b)
			if end-values > maxTag {
				return fmt.Errorf("%w: a tag of more than %d bytes", ErrTooLarge, maxTag)
			}
			b = b[end:]
		}
	}
	return nil
}

func after(b []byte, end string) []byte {
	_, rest, _ := bytes.Cut(b, []byte(end))
	return rest
}

// tagEnd returns the length of the tag at the start of b, up to the first unquoted '>', or all of b. It also returns
// how many of these bytes are quoted.
func tagEnd(b []byte) (end, quoted int) {
	var quote byte
	for i, c := range b {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			} else {
				quoted++
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '>':
			return i + 1, quoted
		}
	}
	return len(b), quoted
}

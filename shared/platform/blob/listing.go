package blob

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/longbox/longbox/shared/lazyregexp"
)

// listing is a ListObjectsV2 response.
type listing struct {
	objects []Object
	folders []string // CommonPrefixes
	more    bool     // IsTruncated
	next    string   // NextContinuationToken
}

// readListing decodes a ListBucketResult (Amazon S3 API, ListObjectsV2). A rescan consists mostly of listings, and
// encoding/xml would take most of its time. So the plain form that all stores send, elements and text, is parsed here
// in a tenth of that time. Any other form goes to encoding/xml.
func readListing(doc []byte) (listing, error) {
	var p plain
	if p.read(doc) {
		return p.listing, nil
	}
	return readAnyListing(doc)
}

// anyTime is the time of a file. A year that RFC 3339 cannot express becomes the zero time.
type anyTime struct{ time.Time }

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *anyTime) UnmarshalText(text []byte) error {
	if oddYear.Match(text) {
		*t = anyTime{}
		return nil
	}
	return t.Time.UnmarshalText(text)
}

// oddYear is a year before 0 or after 9999.
var oddYear = lazyregexp.New(`^(-\d+|\d{5,})-`)

// readAnyListing is readListing for any XML document.
func readAnyListing(doc []byte) (listing, error) {
	var in struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		IsTruncated           bool
		NextContinuationToken string
		EncodingType          string
		Contents              []struct {
			Key, ETag    string
			LastModified anyTime
			Size         int64
		}
		CommonPrefixes []struct{ Prefix string }
	}
	if err := xml.Unmarshal(doc, &in); err != nil {
		return listing{}, fmt.Errorf("the store's listing: %w", err)
	}
	out := listing{more: in.IsTruncated, next: in.NextContinuationToken}
	for _, c := range in.Contents {
		out.objects = append(out.objects, Object{Key: c.Key, Size: c.Size, ETag: c.ETag, Modified: c.LastModified.Time})
	}
	for _, p := range in.CommonPrefixes {
		if p.Prefix == "" { // it would stand for the whole bucket
			return listing{}, errors.New("the store's listing contains a folder without a name")
		}
		out.folders = append(out.folders, p.Prefix)
	}
	if in.EncodingType == "url" {
		return out, out.decode()
	}
	return out, nil
}

// decode decodes URL-encoded keys and prefixes. Characters that Postgres text cannot hold become U+FFFD, as in the
// listings of other stores. Such a file cannot be opened by its name.
func (l *listing) decode() error {
	at := make([]*string, 0, len(l.objects)+len(l.folders))
	for i := range l.objects {
		at = append(at, &l.objects[i].Key)
	}
	for i := range l.folders {
		at = append(at, &l.folders[i])
	}
	for _, s := range at {
		key, err := url.QueryUnescape(*s)
		if err != nil {
			return fmt.Errorf("the store's listing: %w", err)
		}
		*s = strings.ToValidUTF8(strings.ReplaceAll(key, "\x00", "\uFFFD"), "\uFFFD")
	}
	return nil
}

// plain parses XML of this form: an optional declaration, elements without attributes (except the outermost), and text
// with the five named entities or numeric references. It rejects everything else: comments, CDATA, carriage returns.
type plain struct {
	listing
	object Object
	named  int // count of names in the open CommonPrefixes
}

// read reports whether the document has that form and is valid.
func (p *plain) read(doc []byte) bool {
	if !utf8.Valid(doc) || slices.ContainsFunc(doc, control) {
		return false
	}
	var open [4][]byte // names of the open elements
	depth, leaf := 0, false
	for first := true; ; first = false {
		start := bytes.IndexByte(doc, '<')
		if start < 0 {
			return false
		}
		text := doc[:start]
		end := bytes.IndexByte(doc[start:], '>')
		if end < 2 {
			return false
		}
		tag := doc[start+1 : start+end]
		doc = doc[start+end+1:]
		switch tag[0] {
		case '?':
			if !first || !declaration(tag) {
				return false
			}
		case '/':
			if depth == 0 || !bytes.Equal(tag[1:], open[depth-1]) || !p.end(open[:depth], text, leaf) {
				return false
			}
			if depth, leaf = depth-1, false; depth == 0 {
				return len(bytes.TrimSpace(doc)) == 0
			}
		default:
			empty := tag[len(tag)-1] == '/'
			if empty {
				tag = tag[:len(tag)-1]
			}
			if depth == 0 {
				tag, _, _ = bytes.Cut(tag, []byte(" ")) // xmlns
				if string(tag) != "ListBucketResult" {
					return false
				}
			}
			if depth == len(open) || !name(tag) {
				return false
			}
			open[depth] = tag
			depth, leaf = depth+1, true
			if empty {
				if depth == 1 || !p.end(open[:depth], nil, true) {
					return false
				}
				depth, leaf = depth-1, false
			}
		}
	}
}

// control reports whether a byte needs escaping in text. Carriage returns do too, because XML readers turn them into
// line feeds.
func control(b byte) bool { return b < ' ' && b != '\n' && b != '\t' }

// declaration reports whether a tag is an XML declaration of UTF-8.
func declaration(tag []byte) bool {
	return bytes.HasPrefix(tag, []byte("?xml ")) && (!bytes.Contains(tag, []byte("encoding")) || bytes.Contains(bytes.ToLower(tag), []byte("utf-8")))
}

func name(s []byte) bool {
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return false
		}
	}
	return len(s) > 0
}

// end handles the end of an element, with its text if it has no child elements.
func (p *plain) end(path [][]byte, text []byte, leaf bool) bool {
	if len(path) == 1 {
		return true
	}
	if len(path) == 2 {
		switch string(path[1]) {
		case "Contents":
			p.objects, p.object = append(p.objects, p.object), Object{}
			return true
		case "CommonPrefixes":
			one := p.named == 1
			p.named = 0
			return one
		case "IsTruncated":
			p.more = string(text) == "true"
			return leaf && (p.more || string(text) == "false")
		case "NextContinuationToken":
			return leaf && unescape(text, &p.next)
		case "EncodingType":
			return false
		}
		return true
	}
	if len(path) > 3 {
		return true
	}
	switch string(path[1]) {
	case "CommonPrefixes":
		if string(path[2]) == "Prefix" {
			p.folders, p.named = append(p.folders, ""), p.named+1
			return leaf && len(text) > 0 && unescape(text, &p.folders[len(p.folders)-1])
		}
	case "Contents":
		var err error
		switch o := &p.object; string(path[2]) {
		case "Key":
			return leaf && unescape(text, &o.Key)
		case "ETag":
			return leaf && unescape(text, &o.ETag)
		case "Size":
			o.Size, err = strconv.ParseInt(string(text), 10, 64)
			return leaf && err == nil
		case "LastModified":
			o.Modified, err = time.Parse(time.RFC3339, string(text))
			return leaf && err == nil
		}
	}
	return true
}

// unescape replaces the references in text and stores the result in to. It reports false for an unknown reference.
func unescape(text []byte, to *string) bool {
	at := bytes.IndexByte(text, '&')
	if at < 0 {
		*to = string(text)
		return true
	}
	out := make([]byte, 0, len(text))
	for ; at >= 0; at = bytes.IndexByte(text, '&') {
		out = append(out, text[:at]...)
		end := bytes.IndexByte(text[at:], ';')
		if end < 0 {
			return false
		}
		ref := string(text[at+1 : at+end])
		text = text[at+end+1:]
		switch ref {
		case "amp":
			out = append(out, '&')
		case "lt":
			out = append(out, '<')
		case "gt":
			out = append(out, '>')
		case "quot", "#34", "#x22":
			out = append(out, '"')
		case "apos", "#39":
			out = append(out, '\'')
		default:
			return false
		}
	}
	*to = string(append(out, text...))
	return true
}

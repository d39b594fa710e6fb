package analysis

import (
	"fmt"
	"strings"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/isbn"
	"github.com/longbox/longbox/shared/format/mediatype"
	"github.com/longbox/longbox/shared/format/pdf"
)

// readPDF reads a document's pages: a page that is a single JPEG is a range of the file, the others must be drawn.
func (r *Result) readPDF(src *source, d *pdf.Document) {
	r.Format = "pdf"
	r.Fingerprint = d.Fingerprint
	entries := make([]archive.Entry, len(d.Pages))
	for i, p := range d.Pages {
		e := archive.Entry{Name: fmt.Sprintf("page-%04d.jpg", i+1), Method: archive.PDFPage, Offset: int64(p.Number)}
		if p.JPEG {
			e.Method, e.Offset, e.Length, e.CompressedSize, e.Size = archive.Bare, p.Offset, p.Length, p.Length, p.Length
		}
		entries[i] = e
		r.Pages = append(r.Pages, Page{Entry: e, MediaType: mediatype.JPEG, Width: p.Width, Height: p.Height})
	}
	if entries[0].Direct() || src.reader.Draw != nil {
		r.Cover = &entries[0]
	}
	r.applyInfo(d.Info)
}

// applyInfo applies the document's metadata, where it is meaningful: programs put file names into the title.
func (r *Result) applyInfo(i pdf.Info) {
	m := &r.Metadata
	if t := strings.ToLower(i.Title); said(t) && !strings.HasPrefix(t, "microsoft word") && !strings.HasSuffix(t, ".pdf") && !strings.HasSuffix(t, ".indd") {
		m.Title = i.Title
	}
	if said(i.Subject) {
		m.Summary = i.Subject
	}
	m.LanguageISO = r.language(i.Language)
	for _, name := range strings.Split(i.Author, ";") {
		if name = strings.TrimSpace(name); said(name) {
			m.Authors = append(m.Authors, Author{Name: name, Role: roles[""]})
		}
	}
	for _, word := range strings.FieldsFunc(i.Keywords, func(c rune) bool { return c == ',' || c == ';' }) {
		if word = strings.TrimSpace(word); said(word) {
			m.Subjects = append(m.Subjects, word)
		}
	}
	m.limitNames()
	if found := isbn.Find(strings.Join([]string{i.Title, i.Subject, i.Keywords, i.Author, i.Creator}, "\n")); len(found) > 0 {
		m.ISBNs = isbnList(found)
		r.ExternalID, r.ExternalSource = found[0], "pdf"
	}
	if i.RightToLeft {
		r.Direction = "rtl"
	}
}

// said reports whether a text is meaningful: programs fill in "untitled" and, like ReportLab, "(anonymous)".
func said(text string) bool {
	switch strings.ToLower(strings.Trim(text, "()")) {
	case "", "untitled", "anonymous", "unspecified":
		return false
	}
	return true
}

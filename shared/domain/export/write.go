package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// section is one kind of rows in a file.
type section struct {
	name   string // series or books
	title  string
	fields []field
	sql    string
	first  bool // of the file
	last   bool
}

// sections returns the sections of an export in order.
func sections(e *source) []section {
	var out []section
	if e.ExportType != ofBooks {
		f := chosen(seriesFields, e.Fields)
		out = append(out, section{name: "series", title: "Series", fields: f, sql: seriesSQL(f)})
	}
	if e.ExportType != ofSeries {
		f := chosen(bookFields, e.BookFields)
		out = append(out, section{name: "books", title: "Books", fields: f, sql: booksSQL(f)})
	}
	out[0].first, out[len(out)-1].last = true, true
	return out
}

// writer writes rows in one format. Its output does not depend on previous output, so that a file can be continued
// anywhere.
type writer interface {
	begin(b *bytes.Buffer, s *section)
	row(b *bytes.Buffer, s *section, n int64, values []any) // n rows of the section precede
	end(b *bytes.Buffer, s *section)
}

var writers = map[string]writer{"csv": csvWriter{}, "json": jsonWriter{}, "md": markdownWriter{}}

// mediaTypes are the media types by format.
var mediaTypes = map[string]string{"csv": "text/csv; charset=utf-8", "json": "application/json", "md": "text/markdown; charset=utf-8"}

// jsonWriter writes an object with an array of objects per section.
type jsonWriter struct{}

func (jsonWriter) begin(b *bytes.Buffer, s *section) {
	if s.first {
		b.WriteByte('{')
	} else {
		b.WriteByte(',')
	}
	fmt.Fprintf(b, "%q:[", s.name)
}

func (jsonWriter) row(b *bytes.Buffer, s *section, n int64, values []any) {
	if n > 0 {
		b.WriteByte(',')
	}
	b.WriteString("\n{")
	for i, f := range s.fields {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(b, "%q:", f.Key)
		e := json.NewEncoder(b)
		e.SetEscapeHTML(false)
		_ = e.Encode(values[i]) // cannot fail: values come from JSON, and a buffer accepts everything
		b.Truncate(b.Len() - 1) // removes the newline
	}
	b.WriteByte('}')
}

func (jsonWriter) end(b *bytes.Buffer, s *section) {
	b.WriteString("\n]")
	if s.last {
		b.WriteString("}\n")
	}
}

// csvWriter writes RFC 4180 with every field quoted, and a header line with the keys.
type csvWriter struct{}

func (csvWriter) begin(b *bytes.Buffer, s *section) {
	for i, f := range s.fields {
		cell(b, i, f.Key)
	}
	b.WriteString("\r\n")
}

func (csvWriter) row(b *bytes.Buffer, s *section, _ int64, values []any) {
	for i := range s.fields {
		text := ""
		switch v := values[i].(type) {
		case string:
			text = harmless(v)
		case []any:
			text = harmless(strings.Join(texts(v), " | "))
		default: // numbers and booleans are no formulas, even with a sign
			text = plain(v)
		}
		cell(b, i, text)
	}
	b.WriteString("\r\n")
}

func (csvWriter) end(*bytes.Buffer, *section) {}

func cell(b *bytes.Buffer, i int, text string) {
	if i > 0 {
		b.WriteByte(',')
	}
	b.WriteByte('"')
	b.WriteString(strings.ReplaceAll(text, `"`, `""`))
	b.WriteByte('"')
}

// harmless returns a text that no spreadsheet takes for a formula. It puts an apostrophe before a character that starts
// one, at the beginning of a cell, or where another program may start a new cell or line.
func harmless(text string) string {
	var out strings.Builder
	begins := true
	for _, c := range text {
		switch {
		case begins && strings.ContainsRune("=+-@＝＋－＠", c):
			out.WriteByte('\'')
			begins = false
		case strings.ContainsRune("\t\r\n;", c):
			begins = true
		case c != ' ' && c != '"' && c != '\u00a0' && c != '\ufeff' && c != '\u200b':
			begins = false
		}
		out.WriteRune(c)
	}
	if text != "" && (text[0] == '\t' || text[0] == '\r' || text[0] == '\n') {
		return "'" + out.String()
	}
	return out.String()
}

// plain formats a value as text; null is empty.
func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		if v {
			return "true"
		}
		return "false"
	case []any:
		return strings.Join(texts(v), ", ")
	}
	return fmt.Sprint(v)
}

func texts(all []any) []string {
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = plain(v)
	}
	return out
}

// markdownWriter writes a heading per row and a list of its fields.
type markdownWriter struct{}

func (markdownWriter) begin(b *bytes.Buffer, s *section) {
	if !s.first {
		b.WriteByte('\n')
	}
	b.WriteString("# " + s.title + "\n")
}

func (markdownWriter) row(b *bytes.Buffer, s *section, _ int64, values []any) {
	for i, f := range s.fields {
		if f.Key == "title" {
			b.WriteString("\n## " + marked(plain(values[i])) + "\n\n")
		}
	}
	for i, f := range s.fields {
		if text := plain(values[i]); text != "" && f.Key != "title" {
			b.WriteString("- **" + f.Label + ":** " + marked(text) + "\n")
		}
	}
}

func (markdownWriter) end(*bytes.Buffer, *section) {}

var escapes = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "&", `\&`, "#", `\#`, "|", `\|`, "~", `\~`)

// marked returns a single-line text with all markup escaped.
func marked(text string) string { return escapes.Replace(strings.Join(strings.Fields(text), " ")) }

package pdf

import (
	"strings"

	"github.com/longbox/longbox/shared/format/xmllimit"
)

// describe fills empty fields from the metadata stream (14.3.2): PDF 2.0 deprecates the information dictionary.
func (d *reader) describe(i *Info, catalog dict) {
	s, ok := d.value(catalog["Metadata"]).(stream)
	if !ok || i.Title != "" && i.Author != "" {
		return
	}
	const most = 1 << 20
	packet, err := d.content(s, most, d.value)
	if err != nil {
		return
	}
	root, _ := xmllimit.Parse(packet, xmllimit.NoDoctype, xmllimit.Limits{}) // content before an error is usable
	for root != nil && root.Name != "RDF" {
		root = root.Child("RDF")
	}
	if root == nil {
		return
	}
	for _, about := range root.Children {
		for name, to := range map[string]*string{"title": &i.Title, "creator": &i.Author,
			"description": &i.Subject, "subject": &i.Keywords, "language": &i.Language} {
			if *to == "" {
				*to = said(about.Child(name))
			}
		}
	}
}

// said returns the value of a property: its text, the first alternative, or the elements of its list.
func said(property *xmllimit.Node) string {
	if property == nil {
		return ""
	}
	var out []string
	for _, list := range property.Children {
		for _, item := range list.Children {
			if item.Name == "li" {
				out = append(out, strings.Join(strings.Fields(item.Content()), " "))
			}
		}
		if list.Name == "Alt" && len(out) > 0 {
			return out[0]
		}
	}
	if len(out) == 0 {
		return strings.Join(strings.Fields(property.Content()), " ")
	}
	return strings.Join(out, "; ")
}

package webpub

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/domain/page"
	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/epub"
	"github.com/longbox/longbox/shared/platform/fault"
)

// A small e-book that names a file with a long name very often has no manifest and no positions, instead of ones that
// take all memory. The measure is the JSON: some characters are long there.
func TestDocumentsAreBounded(t *testing.T) {
	t.Parallel()
	contents := func(name string, n int) *epub.Contents {
		c := &epub.Contents{}
		for range n {
			c.Spine = append(c.Spine, epub.Item{Entry: archive.Entry{Name: name}, MediaType: "application/xhtml+xml"})
			c.TOC = append(c.TOC, epub.Place{Title: "One", Name: name, Places: []epub.Place{{Title: "Two", Name: name, Anchor: "a"}}})
		}
		c.Resources, c.Landmarks, c.PageList = c.Spine, c.TOC, c.TOC
		return c
	}
	for what, tt := range map[string]struct {
		contents *epub.Contents
		fits     bool
	}{
		"an ordinary book":   {contents("OPS/text.xhtml", 1000), true},
		"long names":         {contents(strings.Repeat("x", 1000), 10_000), false},
		"names that grow":    {contents(strings.Repeat("&", 1000), 1500), false},
		"a long table alone": {&epub.Contents{PageList: []epub.Place{{Places: []epub.Place{{Title: strings.Repeat("<", 3<<20)}}}}}, false},
	} {
		b := func() *book {
			return &book{address: "http://127.0.0.1/komga/api/v1/books/1", index: &page.Index{Format: "epub"}, row: &row{}}
		}
		check := func(kind string, out any, err error) {
			data, _ := json.Marshal(out)
			var e *fault.Error
			if tt.fits != (err == nil) || !tt.fits && (!errors.As(err, &e) || e.Code != fault.Unprocessable) || len(data) > maxDocument+maxDocument/4 {
				t.Errorf("%s, %s: %d bytes, %v", what, kind, len(data), err)
			}
		}
		m, err := b().manifestOf(tt.contents)
		check("manifest", m, err)
		if len(tt.contents.Spine) > 0 {
			p, err := b().positionsOf(append(tt.contents.Spine, tt.contents.Spine...))
			check("positions", p, err)
		}
	}
}

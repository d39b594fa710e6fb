package epub

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/testkit"
)

func contentsOf(t *testing.T, lim Limits, f files) (*Contents, []string, error) {
	t.Helper()
	dir, b := pack(t, f)
	var log []string
	c, err := ReadContents(dir, reader(b, &log), lim)
	return c, log, err
}

// outline is a table of contents as text: a line for each place.
func outline(places []Place) string {
	var b strings.Builder
	var write func(places []Place, depth int)
	write = func(places []Place, depth int) {
		for _, p := range places {
			fmt.Fprintf(&b, "%s%s>%s#%s\n", strings.Repeat("-", depth), p.Title, p.Name, p.Anchor)
			write(p.Places, depth+1)
		}
	}
	write(places, 0)
	return b.String()
}

func names(items []Item) (out []string) {
	for _, it := range items {
		out = append(out, it.Entry.Name+" "+it.MediaType)
	}
	return out
}

const manifest = `<item id="n" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
	<item id="c1" href="text/one%20a.xhtml" media-type="application/xhtml+xml"/><item id="c2" href="text/two.xhtml" media-type="application/xhtml+xml"/>
	<item id="css" href="s.css" media-type="text/css"/><item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>
	<item id="gone" href="gone.png" media-type="image/png"/><item id="again" href="s.css" media-type="text/css"/>`

const spine = `<spine toc="ncx" page-progression-direction="rtl"><itemref idref="c1"/><itemref idref="c2" linear="no"/></spine>`

func TestContents(t *testing.T) {
	t.Parallel()
	const nav = `<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"><body><section>
		<nav epub:type="toc"><h1>Contents</h1><ol>
		  <li><a href="text/one%20a.xhtml">One &amp;
			only</a><ol><li><a href="text/one%20a.xhtml#p%202">Part</a></li></ol></li>
		  <li><span>Heading</span><ol><li><a href="text/two.xhtml#x">Two</a></li></ol></li>
		  <li><a href="https://example.org/">Elsewhere</a></li><li><a href="#toc">Here</a></li><li><a href="missing.xhtml">Missing</a></li><li></li>
		</ol></nav>
		<nav epub:type="landmarks"><ol><li><a epub:type="bodymatter" href="text/two.xhtml">Begin</a></li></ol></nav>
		<nav epub:type="page-list"><ol><li><a href="text/two.xhtml#p7">7</a></li></ol></nav>
		<nav epub:type="toc"><ol><li><a href="text/two.xhtml">Second list</a></li></ol></nav></section></body></html>`
	c, log, err := contentsOf(t, Limits{}, withOPF(`<meta property="rendition:layout">pre-paginated</meta>`, manifest, spine,
		"OPS/nav.xhtml", nav, "OPS/text/one a.xhtml", "1", "OPS/text/two.xhtml", "2", "OPS/s.css", "3", "OPS/toc.ncx", "4"))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(log); got != "[META-INF/container.xml OPS/p.opf OPS/nav.xhtml]" {
		t.Errorf("read %s", got)
	}
	if !c.FixedLayout || c.Direction != "rtl" || fmt.Sprint(names(c.Spine)) != "[OPS/text/one a.xhtml application/xhtml+xml OPS/text/two.xhtml application/xhtml+xml]" ||
		!c.Spine[0].Linear || c.Spine[1].Linear {
		t.Errorf("%+v", c)
	}
	if got := fmt.Sprint(names(c.Resources)); got != "[OPS/nav.xhtml application/xhtml+xml OPS/s.css text/css OPS/toc.ncx application/x-dtbncx+xml]" || !c.Resources[0].Nav {
		t.Errorf("resources %s", got)
	}
	const toc = `One & only>OPS/text/one a.xhtml#
-Part>OPS/text/one a.xhtml#p%202
Heading>#
-Two>OPS/text/two.xhtml#x
Elsewhere>#
Here>OPS/nav.xhtml#toc
Missing>#
`
	if got := outline(c.TOC); got != toc {
		t.Errorf("toc:\n%s", got)
	}
	if got := outline(c.Landmarks) + outline(c.PageList); got != "Begin>OPS/text/two.xhtml#\n7>OPS/text/two.xhtml#p7\n" {
		t.Errorf("landmarks and pages:\n%s", got)
	}
}

func TestContentsOfOlderBooks(t *testing.T) {
	t.Parallel()
	const ncx = `<?xml version="1.0"?><!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" "http://www.daisy.org/z3986/2005/ncx-2005-1.dtd"><ncx xmlns="http://www.daisy.org/z3986/2005/ncx/">
		<navMap><navPoint id="a"><navLabel><text>One</text></navLabel><content src="text/one%20a.xhtml"/>
		<navPoint id="b"><navLabel><text>Part</text></navLabel><content src="text/two.xhtml#x"/></navPoint></navPoint></navMap>
		<pageList><pageTarget><navLabel><text>iv</text></navLabel><content src="text/two.xhtml#iv"/></pageTarget></pageList></ncx>`
	const guide = `<guide><reference type="cover" title="Cover" href="text/one%20a.xhtml"/><reference type="text" href="text/two.xhtml#t"/></guide>`
	for name, nav := range map[string]string{"no navigation document": "", "one that is broken": "<", "one without a list": "<html><body><nav type='toc'/></body></html>"} {
		manifest := manifest
		if nav == "" {
			manifest = strings.Replace(manifest, ` properties="nav"`, "", 1)
		}
		c, _, err := contentsOf(t, Limits{}, withOPF("", manifest, spine+guide,
			"OPS/nav.xhtml", nav, "OPS/text/one a.xhtml", "1", "OPS/text/two.xhtml", "2", "OPS/s.css", "3", "OPS/toc.ncx", ncx))
		if err != nil {
			t.Fatal(err)
		}
		if got := outline(c.TOC) + outline(c.PageList) + outline(c.Landmarks); got != "One>OPS/text/one a.xhtml#\n-Part>OPS/text/two.xhtml#x\niv>OPS/text/two.xhtml#iv\nCover>OPS/text/one a.xhtml#\ntext>OPS/text/two.xhtml#t\n" {
			t.Errorf("%s:\n%s", name, got)
		}
		if broken := nav == "<"; broken != (len(c.Warnings) > 0) {
			t.Errorf("%s: warnings %q", name, c.Warnings)
		}
	}
}

func TestContentsAreBounded(t *testing.T) {
	t.Parallel()
	nav := `<html><body><nav type="toc"><ol>` + strings.Repeat(`<li><a href="text/two.xhtml">x</a><ol><li><a href="text/two.xhtml">y</a></li></ol></li>`, 50) + `</ol></nav></body></html>`
	c, _, err := contentsOf(t, Limits{Items: 15}, withOPF("", manifest, spine, "OPS/nav.xhtml", nav, "OPS/text/two.xhtml", "2"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(outline(c.TOC), "\n"); got != 15 {
		t.Errorf("%d lines, the limit is 15", got)
	}
}

// A media type that cannot be one is dropped: the spine may name its item very often.
func TestMediaTypesAreBounded(t *testing.T) {
	t.Parallel()
	long := "application/" + strings.Repeat("x", maxMediaType-len("application/"))
	c, _, err := contentsOf(t, Limits{}, withOPF("", `<item id="a" href="a.xhtml" media-type="`+strings.Repeat("x", 1<<20)+`"/><item id="b" href="b.xhtml" media-type="`+long+`"/>`,
		"<spine>"+strings.Repeat(`<itemref idref="a"/>`, 1000)+`<itemref idref="b"/></spine>`, "OPS/a.xhtml", "1", "OPS/b.xhtml", "2"))
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, it := range c.Spine {
		total += len(it.MediaType)
	}
	if len(c.Spine) != 1001 || total != len(long) || c.Spine[1000].MediaType != long {
		t.Errorf("%d documents, %d bytes of media types", len(c.Spine), total)
	}
}

// Attributes with very many words are not taken apart for each item, and the table of contents not for each word.
func TestWorkForContents(t *testing.T) {
	t.Parallel()
	nav := `<html><body><nav type="` + strings.Repeat("toc ", 500_000) + `landmarks page-list"><ol>` + strings.Repeat("<li/>", 20_000) + `</ol></nav></body></html>`
	few := strings.Replace(nav, "<li/>", `<li><a href="a.xhtml">A</a></li>`, 1)
	properties := strings.Repeat("x ", 1_000_000)
	const items, once = `<item id="a" href="a.xhtml"/><item id="n" href="n.xhtml" properties="nav"/>`, `<spine><itemref idref="a"/></spine>`
	for name, f := range map[string]files{
		"kinds of a list without places": withOPF("", items, once, "OPS/a.xhtml", "1", "OPS/n.xhtml", nav),
		"kinds of a list":                withOPF("", items, once, "OPS/a.xhtml", "1", "OPS/n.xhtml", few),
		"properties": withOPF("", `<item id="a" href="a.xhtml" properties="`+properties+`"/>`,
			"<spine>"+strings.Repeat(`<itemref idref="a"/>`, 20_000)+"</spine>", "OPS/a.xhtml", "1"),
	} {
		dir, b := pack(t, f)
		var log []string
		soon(t, func() {
			c, err := ReadContents(dir, reader(b, &log), Limits{})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if want := outline(c.TOC); outline(c.Landmarks) != want || outline(c.PageList) != want || name == "kinds of a list" && want != "A>OPS/a.xhtml#\n" {
				t.Errorf("%s: %q, %q, %q", name, want, outline(c.Landmarks), outline(c.PageList))
			}
		})
	}
}

func TestContentsOfAStoreInTrouble(t *testing.T) {
	t.Parallel()
	dir, b := pack(t, withOPF("", manifest, spine, "OPS/nav.xhtml", "<html/>", "OPS/text/two.xhtml", "2"))
	trouble := errors.New("the store is away")
	var log []string
	read := reader(b, &log)
	for _, of := range []string{"META-INF/container.xml", "OPS/p.opf", "OPS/nav.xhtml"} {
		_, err := ReadContents(dir, func(e archive.Entry) ([]byte, error) {
			if e.Name == of {
				return nil, trouble
			}
			return read(e)
		}, Limits{})
		if !errors.Is(err, trouble) {
			t.Errorf("%s: %v", of, err)
		}
	}
}

func TestContentsOfFixtures(t *testing.T) {
	t.Parallel()
	root := filepath.Join(testkit.Fixtures(t), "library", "books")
	for _, tt := range []struct {
		name                                      string
		spine, resources, toc, landmarks, printed int
		first                                     string
	}{
		{"Trees/Trees.epub", 3, 6, 2, 0, 0, "Classification>EPUB/c1.xhtml#"},
		{"T. S. Eliot/The Waste Land.epub", 1, 5, 6, 3, 0, "I. THE BURIAL OF THE DEAD>EPUB/wasteland-content.xhtml#ch1"},
		{"夏目漱石/草枕.epub", 16, 8, 14, 4, 0, "一>OPS/xhtml/一.xhtml#"},
		{"Various/Childrens Literature.epub", 3, 4, 31, 2, 92, "SECTION IV FAIRY STORIES—MODERN FANTASTIC TALES>EPUB/s04.xhtml#pgepubid00492"},
	} {
		raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(tt.name)))
		if err != nil {
			t.Fatal(err)
		}
		dir, err := archive.ReadDirectory(raw[max(0, len(raw)-archive.TailBytes):], int64(len(raw)), archive.Limits{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		c, err := ReadContents(dir, func(e archive.Entry) ([]byte, error) {
			r, err := e.Open(bytes.NewReader(raw[e.Offset:e.Offset+e.Length]), archive.Limits{})
			if err != nil {
				return nil, err
			}
			return io.ReadAll(r)
		}, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(outline(c.TOC), "\n")
		got := []int{len(c.Spine), len(c.Resources), strings.Count(outline(c.TOC), "\n"), len(c.Landmarks), len(c.PageList)}
		if !slices.Equal(got, []int{tt.spine, tt.resources, tt.toc, tt.landmarks, tt.printed}) || first != tt.first || len(c.Warnings) > 0 {
			t.Errorf("%s: %v %q %q", tt.name, got, first, c.Warnings)
		}
	}
}

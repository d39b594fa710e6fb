package pdf

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/ascii85"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/format/archive"
)

// builder writes documents.
type builder struct {
	bytes.Buffer
	at []int
}

func (b *builder) object(format string, args ...any) {
	b.at = append(b.at, b.Len())
	fmt.Fprintf(b, "%d 0 obj\n%s\nendobj\n", len(b.at), fmt.Sprintf(format, args...))
}

func (b *builder) finish(trailer string) []byte {
	start := b.Len()
	fmt.Fprintf(b, "xref\n0 %d\n0000000000 65535 f \n", len(b.at)+1)
	for _, o := range b.at {
		fmt.Fprintf(b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(b, "trailer\n<</Size %d/Root 1 0 R %s>>\nstartxref\n%d\n%%%%EOF\n", len(b.at)+1, trailer, start)
	return b.Bytes()
}

const jpegFile = "\xff\xd8\xff\xe0 not really a picture"

// scan is a document of one page that shows an image in some way.
func scan(page, content, image string) []byte {
	b := &builder{}
	b.WriteString("%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
	b.object("<</Type/Catalog/Pages 2 0 R/Lang(fr)/ViewerPreferences<</Direction/R2L>>>>")
	b.object("<</Type/Pages/Count 1/Kids[3 0 R]/MediaBox[0 0 200 300]>>")
	b.object("<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</XObject<</Im0 5 0 R>>>>%s>>", page)
	b.object("<</Length %d>>stream\n%s\nendstream", len(content), content)
	b.object("<</Type/XObject/Subtype/Image/Width 20/Height 30/BitsPerComponent 8/Length 6 0 R%s>>stream\r\n%s\nendstream", image, jpegFile)
	b.object("%d", len(jpegFile))
	b.object("<</Title(\xfe\xff\x00P\x00a\x00g\x00e)/Author(Boulet \\(B.\\))>>")
	return b.finish("/Info 7 0 R")
}

// withState are the resources of a scan with a graphics state.
func withState(entries string) string {
	return "/Resources<</XObject<</Im0 5 0 R>>/ExtGState<</GS0<<" + entries + ">>>>>>"
}

const (
	plainImage = "/Filter/DCTDecode/ColorSpace/DeviceRGB"
	fill       = "q 200 0 0 300 0 0 cm /Im0 Do Q"
)

func open(b []byte, lim Limits) (*Document, error) {
	return Open(context.Background(), bytes.NewReader(b), int64(len(b)), lim)
}

func TestPagesThatAreOneJPEG(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		page, content, image string
		jpeg                 bool
	}{
		"plain":                  {"", fill, plainImage, true},
		"filter in an array":     {"", fill, "/Filter[/DCTDecode]/ColorSpace[/CalRGB<<>>]", true},
		"grey":                   {"", fill, "/Filter/DCTDecode/ColorSpace/DeviceGray", true},
		"two transformations":    {"", "q 2 0 0 3 0 0 cm 100 0 0 100 0 0 cm /Im0 Do Q", plainImage, true},
		"clipped to the page":    {"", "q 0 0 200 300 re W n 200 0 0 300 0 0 cm /Im0 Do Q", plainImage, true},
		"with invisible text":    {"", fill + " BT /F1 10 Tf 3 Tr 10 10 Td (words) Tj ET", plainImage, true},
		"marked":                 {"", "/P <</MCID 0>> BDC " + fill + " EMC", plainImage, true},
		"with visible text":      {"", fill + " BT /F1 10 Tf 10 10 Td (words) Tj ET", plainImage, false},
		"turned page":            {"/Rotate 90", fill, plainImage, false},
		"mirrored":               {"", "q -200 0 0 300 200 0 cm /Im0 Do Q", plainImage, false},
		"upside down":            {"", "q 200 0 0 -300 0 300 cm /Im0 Do Q", plainImage, false},
		"part of the page":       {"", "q 100 0 0 150 0 0 cm /Im0 Do Q", plainImage, false},
		"larger than the page":   {"", "q 400 0 0 600 0 0 cm /Im0 Do Q", plainImage, false},
		"cropped":                {"/CropBox[0 0 100 100]", fill, plainImage, false},
		"cropped to more":        {"/CropBox[-100 -150 300 450]", "q 400 0 0 600 -100 -150 cm /Im0 Do Q", plainImage, false},
		"cropped to nothing":     {"/CropBox[900 900 999 999]", fill, plainImage, true},
		"cropped to all":         {"/CropBox[-1 -1 999 999]", fill, plainImage, true},
		"clipped":                {"", "q 0 0 20 20 re W n 200 0 0 300 0 0 cm /Im0 Do Q", plainImage, false},
		"twice":                  {"", fill + " " + fill, plainImage, false},
		"a line over it":         {"", fill + " 0 0 m 10 10 l S", plainImage, false},
		"a state that is unread": {"", "/GS0 gs " + fill, plainImage, false},
		"a plain state":          {withState("/Type/ExtGState/CA 1/ca 1.0/BM/Normal/SMask/None/OP true/SA true/TR2/Default"), "/GS0 gs " + fill, plainImage, true},
		"half transparent":       {withState("/ca .5"), "/GS0 gs " + fill, plainImage, false},
		"blended":                {withState("/BM/Multiply"), "/GS0 gs " + fill, plainImage, false},
		"masked by its state":    {withState("/SMask<</S/Alpha>>"), "/GS0 gs " + fill, plainImage, false},
		"in other colours":       {withState("/TR 7 0 R"), "/GS0 gs " + fill, plainImage, false},
		"nothing":                {"", "q Q", plainImage, false},
		"with a mask":            {"", fill, plainImage + "/SMask 6 0 R", false},
		"an image in a layer":    {"", fill, plainImage + "/OC 7 0 R", false},
		"content in a layer":     {"", "/OC /MC0 BDC " + fill + " EMC", plainImage, false},
		"inverted":               {"", fill, plainImage + "/Decode[1 0 1 0 1 0]", false},
		"four colours":           {"", fill, "/Filter/DCTDecode/ColorSpace/DeviceCMYK", false},
		"another filter":         {"", fill, "/Filter/JPXDecode/ColorSpace/DeviceRGB", false},
		"two filters":            {"", fill, "/Filter[/FlateDecode/DCTDecode]/ColorSpace/DeviceRGB", false},
		"bad content":            {"", "q ] 200", plainImage, false},
		"stretched":              {"/MediaBox[0 0 300 200]", "q 300 0 0 200 0 0 cm /Im0 Do Q", plainImage, false},
		"a stamp over it":        {"/Annots[<</Subtype/Stamp/Rect[10 10 90 90]>>]", fill, plainImage, false},
		"a form's field":         {"/Annots[<</Subtype/Link>><</Subtype/Widget/F 4/Rect[90 90 10 10]>>]", fill, plainImage, false},
		"links, and a note":      {"/Annots[<</Subtype/Link/Rect[10 10 90 90]>><</Subtype/Popup/Rect[10 10 90 90]>>]", fill, plainImage, true},
		"a hidden stamp":         {"/Annots[<</Subtype/Stamp/F 2/Rect[10 10 90 90]>>]", fill, plainImage, true},
		"a signature unseen":     {"/Annots[<</Subtype/Widget/F 4/Rect[0 0 0 0]>>]", fill, plainImage, true},
	} {
		b := scan(c.page, c.content, c.image)
		doc, err := open(b, Limits{})
		if err != nil || len(doc.Pages) != 1 {
			t.Errorf("%s: %+v, %v", name, doc, err)
			continue
		}
		p := doc.Pages[0]
		if p.JPEG != c.jpeg {
			t.Errorf("%s: %+v", name, p)
		}
		if p.JPEG && (string(b[p.Offset:p.Offset+p.Length]) != jpegFile || p.Width != 20 || p.Height != 30) {
			t.Errorf("%s: %q", name, b[p.Offset:p.Offset+p.Length])
		}
		if i := doc.Info; i.Title != "Page" || i.Author != "Boulet (B.)" || i.Language != "fr" || !i.RightToLeft {
			t.Errorf("%s: %+v", name, i)
		}
	}
}

// The orientation in a JPEG file is ignored within a document, while a browser would apply it.
func TestTurnedJPEG(t *testing.T) {
	t.Parallel()
	for exif, want := range map[string]bool{
		"": true,
		"MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x01\x00\x00":                                              true,
		"MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00":                                              false,
		"II*\x00\x08\x00\x00\x00\x02\x00\x0f\x01\x02\x00\x01\x00\x00\x00x\x00\x00\x00\x12\x01\x03\x00\x01\x00\x00\x00\x03\x00\x00\x00": false,
		"II*\x00\xff\xff\xff\xff": true, "II*\x00\x07\x00\x00\x00\x00": true, "MM\x00*\x00\x00\x00\x08\xff\xff\x00": true, "I": true,
	} {
		file := "\xff\xd8\xff\xe0\x00\x04ab\xff\xe1" + string([]byte{0, byte(8 + len(exif))}) + "Exif\x00\x00" + exif + "\xff\xdb\x00\x02"
		b := &builder{}
		b.WriteString("%PDF-1.4\n")
		b.object("<</Type/Catalog/Pages 2 0 R>>")
		b.object("<</Type/Pages/Count 1/Kids[3 0 R]/MediaBox[0 0 200 300]>>")
		b.object("<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</XObject<</Im0 5 0 R>>>>>>")
		b.object("<</Length %d>>stream\n%s\nendstream", len(fill), fill)
		b.object("<</Subtype/Image/Width 20/Height 30/Length %d%s>>stream\n%s\nendstream", len(file), plainImage, file)
		doc, err := open(b.finish(""), Limits{})
		if err != nil || len(doc.Pages) != 1 || doc.Pages[0].JPEG != want {
			t.Errorf("%q: %+v, %v", exif, doc, err)
		}
	}
}

// If the length of an image is wrong, viewers find its end themselves. Its range of the file would be only a part.
func TestLengthOfJPEG(t *testing.T) {
	t.Parallel()
	for more, want := range map[int]bool{0: true, 1: true, -2: true, -30: false} {
		file := jpegFile + strings.Repeat("x", 100)
		b := &builder{}
		b.WriteString("%PDF-1.4\n")
		b.object("<</Type/Catalog/Pages 2 0 R>>")
		b.object("<</Type/Pages/Count 1/Kids[3 0 R]/MediaBox[0 0 200 300]>>")
		b.object("<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</XObject<</Im0 5 0 R>>>>>>")
		b.object("<</Length %d>>stream\n%s\nendstream", len(fill), fill)
		b.object("<</Subtype/Image/Width 20/Height 30/Length %d%s>>stream\n%s\nendstream", len(file)+more, plainImage, file)
		if d, err := open(b.finish(""), Limits{}); err != nil || len(d.Pages) != 1 || d.Pages[0].JPEG != want {
			t.Errorf("%d bytes more: %+v, %v", more, d, err)
		}
	}
}

// Structural streams end at their keyword, even if their length is wrong.
func TestLengthOfStreams(t *testing.T) {
	t.Parallel()
	whole := modern()
	length := regexp.MustCompile(`/Length \d+`)
	for _, wrong := range []string{"/Length 0", "/Length 30", "/Length 9999", "/Length 250", "/Size 10"} {
		at := length.FindIndex(whole)
		b := bytes.Clone(whole)
		copy(b[at[0]:at[1]], wrong+strings.Repeat(" ", at[1]-at[0]))
		if d, err := open(b, Limits{}); err != nil || len(d.Pages) != 3 {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	over := fill + strings.Repeat(" ", 30) + "0 0 9 9 re f"
	b := &builder{}
	b.WriteString("%PDF-1.4\n")
	b.object("<</Type/Catalog/Pages 2 0 R>>")
	b.object("<</Type/Pages/Count 1/Kids[3 0 R]/MediaBox[0 0 200 300]>>")
	b.object("<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</XObject<</Im0 5 0 R>>>>>>")
	b.object("<</Length %d>>stream\n%s\nendstream", len(fill), over)
	b.object("<</Subtype/Image/Width 20/Height 30/Length %d%s>>stream\n%s\nendstream", len(jpegFile), plainImage, jpegFile)
	if d, err := open(b.finish(""), Limits{}); err != nil || len(d.Pages) != 1 || d.Pages[0].JPEG {
		t.Errorf("what is drawn behind the length: %+v, %v", d, err)
	}
}

// An invalid value in a dictionary only loses that value.
func TestBadValues(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"/X >>", "/X/Y/Z >>", "/X nan>>", "/X[0 0 nan 1.#IND]>>", "/X 0,5>>", "/X 612.00.00>>", "/X<12 zz>>>", "/X True>>", "/X[foo]>>"} {
		b := &builder{}
		b.WriteString("%PDF-1.4\n")
		b.object("<</Type/Catalog/Pages 2 0 R>>")
		b.object("<</Type/Pages/Kids[3 0 R]>>")
		b.object("<</Type/Page%s", bad)
		b.object("<</Title(Page)%s", bad)
		if d, err := open(b.finish("/Info 4 0 R"), Limits{}); err != nil || len(d.Pages) != 1 || d.Info.Title != "Page" {
			t.Errorf("%s: %+v, %v", bad, d, err)
		}
	}
}

// The metadata stream fills fields that the information dictionary lacks.
func TestMetadataStream(t *testing.T) {
	t.Parallel()
	const packet = `<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
		<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/">
		<dc:title><rdf:Alt><rdf:li xml:lang="x-default">Die Möwe</rdf:li><rdf:li xml:lang="en">The Gull</rdf:li></rdf:Alt></dc:title>
		<dc:creator><rdf:Seq><rdf:li>A. B.</rdf:li><rdf:li>C &amp; D</rdf:li></rdf:Seq></dc:creator>
		<dc:language><rdf:Bag><rdf:li>de</rdf:li></rdf:Bag></dc:language></rdf:Description>
		<rdf:Description rdf:about=""><dc:subject><rdf:Bag><rdf:li>sea</rdf:li><rdf:li>birds</rdf:li></rdf:Bag></dc:subject>
		<dc:description>A bird</dc:description></rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="w"?>`
	for info, want := range map[string]Info{
		"":                         {Title: "Die Möwe", Author: "A. B.; C & D", Language: "de", Keywords: "sea; birds", Subject: "A bird"},
		"/Title(T)/Subject(S)":     {Title: "T", Author: "A. B.; C & D", Language: "de", Keywords: "sea; birds", Subject: "S"},
		"/Title(T)/Author(A)":      {Title: "T", Author: "A"},
		"/Title(T)/Author 3 0 R":   {Title: "T", Author: "A. B.; C & D", Language: "de", Keywords: "sea; birds", Subject: "A bird"},
		"/Creator(a program)/X(Y)": {Title: "Die Möwe", Author: "A. B.; C & D", Language: "de", Keywords: "sea; birds", Subject: "A bird", Creator: "a program"},
	} {
		b := &builder{}
		b.WriteString("%PDF-2.0\n")
		b.object("<</Type/Catalog/Pages 2 0 R/Metadata 4 0 R>>")
		b.object("<</Type/Pages/Kids[3 0 R]>>")
		b.object("<</Type/Page>>")
		b.object("<</Type/Metadata/Subtype/XML/Length %d>>stream\n%s\nendstream", len(packet), packet)
		b.object("<<%s>>", info)
		if d, err := open(b.finish("/Info 5 0 R"), Limits{}); err != nil || d.Info != want {
			t.Errorf("%s: %+v, %v", info, d, err)
		}
	}
}

// Some programs start a table with object 1, although its first line is that of object 0.
func TestTableFromOne(t *testing.T) {
	t.Parallel()
	b := bytes.Replace(scan("", fill, plainImage), []byte("xref\n0 8\n"), []byte("xref\n1 8\n"), 1)
	if doc, err := open(b, Limits{}); err != nil || len(doc.Pages) != 1 || !doc.Pages[0].JPEG || doc.Info.Title != "Page" {
		t.Errorf("%+v, %v", doc, err)
	}
}

// TestObjectStreams reads a document of version 1.5: its objects and its table are compressed.
func TestObjectStreams(t *testing.T) {
	t.Parallel()
	b := modern()
	doc, err := open(b, Limits{})
	if err != nil || len(doc.Pages) != 3 || doc.Info.Title != "Packed" {
		t.Fatalf("%+v, %v", doc, err)
	}
	if other, err := open(append([]byte("junk\n"), b...), Limits{}); err != nil || len(other.Pages) != 3 {
		t.Errorf("with something before it: %v", err)
	}
}

// Some programs list a page twice, as a blank one, and make the tree a chain in which each node holds one page and the
// rest.
func TestTreesOfPages(t *testing.T) {
	t.Parallel()
	twice := &builder{}
	twice.WriteString("%PDF-1.4\n")
	twice.object("<</Type/Catalog/Pages 2 0 R>>")
	twice.object("<</Type/Pages/Count 3/Kids[3 0 R 4 0 R 3 0 R]>>")
	twice.object("<</Type/Page>>")
	twice.object("<</Type/Page>>")
	chain := &builder{}
	chain.WriteString("%PDF-1.4\n")
	chain.object("<</Type/Catalog/Pages 2 0 R>>")
	for i := range 900 {
		chain.object("<</Type/Pages/Count %d/Kids[<</Type/Page>>%d 0 R]>>", 901-i, i+3)
	}
	chain.object("<</Type/Page>>")
	for want, b := range map[int]*builder{3: twice, 901: chain} {
		if d, err := open(b.finish(""), Limits{}); err != nil || len(d.Pages) != want {
			t.Errorf("%d pages: %v", want, err)
		}
	}
}

// A listed but missing page is left out. PDFium, which takes page numbers, counts it.
func TestMissingPages(t *testing.T) {
	t.Parallel()
	b := &builder{}
	b.WriteString("%PDF-1.4\n")
	b.object("<</Type/Catalog/Pages 2 0 R>>")
	b.object("<</Type/Pages/Count 5/Kids[3 0 R 9 0 R 4 0 R null 3 0 R]>>")
	b.object("<</Type/Page>>")
	b.object("<</Type/Page>>")
	d, err := open(b.finish(""), Limits{})
	if err != nil || len(d.Pages) != 3 || d.Pages[0].Number != 0 || d.Pages[1].Number != 2 || d.Pages[2].Number != 4 {
		t.Errorf("%+v, %v", d, err)
	}
}

// Data appended to a document, such as zeros up to a disk block, is not part of it.
func TestAddedToTheEnd(t *testing.T) {
	t.Parallel()
	for _, n := range []int{100, 3000, 100_000} {
		if d, err := open(append(modern(), make([]byte, n)...), Limits{}); err != nil || len(d.Pages) != 3 {
			t.Errorf("%d zeros: %v", n, err)
		}
	}
}

// Objects of a cross-reference stream beside a table are free in the table, for older programs, but exist. Objects that
// an update frees stay free.
func TestHiddenObjects(t *testing.T) {
	t.Parallel()
	b := &builder{}
	b.WriteString("%PDF-1.5\n")
	b.object("<</Type/Catalog/Pages 2 0 R>>")
	packed := "2 0 3 34 7 49 <</Type/Pages/Kids[3 0 R 3 0 R]>> <</Type/Page>> <</Title(Hidden)>>"
	stream := b.Len()
	fmt.Fprintf(b, "4 0 obj<</Type/ObjStm/N 3/First 14/Length %d>>stream\n%s\nendstream endobj\n", len(packed), packed)
	table := b.Len()
	b.WriteString("5 0 obj<</Type/XRef/Size 8/Index[2 2 7 1]/W[1 1 1]/Filter/ASCIIHexDecode/Length 18>>stream\n020400020401020402\nendstream endobj\n")
	first := b.Len()
	fmt.Fprintf(b, "xref\n0 8\n0 65535 f \n%010d 0 n \n0 0 f \n0 0 f \n%010d 0 n \n%010d 0 n \n0 0 f \n0 0 f \n", b.at[0], stream, table)
	fmt.Fprintf(b, "trailer<</Size 8/Root 1 0 R/Info 7 0 R/XRefStm %d>>\nstartxref\n%d\n%%%%EOF\n", table, first)
	if d, err := open(b.Bytes(), Limits{}); err != nil || len(d.Pages) != 2 || d.Info.Title != "Hidden" {
		t.Errorf("%+v, %v", d, err)
	}
	second := b.Len()
	fmt.Fprintf(b, "xref\n7 1\n0 1 f \ntrailer<</Size 8/Root 1 0 R/Info 7 0 R/Prev %d>>\nstartxref\n%d\n%%%%EOF\n", first, second)
	if d, err := open(b.Bytes(), Limits{}); err != nil || len(d.Pages) != 2 || d.Info.Title != "" {
		t.Errorf("updated: %+v, %v", d, err)
	}
}

// Structure may be written in ASCII, by programs whose output was sent by mail.
func TestStructureInASCII(t *testing.T) {
	t.Parallel()
	packed := "2 0 3 28 <</Type/Pages/Kids[3 0 R]>> <</Type/Page>>" + strings.Repeat(" ", 40) + "\x00\x00\x00\x00"
	in85 := func(s string) string {
		out := make([]byte, ascii85.MaxEncodedLen(len(s)))
		return string(out[:ascii85.Encode(out, []byte(s))])
	}
	open := func(filter, content string, lim Limits) (*Document, error) {
		b := &builder{}
		b.WriteString("%PDF-1.5\n")
		b.object("<</Type/Catalog/Pages 2 0 R>>")
		stream := b.Len()
		fmt.Fprintf(b, "4 0 obj<</Type/ObjStm/N 2/First 9/Filter%s/Length %d>>stream\n%s\nendstream endobj\n", filter, len(content), content)
		table := b.Len()
		entries := fmt.Sprintf("01%04x00 01%04x00 02000400 02000401 01%04x00", b.at[0], stream, stream)
		fmt.Fprintf(b, "5 0 obj<</Type/XRef/Size 5/Root 1 0 R/W[1 2 1]/Filter/ASCIIHexDecode/Length %d>>stream\n%s\nendstream endobj\n", len(entries), entries)
		fmt.Fprintf(b, "startxref\n%d\n%%%%EOF\n", table)
		return open(b.Bytes(), lim)
	}
	for filter, content := range map[string]string{
		"/ASCIIHexDecode":               fmt.Sprintf("%X>", packed),
		"/ASCII85Decode":                in85(packed) + "~>",
		"/A85":                          "<~" + in85(packed)[:20] + "\n" + in85(packed)[20:] + " ~>",
		"[/ASCII85Decode/FlateDecode]":  in85(deflated(packed)) + "~>",
		"[/ASCII85Decode /FlateDecode]": in85(deflated(packed)), // the mark is missing
	} {
		if d, err := open(filter, content, Limits{}); err != nil || len(d.Pages) != 1 {
			t.Errorf("%s: %+v, %v", filter, d, err)
		}
	}
	for content, lim := range map[string]Limits{"vvvvvv~>": {}, in85(packed) + strings.Repeat("z", 300) + "~>": {StreamBytes: 1200}} {
		if _, err := open("/ASCII85Decode", content, lim); err == nil {
			t.Errorf("%.10s… is read", content)
		}
	}
}

// A node of the page tree that is its own ancestor is left out. A node that occurs twice is shown twice.
func TestPagesAboveThemselves(t *testing.T) {
	t.Parallel()
	b := &builder{}
	b.WriteString("%PDF-1.4\n")
	b.object("<</Type/Catalog/Pages 2 0 R>>")
	b.object("<</Type/Pages/Kids[3 0 R 2 0 R 4 0 R 4 0 R 5 0 R]>>")
	b.object("<</Type/Page/MediaBox[0 0 3 3]>>")
	b.object("<</Type/Pages/Kids[2 0 R 5 0 R 4 0 R]>>")
	b.object("<</Type/Page/MediaBox[0 0 5 5]>>")
	d, err := open(b.finish(""), Limits{})
	if err != nil || len(d.Pages) != 4 || d.Pages[3].Number != 3 {
		t.Errorf("%+v, %v", d, err)
	}
}

func deflated(s string) string {
	var out bytes.Buffer
	z := zlib.NewWriter(&out)
	_, _ = z.Write([]byte(s))
	_ = z.Close()
	return out.String()
}

func modern() []byte {
	parts := []string{"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Count 3/Kids[3 0 R 3 0 R 4 0 R]>>", "<</Type/Page>>", "<</Type/Pages/Kids[5 0 R 6 0 R]>>",
		"<</Type/Page>>", "<</Type/Page>>", "<</Title(Packed)>>"}
	parts[1] = "<</Type/Pages/Count 3/Kids[3 0 R 4 0 R]>>"
	var index, body strings.Builder
	for i, p := range parts {
		fmt.Fprintf(&index, "%d %d ", i+1, body.Len())
		body.WriteString(p + " ")
	}
	packed := deflated(index.String() + body.String())
	var b bytes.Buffer
	b.WriteString("%PDF-1.5\n")
	at := b.Len()
	fmt.Fprintf(&b, "8 0 obj<</Type/ObjStm/N %d/First %d/Filter/FlateDecode/Length %d>>stream\n%s\nendstream endobj\n", len(parts), index.Len(), len(packed), packed)
	start := b.Len()
	// Rows with the predictor that every writer uses: the difference to the row above.
	rows := [][4]byte{{0, 0, 0, 0}}
	for i := range parts {
		rows = append(rows, [4]byte{2, 0, 8, byte(i)})
	}
	rows = append(rows, [4]byte{1, byte(at >> 8), byte(at), 0}, [4]byte{1, byte(start >> 8), byte(start), 0})
	var table strings.Builder
	var above [4]byte
	for _, r := range rows {
		table.WriteByte(2)
		for i := range r {
			table.WriteByte(r[i] - above[i])
		}
		above = r
	}
	z := deflated(table.String())
	fmt.Fprintf(&b, "9 0 obj<</Type/XRef/Size 10/W[1 2 1]/Root 1 0 R/Info 7 0 R/Filter/FlateDecode/DecodeParms<</Predictor 12/Columns 4>>/Length %d>>stream\n%s\nendstream endobj\nstartxref\n%d\n%%%%EOF", len(z), z, start)
	return b.Bytes()
}

func kindOf(err error) archive.Kind {
	var p *archive.Error
	if errors.As(err, &p) {
		return p.Kind
	}
	return archive.Kind(fmt.Sprint(err))
}

func TestRefused(t *testing.T) {
	t.Parallel()
	whole := scan("", fill, plainImage)
	circle := &builder{}
	circle.WriteString("%PDF-1.4\n")
	circle.object("<</Type/Catalog/Pages 2 0 R>>")
	circle.object("<</Type/Pages/Kids[2 0 R]>>")
	empty := &builder{}
	empty.WriteString("%PDF-1.4\n")
	empty.object("<</Type/Catalog/Pages 2 0 R>>")
	empty.object("<</Type/Pages/Kids[]>>")
	sealed := &builder{}
	sealed.WriteString("%PDF-1.4\n")
	sealed.object("<</Type/Catalog>>")
	bomb := deflated(strings.Repeat("0", 1<<20))
	stream := fmt.Sprintf("%%PDF-1.5\n1 0 obj<</Type/XRef/Size 9/W[1 2 1]/Filter/FlateDecode/Length %d>>stream\n%s\nendstream endobj\nstartxref\n9\n", len(bomb), bomb)
	for name, c := range map[string]struct {
		data []byte
		lim  Limits
		kind archive.Kind
	}{
		"no document":        {[]byte("hello, world, this is text"), Limits{}, archive.NotArchive},
		"cut short":          {whole[:300], Limits{}, archive.Truncated},
		"encrypted":          {sealed.finish("/Encrypt 1 0 R"), Limits{}, archive.Encrypted},
		"cut in an update":   {append(bytes.Clone(whole), "9 0 obj<</Length 9999>>stream\n"+strings.Repeat("x", 3000)...), Limits{}, archive.Truncated},
		"pages in a circle":  {circle.finish(""), Limits{}, archive.Corrupt},
		"no pages":           {empty.finish(""), Limits{}, archive.NoPages},
		"objects":            {whole, Limits{Objects: 3}, archive.TooLarge},
		"objects looked at":  {whole, Limits{Requests: 1}, archive.TooLarge},
		"pages":              {modern(), Limits{Pages: 2}, archive.TooLarge},
		"a stream":           {[]byte(stream), Limits{StreamBytes: 10_000}, archive.TooLarge},
		"a table far off":    {[]byte("%PDF-1.4\nstartxref\n99999999999\n%%EOF"), Limits{}, archive.Corrupt},
		"a table of objects": {[]byte("%PDF-1.4\nxref\n0 99999999999\nstartxref\n9\n%%EOF"), Limits{}, archive.TooLarge},
		"nested":             {[]byte("%PDF-1.4\n1 0 obj " + strings.Repeat("[", 100_000) + "\nstartxref\n9\n%%EOF"), Limits{}, archive.Corrupt},
	} {
		if doc, err := open(c.data, c.lim); kindOf(err) != c.kind {
			t.Errorf("%s: %+v, %v, want %s", name, doc, err, c.kind)
		}
	}
}

func TestStoreFailureIsNoDamage(t *testing.T) {
	t.Parallel()
	b := modern()
	broken := errors.New("connection reset")
	if _, err := Open(t.Context(), failing{broken}, int64(len(b)), Limits{}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

type failing struct{ err error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.err }

// Pages are read in goroutines of their own, where a panic would end the process.
func TestPanicInAPage(t *testing.T) {
	t.Parallel()
	b := scan("", fill, plainImage)
	r := panicking{bytes.NewReader(b), int64(bytes.Index(b, []byte("4 0 obj")))}
	if _, err := Open(t.Context(), r, int64(len(b)), Limits{}); kindOf(err) != archive.Corrupt || !strings.Contains(err.Error(), "page 1 crashed: a bug") {
		t.Errorf("%v", err)
	}
}

// panicking panics when a read begins at an offset.
type panicking struct {
	*bytes.Reader
	at int64
}

func (p panicking) ReadAt(b []byte, off int64) (int, error) {
	if off == p.at {
		panic("a bug")
	}
	return p.Reader.ReadAt(b, off)
}

func FuzzOpen(f *testing.F) {
	f.Add(scan("", fill, plainImage))
	f.Add(modern())
	for _, file := range encrypted(f) {
		f.Add(file)
	}
	f.Add([]byte("%PDF-1.4\nxref\n0 1\n0000000000 65535 f \ntrailer<</Root 1 0 R/Prev 9>>\nstartxref\n9\n"))
	f.Add(append(modern()[:len(modern())-20], strings.Repeat("/ObjStm trailer /XRef /Catalog ", 20)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		doc, err := open(b, Limits{Objects: 1000, Pages: 100, StreamBytes: 1 << 20, Requests: 1000})
		if err != nil {
			if !errors.As(err, new(*archive.Error)) {
				t.Fatal(err)
			}
			return
		}
		for _, p := range doc.Pages {
			if p.JPEG && (p.Offset < 0 || p.Length <= 0 || p.Offset+p.Length > int64(len(b))) {
				t.Fatalf("outside the file: %+v", p)
			}
		}
	})
}

func FuzzContent(f *testing.F) {
	f.Add([]byte(fill))
	f.Add([]byte("q 0 0 200 300 re W n BT 3 Tr (x) Tj ET Q"))
	f.Fuzz(func(t *testing.T, b []byte) {
		page := rectangle{0, 0, 200, 300}
		plain := func(state name) bool { return state == "GS0" }
		shown, ok := onlyImage(b, page, plain)
		if ok != (shown != "") {
			t.Fatalf("%v, and shows %q", ok, shown)
		}
		if again, _ := onlyImage(append(slices.Clip(b), "\n% end"...), page, plain); again != shown {
			t.Fatalf("shows %q, and with a comment at the end %q", shown, again)
		}
		if _, ok = onlyImage(append(slices.Clip(b), "\n/Other Do"...), page, plain); ok && shown != "" {
			t.Fatalf("two images are shown as one: %q and another", shown)
		}
		l := &lexer{b: b, refs: true, end: true}
		for range 1000 {
			if _, err := l.object(0); err != nil {
				return
			}
		}
	})
}

// Texts are decoded as they are written: UTF-16 of either order, with or without the language in front, UTF-8,
// PDFDocEncoding.
func TestTexts(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"\xfe\xff\x00\xc4\x00b": "Äb", "\xff\xfe\xc4\x00b\x00": "Äb", "\xff\xfe\xc4\x00b": "Ä",
		"\xfe\xff\x00\x1b\x00d\x00e\x00D\x00E\x00\x1b\x00\xc4": "Ä", "\xef\xbb\xbfÄ": "Ä", "Äb": "Äb", "\xc4b \x80\xa0": "Äb •€",
	} {
		if got := plain(text(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

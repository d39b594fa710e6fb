package analysis_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/domain/analysis"
	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/testkit"
)

// read analyses one file.
func read(t *testing.T, name string, data []byte) *analysis.Result {
	t.Helper()
	s3 := testkit.StartS3(t, "books")
	testkit.WriteFile(t, s3.Dir, "books/"+name, data)
	listed, err := first(s3.Store)
	if err != nil {
		t.Fatal(err)
	}
	res, err := analysis.File(t.Context(), &content.Reader{Store: s3.Store}, "books", listed, analysis.Options{CoverImage: true})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// The page that ComicInfo.xml calls the front cover is the cover.
func TestFrontCover(t *testing.T) {
	res := read(t, "a.cbz", testkit.Comic(t, 1, 4, `<Pages><Page Image="0" Type="InnerCover"/><Page Image="2" Type="FrontCover"/><Page Image="3" Type="FrontCover"/></Pages>`))
	if several := read(t, "a.cbz", testkit.Comic(t, 1, 2, `<Pages><Page Image="1" Type="FrontCover Story"/></Pages>`)); several.Cover.Name != "2.jpg" {
		t.Errorf("of several types: cover %s", several.Cover.Name)
	}
	if res.Cover == nil || res.Cover.Offset != res.Pages[2].Offset || len(res.CoverImage) == 0 {
		t.Errorf("cover %+v, %d bytes; page 3 is %+v", res.Cover, len(res.CoverImage), res.Pages[2].Entry)
	}
}

// Sizes in ComicInfo.xml count as long as they belong to the current page.
func TestSizesOfPages(t *testing.T) {
	jpeg := len(testkit.JPEG(t, 60, 90, 101))
	for info, want := range map[string]int{
		`<Page Image="0" ImageWidth="600" ImageHeight="900"/>`:                                 600,
		fmt.Sprintf(`<Page Image="0" ImageSize="%d" ImageWidth="600" ImageHeight="9"/>`, jpeg): 600,
		`<Page Image="0" ImageSize="123456" ImageWidth="600" ImageHeight="900"/>`:              60,
		`<Page Image="0" ImageSize="123456"/>`:                                                 60,
	} {
		if p := read(t, "a.cbz", testkit.Comic(t, 1, 1, "<Pages>"+info+"</Pages>")).Pages[0]; p.Width != want {
			t.Errorf("%s: %d x %d, want %d wide", info, p.Width, p.Height, want)
		}
	}
}

// A damaged first page does not hide ComicInfo.xml, which is read in the same pass.
func TestComicInfoBesideADamagedPage(t *testing.T) {
	page := testkit.JPEG(t, 60, 90, 1)
	data := testkit.SevenZip(t, testkit.File{Name: "ComicInfo.xml", Data: []byte("<ComicInfo><Title>T</Title></ComicInfo>")}, testkit.File{Name: "1.jpg", Data: page})
	le, sum := binary.LittleEndian, crc32.ChecksumIEEE
	header := data[32+le.Uint64(data[12:]):]
	header[bytes.Index(header, le.AppendUint32(nil, sum(page)))]++
	le.PutUint32(data[28:], sum(header))
	le.PutUint32(data[8:], sum(data[12:32]))
	res := read(t, "a.cb7", data)
	if res.Metadata.Title != "T" || len(res.Warnings) != 1 || !strings.HasPrefix(res.Warnings[0], "the cover cannot be read: ") {
		t.Errorf("title %q, warnings %q", res.Metadata.Title, res.Warnings)
	}
}

// Two story arcs may have the same number.
func TestStoryArcs(t *testing.T) {
	res := read(t, "a.cbz", testkit.Comic(t, 1, 1, "<StoryArc>Knightfall, Sacrifice</StoryArc><StoryArcNumber>3,3</StoryArcNumber>"))
	custom := fmt.Sprint(res.Metadata.Custom["comicinfo"])
	if want := "map[storyArc:[Knightfall Sacrifice] storyArcNumber:[3 3]]"; custom != want {
		t.Errorf("%s, want %s", custom, want)
	}
}

// document returns a PDF of one page with the given metadata.
func document(info string) []byte {
	pdf := "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n" +
		"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 10 10]>>endobj\n4 0 obj<<" + info + ">>endobj\n"
	at := len(pdf)
	pdf += "xref\n0 5\n0000000000 65535 f \n"
	for _, object := range []string{"1 0 obj", "2 0 obj", "3 0 obj", "4 0 obj"} {
		pdf += fmt.Sprintf("%010d 00000 n \n", strings.Index(pdf, object))
	}
	return fmt.Appendf([]byte(pdf), "trailer<</Size 5/Root 1 0 R/Info 4 0 R>>\nstartxref\n%d\n%%%%EOF\n", at)
}

// Default values that programs fill in are ignored.
func TestDocumentOfNobody(t *testing.T) {
	m := read(t, "a.pdf", document(`/Title(\(Untitled\))/Author(\(anonymous\))/Subject(unspecified)/Keywords(Unspecified)`)).Metadata
	if m.Title != "" || len(m.Authors) > 0 || m.Summary != "" || len(m.Subjects) > 0 {
		t.Errorf("%+v", m)
	}
}

// ISBNs are found wherever a document's metadata names them; the author is the writer, as in an EPUB.
func TestDocumentDescription(t *testing.T) {
	res := read(t, "a.pdf", document("/Title(T)/Author(A; B)/Subject(Novel, ISBN 0-8044-2957-X)/Keywords(978-0-7653-5038-1)"))
	if a := res.Metadata.Authors; len(a) != 2 || a[0] != (analysis.Author{Name: "A", Role: "writer"}) || a[1] != (analysis.Author{Name: "B", Role: "writer"}) {
		t.Errorf("authors %+v", a)
	}
	if res.ExternalID != "080442957X" || res.ExternalSource != "pdf" || res.Metadata.ISBNs != `["080442957X","9780765350381"]` {
		t.Errorf("%s %s %s", res.ExternalSource, res.ExternalID, res.Metadata.ISBNs)
	}
}

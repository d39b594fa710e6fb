package pdf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/format/archive"
)

// wrongTable says that the table of a document is at its byte 20.
func wrongTable(t *testing.T, file []byte) []byte {
	t.Helper()
	at := bytes.LastIndex(file, []byte("startxref"))
	if at < 0 {
		t.Fatal("no startxref")
	}
	return append(bytes.Clone(file[:at]), "startxref\n20\n%%EOF\n"...)
}

func TestRepair(t *testing.T) {
	t.Parallel()
	plain := scan("", fill, plainImage)
	untrailed := append(bytes.Clone(plain[:bytes.Index(plain, []byte("xref"))]), "startxref\n20\n%%EOF"...)
	changed := bytes.Replace(wrongTable(t, plain), []byte("startxref"), []byte("7 0 obj\n<</Title(New)>>\nendobj\nstartxref"), 1)
	// Object 2 is marked free.
	freed := regexp.MustCompile(`(65535 f \n\d{10} 00000 n \n\d{10} 00000) n`).ReplaceAll(plain, []byte("$1 f"))
	long := bytes.Replace(plain, []byte("%PDF-1.4\n"), []byte("%PDF-1.4\n%"+strings.Repeat("x", 3*chunkBytes+17)+"\n"), 1)
	files := encrypted(t)
	for name, c := range map[string]struct {
		file  []byte
		pages int
		jpeg  bool
		title string
	}{
		"table elsewhere":        {wrongTable(t, plain), 1, true, "Page"},
		"objects elsewhere":      {bytes.Replace(plain, []byte("%PDF-1.4\n"), []byte("%PDF-1.4\r\n%more\r\n"), 1), 1, true, "Page"},
		"no trailer":             {untrailed, 1, true, ""},
		"an object written anew": {changed, 1, true, "New"},
		"cut after the trailer":  {plain[:bytes.LastIndex(plain, []byte("startxref"))], 1, true, "Page"},
		"no tree of pages":       {freed, 1, true, "Page"},
		"over several chunks":    {long, 1, true, "Page"},
		"object streams":         {wrongTable(t, modern()), 3, false, "Packed"},
		"encrypted":              {wrongTable(t, files["aes-256.pdf"]), 2, false, "Page"},
		"encrypted, no streams":  {wrongTable(t, files["rc4-40.pdf"]), 2, false, "Page"},
	} {
		d, err := open(c.file, Limits{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(d.Pages) != c.pages || d.Pages[0].JPEG != c.jpeg || d.Info.Title != c.title {
			t.Errorf("%s: %+v", name, d)
		}
		if p := d.Pages[0]; p.JPEG && !bytes.HasPrefix(c.file[p.Offset:], []byte(jpegFile[:4])) {
			t.Errorf("%s: no JPEG at %d", name, p.Offset)
		}
	}
}

// Marks are found once, wherever a chunk ends.
func TestMarksOfChunks(t *testing.T) {
	t.Parallel()
	const mark = "\n123 0 obj <</Type/Catalog>> endobj 45 1 obj"
	for cut := range len(mark) + 80 {
		file := []byte(strings.Repeat(" ", chunkBytes-cut) + mark + strings.Repeat(" ", 100))
		d, err := newReader(context.Background(), bytes.NewReader(append([]byte("%PDF-"), file...)), int64(len(file)+5), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := d.search()
		start := chunkBytes - cut + len("%PDF-")
		want := fmt.Sprintf("[{%d 123} {%d 45}]", start+strings.Index(mark, "123"), start+strings.Index(mark, "45"))
		if err != nil || fmt.Sprint(m.objects) != want || len(m.catalogs) != 1 {
			t.Fatalf("cut at %d: %+v, %v", cut, m, err)
		}
	}
}

func TestRepairIsBounded(t *testing.T) {
	t.Parallel()
	file := wrongTable(t, scan("", fill, plainImage))
	if _, err := open(file, Limits{RepairBytes: 500}); kindOf(err) != archive.Corrupt {
		t.Errorf("a document that is too long to be repaired: %v", err)
	}
	if _, err := open(file, Limits{Objects: 3}); kindOf(err) != archive.Corrupt {
		t.Errorf("more objects than there may be: %v", err)
	}
}

// An object stream is taken apart once, however often the document seems to have one there.
func TestManyMarksOfOneStream(t *testing.T) {
	t.Parallel()
	const n = 100_000
	index := strings.Repeat("9 0 ", n)
	packed := deflated(index + "null ")
	p := newPacker(0)
	p.object(1, "<</Type/Catalog/Pages 2 0 R>>")
	p.object(2, "<</Kids[3 0 R]>>")
	p.object(3, "<</Type/Page>>")
	p.object(4, fmt.Sprintf("<</Type/ObjStm/N %d/First %d/Filter/FlateDecode/Length %d>>stream\n%s\nendstream", n, len(index), len(packed), packed))
	p.WriteString(strings.Repeat("/ObjStm ", n) + "startxref\n20\n%%EOF")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if d, err := Open(ctx, bytes.NewReader(p.Bytes()), int64(p.Len()), Limits{}); err != nil || len(d.Pages) != 1 {
		t.Errorf("%+v, %v", d, err)
	}
}

// The search for a trailer ends with its context, however many there seem to be.
func TestManyTrailers(t *testing.T) {
	t.Parallel()
	b := []byte("%PDF-1.4\n" + strings.Repeat("trailer(", 2000))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := &counting{bytes.NewReader(b), 20, cancel}
	if d, err := Open(ctx, r, int64(len(b)), Limits{}); !errors.Is(err, context.Canceled) || d != nil {
		t.Errorf("%+v, %v", d, err)
	}
	if r.left < -5 {
		t.Errorf("%d reads after the end", -r.left)
	}
}

// A store that fails during a repair does not make the document damaged.
func TestStoreFailsDuringRepair(t *testing.T) {
	t.Parallel()
	file := wrongTable(t, modern())
	down := errors.New("connection reset")
	for after := 1; ; after++ {
		r := &failsAfter{bytes.NewReader(file), after, down}
		_, err := Open(context.Background(), r, int64(len(file)), Limits{})
		if err == nil {
			break
		}
		if !errors.Is(err, down) {
			t.Errorf("after %d reads: %v", after, err)
		}
	}
}

type failsAfter struct {
	io.ReaderAt
	left int
	err  error
}

func (f *failsAfter) ReadAt(b []byte, at int64) (int, error) {
	if f.left--; f.left < 0 {
		return 0, f.err
	}
	return f.ReaderAt.ReadAt(b, at)
}

package pdf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/format/archive"
)

// packer writes documents of version 1.5 whose objects lie where the test wants them.
type packer struct {
	bytes.Buffer
	rows map[int][3]int // of the table: kind, offset or object stream, index
	size int
}

func newPacker(size int) *packer {
	p := &packer{rows: map[int][3]int{}, size: size}
	p.WriteString("%PDF-1.5\n")
	return p
}

func (p *packer) object(n int, body string) {
	p.rows[n] = [3]int{1, p.Len(), 0}
	fmt.Fprintf(p, "%d 0 obj\n%s\nendobj\n", n, body)
}

// pack adds an object stream of these objects, padded to so many bytes.
func (p *packer) pack(n int, pad int, objects map[int]string) {
	var index, body strings.Builder
	for number, o := range objects {
		fmt.Fprintf(&index, "%d %d ", number, body.Len())
		body.WriteString(o + " ")
		p.rows[number] = [3]int{2, n, 0}
	}
	packed := deflated(index.String() + body.String() + strings.Repeat(" ", pad))
	p.object(n, fmt.Sprintf("<</Type/ObjStm/N %d/First %d/Filter/FlateDecode/Length %d>>stream\n%s\nendstream", len(objects), index.Len(), len(packed), packed))
}

func (p *packer) finish() []byte {
	at := p.Len()
	var rows bytes.Buffer
	for i := range p.size {
		r := p.rows[i]
		rows.Write([]byte{byte(r[0]), byte(r[1] >> 24), byte(r[1] >> 16), byte(r[1] >> 8), byte(r[1]), byte(r[2])})
	}
	packed := deflated(rows.String())
	fmt.Fprintf(p, "%d 0 obj\n<</Type/XRef/Size %d/W[1 4 1]/Root 1 0 R/Filter/FlateDecode/Length %d>>stream\n%s\nendstream\nendobj\nstartxref\n%d\n%%%%EOF",
		p.size, p.size, len(packed), packed, at)
	return p.Bytes()
}

// An object stream whose length or filter is in itself, or in a stream that needs it, is read once, without a loop.
func TestObjectStreamsInACircle(t *testing.T) {
	own := newPacker(5)
	own.object(2, "<</Type/ObjStm/N 1/First 4/Length 3 0 R>>stream\n3 0 9\nendstream")
	own.rows[1], own.rows[3] = [3]int{2, 2, 0}, [3]int{2, 2, 0}
	filter := newPacker(7)
	filter.object(2, "<</Type/ObjStm/N 1/First 4/Length 100000/Filter 4 0 R>>stream\n3 0 9"+strings.Repeat(" ", 100_000)+"\nendstream")
	filter.object(3, "<</Type/ObjStm/N 1/First 4/Length 100000/Filter 5 0 R>>stream\n3 0 9"+strings.Repeat(" ", 100_000)+"\nendstream")
	filter.rows[1], filter.rows[4], filter.rows[5] = [3]int{2, 2, 0}, [3]int{2, 3, 0}, [3]int{2, 2, 0}
	for name, b := range map[string][]byte{"length": own.finish(), "filter": filter.finish()} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := open(b, Limits{}); err == nil {
			t.Errorf("%s: opened", name)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
			t.Errorf("%s: %d bytes of memory for %d of file", name, n, len(b))
		}
	}
}

// thrashing is a document whose pages alternate between more object streams than are cached.
func thrashing(streams, pages, pad int) []byte {
	p := newPacker(10 + streams + pages)
	var kids strings.Builder
	for s := range streams {
		here := map[int]string{}
		for i := s; i < pages; i += streams {
			here[10+streams+i] = "<</Type/Page>>"
		}
		p.pack(10+s, pad, here)
	}
	for i := range pages {
		fmt.Fprintf(&kids, "%d 0 R ", 10+streams+i)
	}
	p.object(1, "<</Pages 2 0 R>>")
	p.object(2, "<</Kids["+kids.String()+"]>>")
	return p.finish()
}

func TestObjectStreamsAreBounded(t *testing.T) {
	t.Parallel()
	const limit = 64 << 10
	b := thrashing(4, 400, limit-4096)
	if _, err := open(b, Limits{StreamBytes: limit}); kindOf(err) != archive.TooLarge {
		t.Errorf("four streams in turn: %v", err)
	}
	if doc, err := open(b, Limits{StreamBytes: 2 * limit}); err != nil || len(doc.Pages) != 400 {
		t.Errorf("with room for all of them: %v", err)
	}
}

// counting ends a context after some reads.
type counting struct {
	*bytes.Reader
	left int
	end  func()
}

func (c *counting) ReadAt(b []byte, at int64) (int, error) {
	if c.left--; c.left == 0 {
		c.end()
	}
	return c.Reader.ReadAt(b, at)
}

func TestOpenEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := thrashing(8, 400, 8<<10)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := &counting{bytes.NewReader(b), 20, cancel}
	if doc, err := Open(ctx, r, int64(len(b)), Limits{StreamBytes: 16 << 10}); !errors.Is(err, context.Canceled) || doc != nil {
		t.Fatalf("%v, %v", doc, err)
	}
	if r.left < -2 {
		t.Errorf("%d reads after the end", -r.left)
	}
}

// A list of nodes that occurs in many places of the tree does not multiply the pages.
func TestSharedListOfPages(t *testing.T) {
	t.Parallel()
	p := newPacker(6)
	p.object(1, "<</Pages 2 0 R>>")
	p.object(2, "<</Kids 3 0 R>>")
	p.object(3, "[<</Kids 3 0 R>><</Kids 3 0 R>><</Kids 3 0 R>>]")
	if _, err := open(p.finish(), Limits{Pages: 100}); kindOf(err) == "" {
		t.Errorf("%v", err)
	}
}

// An object stream that fails to unpack is not unpacked again for each of its objects.
func TestBrokenObjectStreamsAreReadOnce(t *testing.T) {
	t.Parallel()
	const pages = 3000
	p := newPacker(10 + pages)
	packed := deflated(strings.Repeat(" ", 1<<20))
	p.object(3, fmt.Sprintf("<</Type/ObjStm/N 99999999/First 0/Filter/FlateDecode/Length %d>>stream\n%s\nendstream", len(packed), packed))
	var kids strings.Builder
	for i := range pages {
		fmt.Fprintf(&kids, "<</Type/Page/Contents %d 0 R>>", 10+i)
		p.rows[10+i] = [3]int{2, 3, 0}
	}
	p.object(1, "<</Pages 2 0 R>>")
	p.object(2, "<</Kids["+kids.String()+"]>>")
	b := p.finish()
	r := &counting{bytes.NewReader(b), 0, func() {}}
	if _, err := Open(t.Context(), r, int64(len(b)), Limits{}); err != nil {
		t.Fatal(err)
	}
	if -r.left > 100 {
		t.Errorf("%d reads", -r.left)
	}
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/testkit/rarpack"
)

// scannedPages returns a few pages like those of a scanner, about 1.4 MB each. marked makes variants of them.
func scannedPages() (out [][]byte, err error) {
	for i := range 4 {
		jpg, err := picture(1600, 2400, 36, 80, uint64(i))
		if err != nil {
			return nil, err
		}
		out = append(out, jpg)
	}
	return out, nil
}

// writeBigComic writes 2 GB of stored pages.
func writeBigComic(_ context.Context, path string) error {
	pictures, err := scannedPages()
	if err != nil {
		return err
	}
	var packed []entry
	for i, p := range pictures {
		e, err := newEntry(fmt.Sprint(i), p, false)
		if err != nil {
			return err
		}
		packed = append(packed, e)
	}
	var entries []entry
	for size := 0; size < 2<<30; {
		e := packed[len(entries)%len(packed)]
		e.header.Name = fmt.Sprintf("page %04d.jpg", len(entries)+1)
		entries, size = append(entries, e), size+len(e.packed)
	}
	return writeComic(path, entries)
}

// solidBytes is the unpacked size of the pages in a solid archive. An archiver saves only 6 % of a JPEG.
const solidBytes = 540 << 20

// create creates a file with the output of fill.
func create(path string, fill func(w *bufio.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	return errors.Join(fill(w), w.Flush(), f.Close())
}

// writeSolidRAR packs 500 MB of pages into a solid RAR 5 archive with the largest dictionary that is accepted by
// default: page n needs all pages before it.
func writeSolidRAR(_ context.Context, path string) error {
	pictures, err := scannedPages()
	if err != nil {
		return err
	}
	return create(path, func(file *bufio.Writer) error {
		// Each page repeats the tables of the previous page, but not its image, which repeats only after four pages.
		w, err := rarpack.NewWriter(file, rarpack.Options{Solid: true,
			Dictionary: archive.Limits{}.WithDefaults().DictionaryBytes, Reach: 3 * len(pictures[0])})
		if err != nil {
			return err
		}
		for n, size := 0, 0; size < solidBytes; n++ {
			data := marked(pictures[n%len(pictures)], n)
			if err := w.Add(fmt.Sprintf("page %04d.jpg", n+1), data); err != nil {
				return err
			}
			size += len(data)
		}
		return w.Close()
	})
}

// writeSolid7z packs 500 MB of pages into one folder of a 7z archive: page n needs all pages before it.
func writeSolid7z(ctx context.Context, path string) (err error) {
	tool, err := exec.LookPath("7z")
	if err != nil {
		return err
	}
	pictures, err := scannedPages()
	if err != nil {
		return err
	}
	dir := path + "-pages"
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for n, size := 0, 0; size < solidBytes; n++ {
		data := marked(pictures[n%len(pictures)], n)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("page %04d.jpg", n+1)), data, 0o644); err != nil {
			return err
		}
		size += len(data)
	}
	// The dictionary is smaller than a page, so no page repeats an earlier one.
	cmd := exec.CommandContext(ctx, tool, "a", "-t7z", "-ms=2g", "-m0=LZMA:d=256k:fb=5:a=0", "-mmt=1", path, ".")
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %.300s", err, text)
	}
	return nil
}

// document writes a PDF object by object and records their offsets.
type document struct {
	*bufio.Writer
	at      int64
	offsets []int64
}

func (d *document) Write(p []byte) (int, error) {
	n, err := d.Writer.Write(p)
	d.at += int64(n)
	return n, err
}

// object starts the next object.
func (d *document) object(format string, args ...any) {
	d.offsets = append(d.offsets, d.at)
	fmt.Fprintf(d, "%d 0 obj\n"+format+"\nendobj\n", append([]any{len(d.offsets)}, args...)...)
}

// writeDocument writes a PDF of 300 MB: pages of one JPEG each, and every tenth page a drawing.
func writeDocument(_ context.Context, path string) error {
	pictures, err := scannedPages()
	if err != nil {
		return err
	}
	return create(path, func(file *bufio.Writer) error {
		d := &document{Writer: file}
		d.write(pictures)
		return nil // Flush returns the same error
	})
}

func (d *document) write(pictures [][]byte) {
	fmt.Fprint(d, "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
	var pages []int
	// Objects 1 and 2, the catalog and the page tree, are written last, but get their numbers now.
	d.offsets = make([]int64, 2)
	for d.at < 300<<20 {
		n := len(pages)
		if n%10 == 9 {
			drawing := fmt.Sprintf("0.9 0.9 0.8 rg 0 0 480 720 re f 0 0 0.%d rg 60 60 300 500 re f 0.8 0 0 RG 8 w 40 40 m 440 680 l S", n%10)
			d.object("<</Length %d>>stream\n%s\nendstream", len(drawing), drawing)
			d.object("<</Type/Page/Parent 2 0 R/MediaBox[0 0 480 720]/Contents %d 0 R/Resources<<>>>>", len(d.offsets))
		} else {
			jpg := marked(pictures[n%len(pictures)], n)
			d.object("<</Type/XObject/Subtype/Image/Width 1600/Height 2400/ColorSpace/DeviceRGB/BitsPerComponent 8/Filter/DCTDecode/Length %d>>stream\n%s\nendstream",
				len(jpg), jpg)
			const show = "480 0 0 720 0 0 cm /I Do"
			d.object("<</Length %d>>stream\n%s\nendstream", len(show), show)
			d.object("<</Type/Page/Parent 2 0 R/MediaBox[0 0 480 720]/Contents %d 0 R/Resources<</XObject<</I %d 0 R>>>>>>", len(d.offsets), len(d.offsets)-1)
		}
		pages = append(pages, len(d.offsets))
	}
	d.offsets[0] = d.at
	fmt.Fprint(d, "1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n")
	d.offsets[1] = d.at
	fmt.Fprintf(d, "2 0 obj\n<</Type/Pages/Count %d/Kids[", len(pages))
	for _, p := range pages {
		fmt.Fprintf(d, "%d 0 R ", p)
	}
	fmt.Fprint(d, "]>>\nendobj\n")
	table := d.at
	fmt.Fprintf(d, "xref\n0 %d\n0000000000 65535 f \n", len(d.offsets)+1)
	for _, at := range d.offsets {
		fmt.Fprintf(d, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(d, "trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(d.offsets)+1, table)
}

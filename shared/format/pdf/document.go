package pdf

import (
	"context"
	"errors"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/longbox/longbox/shared/format/archive"
)

// atOnce limits the pages that are read concurrently: each waits for two or three small reads.
const atOnce = 8

// Open reads a document of size bytes, and repairs a damaged one if possible. Problems of the document are an
// *archive.Error; errors of r are passed on.
func Open(ctx context.Context, r io.ReaderAt, size int64, lim Limits) (*Document, error) {
	out, err := read(ctx, r, size, lim, (*reader).readTables)
	var wrong, still *archive.Error
	if !errors.As(err, &wrong) || wrong.Kind != archive.Corrupt && wrong.Kind != archive.NoPages {
		return out, err
	}
	repaired, failure := read(ctx, r, size, lim, (*reader).repair)
	if errors.As(failure, &still) {
		return nil, err
	}
	return repaired, failure
}

// read reads a document. tables finds its objects.
func read(ctx context.Context, r io.ReaderAt, size int64, lim Limits, tables func(*reader) error) (*Document, error) {
	d, err := newReader(ctx, r, size, lim)
	if err != nil {
		return nil, err
	}
	if err := tables(d); err != nil {
		return nil, err
	}
	root, err := d.follow(d.head["Root"])
	if err != nil {
		return nil, err
	}
	catalog, ok := root.(dict)
	if !ok {
		return nil, damaged("it has no catalogue")
	}
	leaves, err := d.leaves(catalog["Pages"])
	if err != nil {
		return nil, err
	}
	if len(leaves) == 0 {
		return nil, archive.Errorf(archive.NoPages, "the PDF document has no pages")
	}
	out := &Document{Pages: make([]Page, len(leaves)), Fingerprint: d.fingerprint()}
	g, going := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i, leaf := range leaves {
		g.Go(func() (err error) {
			defer func() {
				if p := recover(); p != nil { // in this goroutine it would end the process
					err = damaged("reading page %d crashed: %v", leaf.number+1, p)
				}
			}()
			if err := going.Err(); err != nil {
				return err
			}
			out.Pages[i] = d.page(leaf)
			out.Pages[i].Number = leaf.number
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	out.Info = d.info(catalog)
	if err := ctx.Err(); err != nil { // after the deadline, objects that were not found are not missing
		return nil, err
	}
	return out, nil
}

// leaf is a page with its inherited attributes.
type leaf struct {
	number                                                      int
	resources, mediaBox, cropBox, rotate, contents, annotations any
}

// with returns the attributes that the nodes below page inherit: its own take precedence.
func (l leaf) with(page dict) leaf {
	for _, f := range []struct {
		key name
		to  *any
	}{{"Resources", &l.resources}, {"MediaBox", &l.mediaBox}, {"CropBox", &l.cropBox}, {"Rotate", &l.rotate}} {
		if own, ok := page[f.key]; ok {
			*f.to = own
		}
	}
	return l
}

// node is a node of the page tree, with its path from the root.
type node struct {
	at        any
	inherited leaf
	depth     int
	above     *node
}

// within reports whether a node is its own ancestor.
func (n node) within() bool {
	own, ok := n.at.(ref)
	for a := n.above; ok && a != nil; a = a.above {
		if above, _ := a.at.(ref); above.number == own.number {
			return true
		}
	}
	return false
}

// leaves walks the page tree (7.7.3) in order. Like viewers, it skips references to an ancestor.
func (d *reader) leaves(root any) ([]leaf, error) {
	var out []leaf
	missing, circle := 0, false
	stack := []node{{at: root}}
	for nodes := 0; len(stack) > 0; nodes++ {
		if err := d.ctx.Err(); err != nil {
			return nil, err
		}
		if nodes > 4*d.lim.Pages { // a list of nodes may be in the tree many times
			return nil, archive.Errorf(archive.TooLarge, "the page tree of the PDF document has more nodes than the limit of %d", 4*d.lim.Pages)
		}
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if n.depth > maxTree {
			return nil, damaged("its pages are nested more than %d deep", maxTree)
		}
		v, err := d.follow(n.at)
		if err != nil {
			return nil, err
		}
		page, ok := v.(dict)
		if !ok {
			missing++
			continue
		}
		here := n.inherited.with(page)
		kids, err := d.follow(page["Kids"])
		if err != nil {
			return nil, err
		}
		list, ok := kids.(array)
		if !ok || page["Type"] == name("Page") {
			if len(out) == d.lim.Pages {
				return nil, archive.Errorf(archive.TooLarge, "the PDF document has more pages than the limit of %d", d.lim.Pages)
			}
			here.number = len(out) + missing
			here.contents, here.annotations = page["Contents"], page["Annots"]
			out = append(out, here)
			continue
		}
		if n.within() {
			circle = true
			continue
		}
		if len(list) > d.lim.Pages {
			return nil, archive.Errorf(archive.TooLarge, "the PDF document has more pages than the limit of %d", d.lim.Pages)
		}
		for i := len(list) - 1; i >= 0; i-- {
			stack = append(stack, node{list[i], here, n.depth + 1, &n})
		}
	}
	if len(out) == 0 && circle {
		return nil, damaged("its page tree contains a cycle")
	}
	return out, nil
}

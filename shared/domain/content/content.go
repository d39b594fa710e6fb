package content

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/semaphore"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/epub"
	"github.com/longbox/longbox/shared/format/pdf"
	"github.com/longbox/longbox/shared/format/rar"
	"github.com/longbox/longbox/shared/format/sevenz"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Drawing draws page n (from 0) of a PDF document as an image file.
type Drawing func(ctx context.Context, document io.ReaderAt, size int64, n int) ([]byte, error)

// Reader reads entries of objects in a store.
type Reader struct {
	Store  *blob.Store
	Limits archive.Limits
	// Documents are the limits for PDF, Publications those for EPUB and every XML document.
	Documents    pdf.Limits
	Publications epub.Limits
	Draw         Drawing // nil: pages that must be drawn cannot be read
}

// errEnough ends a walk early.
var errEnough = errors.New("found")

// unpacking limits the heavy entries that a process unpacks at once, to bound memory.
var unpacking = semaphore.NewWeighted(2)

// Room waits for a slot if unpacking the entry is heavy; give releases it.
func Room(ctx context.Context, e archive.Entry) (give func(), err error) {
	if !e.Heavy() {
		return func() {}, nil
	}
	if err := unpacking.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func() { unpacking.Release(1) }, nil
}

// Unpack returns the content of an entry with a byte range of its own; raw holds the bytes of that range.
func (r *Reader) Unpack(ctx context.Context, e archive.Entry, raw []byte) ([]byte, error) {
	give, err := Room(ctx, e)
	if err != nil {
		return nil, err
	}
	defer give()
	content, err := e.Open(bytes.NewReader(raw), r.Limits)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(content)
}

// Bytes returns the uncompressed bytes of one entry. A damaged file is an *archive.Error; any other error is a failure
// of the store.
func (r *Reader) Bytes(ctx context.Context, bucket string, o blob.Object, e archive.Entry) ([]byte, error) {
	if e.Direct() {
		if err := e.Fits(r.Limits); err != nil {
			return nil, err
		}
		raw, err := r.Store.ReadRange(ctx, bucket, o, e.Offset, e.Length)
		if err != nil {
			return nil, err
		}
		return r.Unpack(ctx, e, raw)
	}
	var out []byte
	err := r.Walk(ctx, bucket, o, []archive.Entry{e}, func(_ int, content io.Reader) (err error) {
		if out, err = io.ReadAll(content); err != nil {
			return err
		}
		return errEnough
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	return out, nil
}

// Explain turns a failed read of a book's file into the error of the task that reads it; what is the beginning of its
// text. An error that is none of the store, and that of a file that is gone, damaged or another, is the caller's to
// explain.
func (r *Reader) Explain(ctx context.Context, what, bucket string, o blob.Object, err error) error {
	if ctx.Err() != nil || errors.As(err, new(*fault.Error)) {
		return err
	}
	err = r.Store.Why(ctx, bucket, o, err)
	switch {
	case blob.Lost(err), errors.As(err, new(*archive.Error)):
		return err
	case errors.Is(err, blob.ErrArchived):
		return fault.Wrap(err, fault.Conflict, "%s: the store has archived the book's file (S3 Glacier); restore it, then try again", what)
	case errors.Is(err, blob.ErrDenied), errors.Is(err, blob.ErrClosed):
		return fault.Wrap(err, fault.Conflict, "%s: the book's file cannot be opened; check its permissions, then try again", what)
	case errors.As(err, new(*archive.Undrawn)):
		return fault.Wrap(err, fault.Unavailable, "%s: a page cannot be drawn at the moment; try again later", what)
	case blob.Unreachable(err):
		return fault.Wrap(err, fault.Unavailable, "%s: the library's storage is not reachable at the moment; try again later", what)
	}
	return err
}

// windowBytes is how much is read at once of data scattered over a file.
const windowBytes = 64 << 10

// maxSlow is how many pages of a document may time out while drawing before a walk ends: each takes the full timeout.
const maxSlow = 3

// Walk calls each with the contents of entries of one file and their index in entries, in the order of the file: one
// pass. Reading the content of a damaged entry returns an *archive.Error; the walk goes on if each returns nil.
func (r *Reader) Walk(ctx context.Context, bucket string, o blob.Object, entries []archive.Entry, each func(i int, content io.Reader) error) error {
	return r.WalkIn(ctx, r.Store.ReaderAt(ctx, bucket, o, windowBytes), bucket, o, entries, each)
}

// WalkIn is Walk with a reader that may have read parts of the object already.
func (r *Reader) WalkIn(ctx context.Context, at *blob.At, bucket string, o blob.Object, entries []archive.Entry, each func(i int, content io.Reader) error) error {
	byMethod := map[uint16]map[int64]archive.Entry{}
	index := map[int64][]int{} // indexes of entries by offset: some archives store identical files once
	for i, e := range entries {
		if err := e.Fits(r.Limits); err != nil {
			return err
		}
		if byMethod[e.Method] == nil {
			byMethod[e.Method] = map[int64]archive.Entry{}
		}
		byMethod[e.Method][e.Offset] = e
		if !e.Direct() {
			index[e.Offset] = append(index[e.Offset], i)
		}
	}
	give := func(n int64, content io.Reader) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(index[n]) == 1 {
			return each(index[n][0], content)
		}
		data, err := io.ReadAll(content)
		for _, i := range index[n] {
			if err := each(i, io.MultiReader(bytes.NewReader(data), ending{cmp.Or(err, io.EOF)})); err != nil {
				return err
			}
		}
		return nil
	}
	if wanted := byMethod[archive.SolidRAR]; len(wanted) > 0 {
		body, err := r.Store.Range(ctx, bucket, o, 0, o.Size)
		if err != nil {
			return err
		}
		defer body.Close()
		return rar.Walk(watched{ctx, body}, r.Limits, wanted, give)
	}
	if wanted := byMethod[archive.SevenZip]; len(wanted) > 0 {
		open := func(off, n int64) (io.ReadCloser, error) {
			body, err := r.Store.Range(ctx, bucket, o, off, n)
			if err != nil {
				return nil, err
			}
			return watched{ctx, body}, nil
		}
		return sevenz.Walk(at, o.Size, r.Limits, open, wanted, give)
	}
	return r.draws(ctx, at, o.Size, entries, each)
}

// draws is the walk over pages of a PDF document, which are drawn.
func (r *Reader) draws(ctx context.Context, at *blob.At, size int64, entries []archive.Entry, each func(i int, content io.Reader) error) error {
	slow := 0
	for i, e := range entries {
		if e.Method != archive.PDFPage {
			return fmt.Errorf("%s is not a page of a PDF document", e.Name)
		}
		if r.Draw == nil {
			return &archive.Error{Kind: archive.Unsupported, Msg: e.Name + " must be drawn, which this program cannot do"}
		}
		image, err := r.Draw(ctx, at, size, int(e.Offset))
		damage, ofPage := errors.AsType[*archive.Error](err)
		switch {
		case err != nil && !ofPage, ofPage && damage.Kind == archive.Encrypted:
			return err
		case ofPage && damage.Kind == archive.TooLarge:
			if slow++; slow > maxSlow {
				return err
			}
		}
		if err := each(i, io.MultiReader(bytes.NewReader(image), ending{cmp.Or(err, io.EOF)})); err != nil {
			return err
		}
	}
	return nil
}

// ending is the end of a content: io.EOF, or an error.
type ending struct{ error }

func (e ending) Read([]byte) (int, error) { return 0, e.error }

// watched stops a long decompression when its context ends.
type watched struct {
	ctx context.Context
	io.ReadCloser
}

func (w watched) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.ReadCloser.Read(p)
}

// SameVersionSQL joins page_index p to book b if the index was made from the book's current version of the file: the
// places of another version would be wrong.
const SameVersionSQL = "p.tenant_id = b.tenant_id and p.book_id = b.id and (p.file_size, p.file_etag, p.file_modified) = (b.size, b.etag, b.modified_at)"

package analysis

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/mediatype"
	"github.com/longbox/longbox/shared/platform/blob"
)

// window is how much is read at once of headers scattered over a file; most need less.
const window = 1 << 10

// documentWindow is the window for PDF, where the objects of a page are often close together.
const documentWindow = 8 << 10

// source is one object, read in ranges. What was read is reused.
type source struct {
	ctx    context.Context // of this analysis; the callbacks of the format packages take no context
	reader *content.Reader
	bucket string
	object blob.Object
	memory *[archive.TailBytes]byte // holds tail
	tail   []byte
	at     *blob.At
}

// tails are pooled: a scan reads 64 KB of each book.
var tails = sync.Pool{New: func() any { return new([archive.TailBytes]byte) }}

// release returns the tail's buffer once nothing reads the source any more.
func (s *source) release() { tails.Put(s.memory) }

// openSource reads the end of the object with one request. The object must have the size in the listing; a link to
// another file has not, and is not read.
func openSource(ctx context.Context, reader *content.Reader, bucket string, listed blob.Object) (*source, error) {
	if listed.Size == 0 {
		return nil, &archive.Error{Kind: archive.Truncated, Msg: "the file is empty: replace it"}
	}
	memory := tails.Get().(*[archive.TailBytes]byte)
	tail, now, err := reader.Store.Tail(ctx, bucket, listed.Key, memory[:min(listed.Size, archive.TailBytes)])
	if err != nil {
		err = reader.Store.Why(ctx, bucket, listed, err)
	}
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return nil, &Problem{Type: "other", Message: "the file could not be opened under its name; rename it without special characters, or check that it is not a broken link", Err: err}
	case err == nil && (now.Size != listed.Size || changed(listed, now)), errors.Is(err, blob.ErrChanged):
		return nil, &Problem{Type: "other", Message: "the file differs from the listing of its folder: it is a link, or it changed while it was read. " +
			"It is skipped until it changes or is retried",
			Err: blob.ErrChanged}
	case errors.Is(err, blob.ErrArchived):
		return nil, &Problem{Type: "other", Message: "the store has archived the file (S3 Glacier): restore it, then retry it", Err: err}
	case err != nil:
		return nil, err
	}
	now.Key = listed.Key
	s := &source{ctx: ctx, reader: reader, bucket: bucket, object: now, memory: memory, tail: tail, at: reader.Store.ReaderAt(ctx, bucket, now, window)}
	s.at.Keep(now.Size-int64(len(tail)), tail)
	return s, nil
}

// changed reports whether an object is another version than the listed one, as far as the listing identifies it.
// Listings and responses differ in fractions of a second.
func changed(listed, now blob.Object) bool {
	if listed.ETag != "" {
		return now.ETag != listed.ETag
	}
	return !listed.Modified.IsZero() && now.Modified.After(listed.Modified.Add(time.Second))
}

// head returns the beginning of the object, enough to detect its type.
func (s *source) head() ([]byte, error) {
	head := make([]byte, min(window, s.object.Size))
	if _, err := s.at.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return head, nil
}

// entry returns the uncompressed content of an archive entry.
func (s *source) entry(e archive.Entry) ([]byte, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	if err := e.Fits(s.reader.Limits); err != nil {
		return nil, err
	}
	if !e.Direct() {
		all, err := s.entries([]archive.Entry{e})
		if err != nil {
			return nil, err
		}
		return all[0], nil
	}
	raw, err := s.at.Bytes(e.Offset, e.Length)
	if err != nil {
		return nil, err
	}
	return s.reader.Unpack(s.ctx, e, raw)
}

// cover returns the picture of the cover. Drawing one may take half of the remaining time: the rest is for the book.
func (s *source) cover(e archive.Entry) ([]byte, error) {
	end, limited := s.ctx.Deadline()
	if e.Method != archive.PDFPage || !limited {
		return s.entry(e)
	}
	ctx, cancel := context.WithTimeout(s.ctx, time.Until(end)/2)
	defer cancel()
	drawing := *s
	drawing.ctx = ctx
	return drawing.entry(e)
}

// entries returns the contents of entries without a byte range of their own, from one pass over the file.
func (s *source) entries(list []archive.Entry) ([][]byte, error) {
	out := make([][]byte, len(list))
	err := s.reader.WalkIn(s.ctx, s.at, s.bucket, s.object, list, func(i int, r io.Reader) (err error) {
		out[i], err = io.ReadAll(r)
		return err
	})
	return out, err
}

// size returns the pixel size of a page, if its first bytes have been read already.
func (s *source) size(e archive.Entry) (width, height int) {
	start := s.object.Size - int64(len(s.tail))
	if e.Offset < start || !e.Direct() || e.Encrypted {
		return 0, 0
	}
	raw := s.tail[e.Offset-start : min(int64(len(s.tail)), e.Offset-start+e.Length)]
	if e.Method != archive.Stored && e.Method != archive.Bare {
		return 0, 0
	}
	r, err := e.Raw(bytes.NewReader(raw))
	if err != nil {
		return 0, 0
	}
	head, _ := io.ReadAll(io.LimitReader(r, mediatype.HeadBytes)) // truncation is fine: it is a header
	width, height, _ = mediatype.Dimensions(head)
	return width, height
}

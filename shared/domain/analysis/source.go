package analysis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/platform/blob"
)

// source is one object, read in ranges. What the last read brought is used again.
type source struct {
	ctx    context.Context // of this one analysis; the format packages' callbacks take none
	store  *blob.Store
	bucket string
	object blob.Object
	tail   []byte
}

// openSource reads the end of the object: one request. The object must have the size that the listing showed;
// a link to another file has not, and is not read.
func openSource(ctx context.Context, store *blob.Store, bucket string, listed blob.Object) (*source, error) {
	if listed.Size == 0 {
		return nil, &archive.Error{Kind: archive.Truncated, Msg: "the file is empty: replace it"}
	}
	tail, now, err := store.Tail(ctx, bucket, listed.Key, min(listed.Size, archive.TailBytes))
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return nil, &Problem{Type: "other", Message: "the file could not be opened under its name; rename it without special characters, or check that it is not a broken link", Err: err}
	case err != nil:
		return nil, err
	case now.Size != listed.Size:
		return nil, &Problem{Type: "other", Message: "the file is not what the folder lists: it is a link, or it changed while it was read; scan again"}
	}
	now.Key = listed.Key
	return &source{ctx: ctx, store: store, bucket: bucket, object: now, tail: tail}, nil
}

// bytes are n bytes from offset: from the tail where it holds them, else by one request.
func (s *source) bytes(offset, n int64) ([]byte, error) {
	start := s.object.Size - int64(len(s.tail))
	if offset >= start && offset+n <= s.object.Size {
		return s.tail[offset-start : offset-start+n], nil
	}
	return s.store.ReadRange(s.ctx, s.bucket, s.object, offset, n)
}

// entry is the plain content of an archive entry.
func (s *source) entry(e archive.Entry) ([]byte, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	if e.Size > archive.DefaultLimits().EntryBytes {
		return nil, &archive.Error{Kind: archive.TooLarge, Msg: fmt.Sprintf("%s is %d bytes, the limit is %d", e.Name, e.Size, archive.DefaultLimits().EntryBytes)}
	}
	raw, err := s.bytes(e.Offset, e.Length)
	if err != nil {
		return nil, err
	}
	r, err := e.Open(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

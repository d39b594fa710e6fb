package blob

import (
	"context"
	"io"
	"sync"
)

// At reads one version of an object at any place, in windows that it remembers: the headers of formats that lie
// scattered over a file are read in small pieces, and often near each other. It is an io.ReaderAt, so the context
// belongs to the reader, and may be used by several goroutines.
type At struct {
	ctx    context.Context
	store  *Store
	bucket string
	object Object
	window int64
	before int64 // of a window, in front of what is asked for

	mu     sync.Mutex
	pieces []piece // the oldest first
	kept   int64   // bytes of them
	end    int64   // of the last window: what follows soon after is read in larger ones
}

type piece struct {
	off  int64
	data []byte
}

const (
	keptBytes = 4 << 20
	nearby    = 64 << 10 // the next read is so near that reading on is cheaper than many requests
	wide      = 128 << 10
)

// ReaderAt reads the object in windows of so many bytes; more where a read asks for more.
func (s *Store) ReaderAt(ctx context.Context, bucket string, o Object, window int64) *At {
	return &At{ctx: ctx, store: s, bucket: bucket, object: o, window: window}
}

// Keep adds what was read of the object in another way. It is kept for good.
func (a *At) Keep(off int64, data []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pieces = append([]piece{{off, data}}, a.pieces...)
	a.kept += int64(len(data))
}

// Window changes how much is read at once, and how much of it in front of what is asked for.
func (a *At) Window(n, before int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.window, a.before = n, before
}

// Size is that of the object.
func (a *At) Size() int64 { return a.object.Size }

// Bytes are n bytes from offset: from what is remembered, else by one request.
func (a *At) Bytes(off, n int64) ([]byte, error) {
	if off < 0 || n < 0 || off+n > a.object.Size {
		return nil, ErrRange
	}
	if have := a.find(off, n); have != nil {
		return have, nil
	}
	return a.store.ReadRange(a.ctx, a.bucket, a.object, off, n)
}

// ReadAt fills p from offset.
func (a *At) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= a.object.Size {
		return 0, io.EOF
	}
	n := min(int64(len(p)), a.object.Size-off)
	data := a.find(off, n)
	if data == nil {
		var err error
		if data, err = a.fetch(off, n); err != nil {
			return 0, err
		}
	}
	copy(p, data)
	if n < int64(len(p)) {
		return int(n), io.EOF
	}
	return int(n), nil
}

func (a *At) find(off, n int64) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := len(a.pieces) - 1; i >= 0; i-- {
		p := a.pieces[i]
		if off >= p.off && off+n <= p.off+int64(len(p.data)) {
			return p.data[off-p.off : off-p.off+n : off-p.off+n]
		}
	}
	return nil
}

func (a *At) fetch(off, n int64) ([]byte, error) {
	a.mu.Lock()
	want, from := a.window, max(off-a.before, 0)
	if a.end > 0 && off > a.end-a.window && off-a.end < nearby {
		want, from = max(want, wide), off
	}
	a.mu.Unlock()
	want = min(max(want, off-from+n), a.object.Size-from)
	data, err := a.store.ReadRange(a.ctx, a.bucket, a.object, from, want)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.end = from + want
	a.pieces, a.kept = append(a.pieces, piece{from, data}), a.kept+want
	for a.kept > keptBytes && len(a.pieces) > 2 { // the first may be kept for good
		a.kept -= int64(len(a.pieces[1].data))
		a.pieces = append(a.pieces[:1], a.pieces[2:]...)
	}
	return data[off-from : off-from+n], nil
}

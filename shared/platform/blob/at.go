package blob

import (
	"context"
	"io"
	"sync"
)

// At is an io.ReaderAt for one version of an object. It reads in windows and caches them: the headers of some formats
// are scattered over a file in small pieces, often near each other. It holds the context of its reader, and is safe for
// concurrent use.
type At struct {
	ctx    context.Context
	store  *Store
	bucket string
	object Object
	window int64
	before int64 // part of a window in front of the requested bytes

	mu     sync.Mutex
	pieces []piece // oldest first
	kept   int64   // total size of pieces
	end    int64   // end of the last window: a read soon after it uses a larger one
}

type piece struct {
	off  int64
	data []byte
}

const (
	keptBytes = 4 << 20
	nearby    = 64 << 10 // for a read this near, reading on is cheaper than many requests
	wide      = 128 << 10
)

// ReaderAt reads the object in windows of this size. A larger read uses a larger window.
func (s *Store) ReaderAt(ctx context.Context, bucket string, o Object, window int64) *At {
	return &At{ctx: ctx, store: s, bucket: bucket, object: o, window: window}
}

// Keep adds data of the object that was read elsewhere. It is never dropped.
func (a *At) Keep(off int64, data []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pieces = append([]piece{{off, data}}, a.pieces...)
	a.kept += int64(len(data))
}

// Window changes the window size, and how much of a window lies in front of the requested bytes.
func (a *At) Window(n, before int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.window, a.before = n, before
}

// Size returns the size of the object.
func (a *At) Size() int64 { return a.object.Size }

// Bytes returns n bytes from off, from the cache or with one request.
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

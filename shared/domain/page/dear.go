package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/mediatype"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/turn"
)

const (
	// patience is how long a reader waits for a page that must be decompressed or drawn; then it asks again, and
	// by then the page pack, where there is to be one, is likely to be there.
	patience = 8 * time.Second
	// dearAtOnce bounds the pages that one process decompresses or draws at once, for their memory.
	dearAtOnce = 2
)

// dear is the work on pages that no range of their own holds, or that are heavy to unpack.
type dear struct {
	flights singleflight.Group
	turns   turn.Turns
	slots   *semaphore.Weighted
}

func newDear() *dear {
	return &dear{turns: turn.Turns{AtOnce: dearAtOnce}, slots: semaphore.NewWeighted(dearAtOnce)}
}

// room waits until one more page may be worked on for a tenant, behind no more of another one than are worked on at
// once; give ends it.
func (d *dear) room(ctx context.Context, tenant uuid.UUID) (give func(), err error) {
	turn, err := d.turns.Take(ctx, tenant)
	if err != nil {
		return nil, err
	}
	if err := d.slots.Acquire(ctx, 1); err != nil {
		turn()
		return nil, err
	}
	return func() { d.slots.Release(1); turn() }, nil
}

// NewServer makes a Server.
func NewServer(s Server) *Server {
	s.dear, s.turns, s.books = newDear(), newTurns(), &directories{}
	return &s
}

// sendDear answers with a page that must be decompressed or drawn as a whole.
func (s *Server) sendDear(w http.ResponseWriter, r *http.Request, i *Index, n int, e archive.Entry, tag string) error {
	data, err := s.extract(r.Context(), i, n, e)
	if err != nil {
		return s.unopened(r, i, err)
	}
	kind := mediatype.Detect(data)
	if !mediatype.Servable(kind) {
		return fault.New(fault.Unprocessable, "Page %d is no image that can be shown", n)
	}
	e.Size = int64(len(data))
	describe(w.Header(), tag, kind, e, false)
	Copy(w, r, bytes.NewReader(data))
	return nil
}

// Bytes are the plain bytes of page n, from wherever they are.
func (s *Server) Bytes(ctx context.Context, i *Index, n int) ([]byte, error) {
	e, err := i.Entry(n)
	if err != nil {
		return nil, err
	}
	if o, place, ok := i.InPack(n); ok {
		data, err := s.Media.ReadRange(ctx, s.Bucket, o, place.Offset, place.Length)
		if !blob.Lost(err) {
			return data, err
		}
		s.Finder.forget(ctx, i.BookID)
	}
	var data []byte
	if e.Direct() && !e.Heavy() {
		data, err = s.Content.Bytes(ctx, i.Bucket, i.Object(), e)
	} else {
		data, err = s.extract(ctx, i, n, e)
	}
	return data, s.changed(ctx, i, err)
}

// extract reads a dear page; requests for the same one share the work. Where no range of its own holds it, it asks for
// a page pack, so that later ones are ranges.
func (s *Server) extract(ctx context.Context, i *Index, n int, e archive.Entry) ([]byte, error) {
	if s.Want != nil && !e.Direct() {
		s.Want(ctx, i)
	}
	data, err := share(ctx, &s.dear.flights, fmt.Sprintf("%s|%s|%d", i.BookID, i.Fingerprint, n), func(ctx context.Context) ([]byte, error) {
		give, err := s.dear.room(ctx, httpapi.TenantOf(ctx).ID)
		if err != nil {
			return nil, err
		}
		defer give()
		return s.Content.Bytes(ctx, i.Bucket, i.Object(), e)
	})
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil, fault.Wrap(err, fault.Unavailable, "The pages of this book are being prepared; try again shortly").After(retryAfter)
	}
	return data, err
}

// share does work that several requests wait for once, as long as they are patient. It goes on when the one that began
// it leaves.
func share[T any](ctx context.Context, flights *singleflight.Group, key string, work func(ctx context.Context) (T, error)) (out T, err error) {
	done := flights.DoChan(key, fault.Guarded(func() (any, error) {
		shared, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		return work(shared)
	}))
	select {
	case r := <-done:
		if r.Err != nil {
			return out, r.Err
		}
		return r.Val.(T), nil
	case <-ctx.Done():
		return out, ctx.Err()
	}
}

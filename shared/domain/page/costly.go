package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/mediatype"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/flight"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/turn"
)

const (
	// Patience is how long a request waits for a page that must be decompressed or drawn. Then the client retries; by
	// then the page pack, if there is to be one, is likely ready.
	Patience = 8 * time.Second
	// costlyAtOnce limits the pages that one process decompresses or draws at once, to bound memory.
	costlyAtOnce = 2
)

// fair is something that all tenants of a process share, such as slots or memory.
type fair struct {
	shares turn.Shares // what one tenant, and one account, may have of it
	all    *semaphore.Weighted
}

// take waits for n of it; give returns it. A tenant waits behind at most as much of any other tenant as one may have. A
// CDN's requests have no account.
func (f *fair) take(ctx context.Context, tenant, account uuid.UUID, n int64) (give func(), err error) {
	share, err := f.shares.Take(ctx, tenant, account, n)
	if err != nil {
		return nil, err
	}
	if err := f.all.Acquire(ctx, n); err != nil {
		share()
		return nil, err
	}
	return func() { f.all.Release(n); share() }, nil
}

// costly limits and shares the work on expensive pages: those without a byte range of their own, and those that are
// heavy to unpack.
type costly struct {
	flights flight.Group[[]byte]
	slots   fair
	memory  fair
}

func newCostly() *costly {
	return &costly{
		slots: fair{turn.Shares{Tenants: turn.Turns{AtOnce: costlyAtOnce, Beside: costlyAtOnce - 1}, Accounts: turn.Turns{AtOnce: costlyAtOnce}},
			semaphore.NewWeighted(costlyAtOnce)},
		memory: fair{turn.Shares{Tenants: turn.Turns{AtOnce: heldOfTenant}, Accounts: turn.Turns{AtOnce: heldOfAccount}}, semaphore.NewWeighted(held)},
	}
}

// sendCostly sends a page that must be decompressed or drawn as a whole.
func (s *Server) sendCostly(w http.ResponseWriter, r *http.Request, i *Index, n int, e archive.Entry, tag string) error {
	give, err := s.Hold(r.Context(), e.Size, Patience)
	if err != nil {
		return err
	}
	defer give()
	data, err := s.extract(r.Context(), i, n, e)
	if err != nil {
		return s.unopened(r, i, err)
	}
	rest, err := s.Hold(r.Context(), int64(len(data))-e.Size, Brief) // the size of a page to be drawn is not known before
	if err != nil {
		return err
	}
	defer rest()
	kind := mediatype.Detect(data)
	if !mediatype.Servable(kind) {
		return fault.New(fault.Unprocessable, "Page %d is not an image that can be shown", n)
	}
	e.Size = int64(len(data))
	describe(w.Header(), tag, kind, e, false)
	CopyHeld(w, r, data)
	return nil
}

// Bytes returns the uncompressed bytes of page n.
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

// extract reads an expensive page; concurrent requests for the same page share the work. If the page has no byte range
// of its own, it also asks for a page pack, so that later requests are ranged reads.
func (s *Server) extract(ctx context.Context, i *Index, n int, e archive.Entry) ([]byte, error) {
	if s.Want != nil && !e.Direct() {
		s.Want(ctx, i)
	}
	key := fmt.Sprintf("%s|%s|%d", i.BookID, i.Fingerprint, n)
	data, err := s.costly.flights.Do(ctx, key, Patience, func(ctx context.Context, begin func()) ([]byte, error) {
		give, err := s.costly.slots.take(ctx, httpapi.TenantOf(ctx).ID, auth.AccountOf(ctx), 1)
		if err != nil {
			return nil, err
		}
		defer give()
		begin()
		return s.Content.Bytes(ctx, i.Bucket, i.Object(), e)
	})
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil, fault.Wrap(err, fault.Unavailable, "The pages of this book are being prepared; try again shortly").After(retryAfter)
	}
	return data, err
}

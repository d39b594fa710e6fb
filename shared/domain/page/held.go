package page

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/deaf"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Limits of the pages that a process holds in memory until their clients have read them, in bytes. A page that is
// streamed does not count.
const (
	held          = 256 << 20
	heldOfTenant  = held / 2
	heldOfAccount = heldOfTenant / 2 // so that no user keeps the pages from the others of the tenant
	// uncounted is the size up to which a page does not count: the buffers of a connection take as much anyway.
	uncounted = 256 << 10
)

// Brief is how long bytes that are in memory already wait for room, instead of Patience.
const Brief = time.Second

// Hold waits for room for n bytes that stay in memory until the client has read them; give returns the room. If there
// is none in time, it returns Unavailable.
func (s *Server) Hold(ctx context.Context, n int64, wait time.Duration) (give func(), err error) {
	if n <= uncounted {
		return func() {}, nil
	}
	within, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	give, err = s.costly.memory.take(within, httpapi.TenantOf(ctx).ID, auth.AccountOf(ctx), min(n, heldOfAccount))
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil, fault.Wrap(err, fault.Unavailable, "Too many pages wait in memory for slow readers; try again shortly").After(retryAfter)
	}
	return give, err
}

// slowest is the rate in bytes a second below which a client does not get the whole of what is held for it.
const slowest = 32 << 10

// CopyHeld is Copy for bytes that are held in memory. Here a slow reader is cut off in the end: a few that never end
// would keep the memory from all others.
func CopyHeld(w http.ResponseWriter, r *http.Request, data []byte) {
	if len(data) > uncounted {
		c := http.NewResponseController(w)
		_ = c.SetWriteDeadline(time.Now().Add(deaf.After + time.Duration(len(data)/slowest)*time.Second)) // Lambda has its own limit
		defer func() { _ = c.SetWriteDeadline(time.Time{}) }()                                            // the connection stays
	}
	Copy(w, r, bytes.NewReader(data))
}

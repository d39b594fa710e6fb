package page

import (
	"net/http"
	"sync"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/fault"
)

// mostDownloads is the number of files that one account may download at once from a process. However slowly a client
// reads, each takes memory in every hop.
const mostDownloads = 64

// downloads counts the downloads of each account.
type downloads struct {
	mu sync.Mutex
	of map[uuid.UUID]int
}

// begin counts a download of the caller until end is called. If there are too many, it returns TooManyRequests.
func (d *downloads) begin(r *http.Request) (end func(), err error) {
	if r.Method == http.MethodHead {
		return func() {}, nil
	}
	account := auth.AccountOf(r.Context())
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of[account] >= mostDownloads {
		return nil, fault.New(fault.TooManyRequests, "You have %d downloads at once, the most that you can have; end one first", mostDownloads).After(retryAfter)
	}
	d.of[account]++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.of[account]--; d.of[account] == 0 {
			delete(d.of, account)
		}
	}, nil
}

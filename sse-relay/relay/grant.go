package relay

import (
	"crypto/sha256"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// requiredPermission is needed for any stream. Single events may require more.
const requiredPermission = "LibrariesRead"

// grant holds the permissions of one credential, as the API last reported. Its connections share it.
type grant struct {
	key         [sha256.Size]byte
	tenant      uuid.UUID
	user        string
	permissions atomic.Pointer[permissionSet]
	expires     atomic.Int64 // Unix nanoseconds; 0 means never
	revoked     atomic.Bool

	// Guarded by access.mu.
	connections int
	credential  credential // while there are connections
	generation  string     // of the tenant when the API was asked
	asked       time.Time  // time of the request with the newest answer
	failing     time.Time  // since when the API has not confirmed it; zero when it does
	used        time.Time  // last connect
}

// expiry returns end in Unix nanoseconds. It returns 0 (never) for nil and for times beyond their range: a key may end
// in the year 9999.
func expiry(end *time.Time) int64 {
	switch {
	case end == nil, end.After(time.Unix(0, math.MaxInt64)):
		return 0
	case end.Before(time.Unix(0, 1)):
		return 1
	}
	return end.UnixNano()
}

// valid reports whether the grant is valid at now, in Unix nanoseconds.
func (g *grant) valid(now int64) bool {
	expires := g.expires.Load()
	return !g.revoked.Load() && (expires == 0 || now < expires)
}

// owner returns the user whose slots the grant's connections take.
func (g *grant) owner() owner { return owner{g.tenant, g.user} }

// lostBy says why the grant is not valid at now.
func (g *grant) lostBy(now int64) reason {
	if expires := g.expires.Load(); expires != 0 && now >= expires {
		return tokenExpired
	}
	return accessLost
}

// sees reports whether the grant's connections may receive an event for this permission and user (both may be empty).
func (g *grant) sees(permission, user string) bool {
	if user != "" && user != g.user {
		return false
	}
	return permission == "" || g.permissions.Load().has(permission)
}

// permissionSet is immutable. Equal sets share one value, because thousands of users share a role.
type permissionSet struct{ names []string }

func (p *permissionSet) has(name string) bool {
	_, found := slices.BinarySearch(p.names, name)
	return found
}

// maxSets limits the cached sets. Users with custom permissions have sets of their own.
const maxSets = 1024

type permissionSets struct {
	mu   sync.Mutex
	sets map[string]*permissionSet
}

func (p *permissionSets) of(names []string) *permissionSet {
	sorted := slices.Compact(slices.Sorted(slices.Values(names)))
	key := strings.Join(sorted, "\x00")
	p.mu.Lock()
	defer p.mu.Unlock()
	if set := p.sets[key]; set != nil {
		return set
	}
	if p.sets == nil || len(p.sets) >= maxSets {
		p.sets = map[string]*permissionSet{}
	}
	p.sets[key] = &permissionSet{sorted}
	return p.sets[key]
}

package httpapi

import (
	"context"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/ratelimit"
)

// The buckets of the rate limit: requests a second and burst.
const (
	anonymousRate, anonymousBurst = 10, 50
	userRate, userBurst           = 50, 200
	loginRate, loginBurst         = 0.2, 20
	tenantBurst                   = 4 // times the requests a second that a tenant's quota allows
)

// connectsToEvents tells whether the relay asks who connects to the events stream, which is exempt from rate limiting.
//
// Whoever is signed in may send the same and connect to nothing. So it counts all the same, but in a bucket of its own:
// the relay, which remembers answers, is far from emptying that, and others gain no more than as many answers about
// themselves again. Who is not known is counted by address, and everything for the tenant's quota, as ever.
func connectsToEvents(r *http.Request) bool {
	return r.URL.Path == "/api/v1/auth/stream" && r.URL.Query().Get("stream") == "events"
}

// counting is what a request takes tokens from.
type counting struct {
	tenant uuid.UUID
	bucket ratelimit.Bucket // of its caller, or its address where there is none
	all    ratelimit.Bucket // of the tenant; empty for a request that was counted there
	exempt bool
}

// counting is how a request is counted, at first for the tenant too. Keys that are new to this process are looked up
// as often as users may ask: a client that begins with many requests at once, perhaps each in another process, is no
// stranger yet.
func (a *API) counting(r *http.Request, t Tenant, caller *auth.Caller, newKey, first bool) counting {
	tenant := t.ID.String()
	c := counting{tenant: t.ID, exempt: caller != nil && connectsToEvents(r)}
	switch {
	case caller != nil:
		kind := "user"
		if c.exempt {
			kind = "events"
		}
		c.bucket = ratelimit.Bucket{Key: "lb:{" + tenant + "}:rate:" + kind + ":" + caller.AccountID.String(), Rate: userRate, Burst: userBurst}
	case newKey:
		c.bucket = ratelimit.Bucket{Key: "lb:{" + tenant + "}:rate:key:" + network(requestOf(r.Context()).clientIP), Rate: userRate, Burst: userBurst}
	default:
		c.bucket = ratelimit.Bucket{Key: "lb:{" + tenant + "}:rate:ip:" + network(requestOf(r.Context()).clientIP), Rate: anonymousRate, Burst: anonymousBurst}
	}
	if first {
		c.all = ratelimit.Bucket{Key: "lb:{" + tenant + "}:rate:tenant", Rate: float64(t.MaxRequests), Burst: tenantBurst * t.MaxRequests}
	}
	return c
}

// count takes the tokens of a request: one round trip to Redis.
func (a *API) count(ctx context.Context, c counting) ratelimit.Result {
	if a.limiter == nil {
		return ratelimit.Result{Allowed: true}
	}
	return a.limiter.Take(ctx, c.bucket, generations(c.tenant), c.all)
}

// passes sets the headers of the rate limit; it answers 429 itself and returns false.
func (a *API) passes(w http.ResponseWriter, r *http.Request, c counting, res ratelimit.Result) bool {
	requestOf(r.Context()).generation = res.Generation
	if a.limiter == nil || !a.config.RateLimit || c.exempt && res.Allowed {
		return true
	}
	return a.limited(w, r, res)
}

func (a *API) limited(w http.ResponseWriter, r *http.Request, res ratelimit.Result) bool {
	tellLimit(w.Header(), res)
	if res.Allowed {
		return true
	}
	e := fault.New(fault.TooManyRequests, "Too many requests; wait and try again")
	if res.Bucket > 0 {
		e = fault.New(fault.TooManyRequests, "Too many requests of all users of this library server together; wait and try again")
	}
	e.RetryAfter = max(res.RetryAfter, time.Second)
	WriteError(w, r, e)
	return false
}

func tellLimit(h http.Header, res ratelimit.Result) {
	h.Set("X-RateLimit-Limit", strconv.Itoa(res.Limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(res.Remaining))
	h.Set("X-RateLimit-Reset", strconv.Itoa(int(math.Ceil(res.Reset.Seconds()))))
}

// TakeLogin counts an attempt to sign in against the client's stricter bucket; an error is the 429. This process counts
// what Redis lets pass once more: many attempts at once delay its answers, and must not get around it by that.
func (a *API) TakeLogin(ctx context.Context) error {
	if a.limiter == nil || !a.config.RateLimit {
		return nil
	}
	t := TenantOf(ctx)
	bucket := ratelimit.Bucket{Key: "lb:{" + t.ID.String() + "}:rate:login:" + network(ClientIP(ctx)), Rate: loginRate, Burst: loginBurst}
	res := a.limiter.Take(ctx, bucket, nil)
	if res.Allowed {
		res = a.logins.Take(bucket)
	}
	if res.Allowed {
		return nil
	}
	tellLimit(Header(ctx), res)
	return fault.New(fault.TooManyRequests, "Too many attempts to sign in; wait and try again").After(max(res.RetryAfter, time.Second))
}

// generations are the Redis keys of the tenant's access generation and of that of its books' places, which package
// events sets.
func generations(tenant uuid.UUID) []string {
	access := "lb:{" + tenant.String() + "}:gen"
	return []string{access, access + ":books"}
}

// network is what is counted of an address: who has one of IPv6 has a whole /64 to choose others from.
func network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	if ip = ip.Unmap(); ip.Is4() {
		return ip.String()
	}
	return netip.PrefixFrom(ip.WithZone(""), 64).Masked().String()
}

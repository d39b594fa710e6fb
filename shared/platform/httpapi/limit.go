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
// Whoever is signed in may send the same and connect to nothing. So it counts all the same, but in a bucket of its own: the
// relay, which remembers answers, is far from emptying that, and others gain no more than as many answers about themselves
// again. Who is not known is counted by address, and everything for the tenant's quota, as ever.
func connectsToEvents(r *http.Request) bool {
	return r.URL.Path == "/api/v1/auth/stream" && r.URL.Query().Get("stream") == "events"
}

// take counts the request for its caller, or its address where there is none, and at first for the tenant too, and sets
// the headers of the rate limit; it answers 429 itself and returns false. Keys that are new to this process are looked up
// as often as users may ask: a client that begins with many requests at once, perhaps each in another process, is no
// stranger yet.
func (a *API) take(w http.ResponseWriter, r *http.Request, t Tenant, caller *auth.Caller, newKey, first bool) bool {
	if a.limiter == nil {
		return true
	}
	tenant := t.ID.String()
	bucket := ratelimit.Bucket{Key: "lb:{" + tenant + "}:rate:ip:" + network(requestOf(r.Context()).clientIP), Rate: anonymousRate, Burst: anonymousBurst}
	exempt := caller != nil && connectsToEvents(r)
	if newKey {
		bucket.Key, bucket.Rate, bucket.Burst = "lb:{"+tenant+"}:rate:key:"+network(requestOf(r.Context()).clientIP), userRate, userBurst
	}
	if caller != nil {
		kind := "user"
		if exempt {
			kind = "events"
		}
		bucket = ratelimit.Bucket{Key: "lb:{" + tenant + "}:rate:" + kind + ":" + caller.AccountID.String(), Rate: userRate, Burst: userBurst}
	}
	var all ratelimit.Bucket
	if first {
		all = ratelimit.Bucket{Key: "lb:{" + tenant + "}:rate:tenant", Rate: float64(t.MaxRequests), Burst: tenantBurst * t.MaxRequests}
	}
	res := a.limiter.Take(r.Context(), bucket, generations(t.ID), all)
	requestOf(r.Context()).generation = res.Generation
	if !a.config.RateLimit || exempt && res.Allowed {
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
	e := fault.New(fault.TooManyRequests, "Too many attempts to sign in; wait and try again")
	e.RetryAfter = max(res.RetryAfter, time.Second)
	return e
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

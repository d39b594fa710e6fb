package httpapi

import (
	"context"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/ratelimit"
)

// Buckets of the rate limit: requests per second and burst.
const (
	anonymousRate, anonymousBurst = 10, 50
	userRate, userBurst           = 50, 200
	loginRate, loginBurst         = 0.2, 20
	tenantBurst                   = 4 // burst of a tenant's quota, as a multiple of its requests per second
)

// connectsToEvents reports whether the relay is asking about a connection to the events stream, which is exempt from
// rate limiting.
//
// Any signed-in user can send the same request without connecting. So it counts in a bucket of its own. The relay
// caches answers and stays far below that limit; others only gain as many further answers about themselves. Such
// requests do not count for the tenant's quota either. Anonymous ones, and those with a key that is new to this
// process, count by address, as usual.
func connectsToEvents(r *http.Request) bool {
	return r.URL.Path == "/api/v1/auth/stream" && r.URL.Query().Get("stream") == "events"
}

// counting says which buckets a request takes tokens from.
type counting struct {
	tenant uuid.UUID
	bucket ratelimit.Bucket // of the caller, or of the address if anonymous
	all    ratelimit.Bucket // of the tenant; empty if the request was counted there already, or connects to events
	exempt bool
}

// counting returns how a request is counted. An API key that is new to this process is looked up at the rate of users:
// a client that starts with many requests at once, perhaps in several processes, is not anonymous. So are probes.
func (a *API) counting(r *http.Request, t Tenant, caller *auth.Caller, newKey bool) counting {
	toEvents := connectsToEvents(r)
	tenant, ip := t.ID.String(), requestOf(r.Context()).clientIP
	c := counting{tenant: t.ID, bucket: ratelimit.Bucket{Rate: userRate, Burst: userBurst}, exempt: caller != nil && toEvents}
	switch {
	case c.exempt:
		c.bucket.Key = rateKey(tenant, "events:", caller.AccountID.String())
	case caller != nil:
		c.bucket.Key = rateKey(tenant, "user:", caller.AccountID.String())
	case newKey:
		c.bucket.Key = rateKey(tenant, "key:", network(ip))
	case a.isProbe(r, t):
		c.bucket.Key = rateKey(tenant, "probe:", network(ip))
	default:
		c.bucket = ratelimit.Bucket{Key: rateKey(tenant, "ip:", network(ip)), Rate: anonymousRate, Burst: anonymousBurst}
	}
	if !toEvents { // the tenant's own requests must not close its streams
		c.all = ratelimit.Bucket{Key: rateKey(tenant, "tenant", ""), Rate: float64(t.MaxRequests), Burst: tenantBurst * t.MaxRequests}
	}
	return c
}

// rateKey returns the key of a tenant's bucket in Redis.
func rateKey(tenant, kind, whose string) string { return "lb:{" + tenant + "}:rate:" + kind + whose }

// isProbe reports whether a request asks for the challenge of an app made for Komga or for OPDS. Such an app sends
// every request first without a credential, and again with one after the 401, which needs no database.
func (a *API) isProbe(r *http.Request, t Tenant) bool {
	p := r.URL.Path
	return (isOPDS(p) || t.Prefix != "" && strings.HasPrefix(p, "/"+t.Prefix+"/")) && a.credentialOf(r, t.Prefix).Empty() && !a.isPublic(r.Method, p)
}

// isOPDS reports whether a path belongs to the catalogs.
func isOPDS(path string) bool { return path == "/opds" || strings.HasPrefix(path, "/opds/") }

// count takes the tokens of a request, with at most one round trip to Redis. Without a limit it reads the generation
// alone.
func (a *API) count(ctx context.Context, c counting) ratelimit.Result {
	if a.limiter == nil {
		return ratelimit.Result{Allowed: true}
	}
	if !a.config.RateLimit {
		c.bucket, c.all = ratelimit.Bucket{}, ratelimit.Bucket{}
	}
	return a.limiter.Take(ctx, c.bucket, []string{events.GenerationKey(c.tenant), events.BooksKey(c.tenant)}, c.all)
}

// passes sets the rate limit headers. If the request exceeds the limit, it responds with 429 and returns false.
func (a *API) passes(w http.ResponseWriter, r *http.Request, c counting, res ratelimit.Result) bool {
	requestOf(r.Context()).generation = res.Generation
	if a.limiter == nil || !a.config.RateLimit || c.exempt && res.Allowed {
		return true
	}
	tellLimit(w.Header(), res)
	if res.Allowed {
		return true
	}
	what := "requests"
	if res.Bucket > 0 {
		what = "requests of all users of this library server together"
	}
	WriteError(w, r, tooMany(res, what))
	return false
}

// tooMany returns the error of a request that exceeds the limit.
func tooMany(res ratelimit.Result, what string) error {
	return fault.New(fault.TooManyRequests, "Too many %s; wait and try again", what).After(max(res.RetryAfter, time.Second))
}

func tellLimit(h http.Header, res ratelimit.Result) {
	h.Set("X-RateLimit-Limit", strconv.Itoa(res.Limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(res.Remaining))
	h.Set("X-RateLimit-Reset", strconv.Itoa(int(math.Ceil(res.Reset.Seconds()))))
}

// TakeLogin counts a sign-in attempt against the client's stricter bucket. Its error is the 429. Attempts that Redis
// accepts are counted again in this process: many concurrent attempts delay Redis, and must not bypass the limit that
// way.
func (a *API) TakeLogin(ctx context.Context) error {
	if a.limiter == nil || !a.config.RateLimit {
		return nil
	}
	t := TenantOf(ctx)
	bucket := ratelimit.Bucket{Key: rateKey(t.ID.String(), "login:", network(ClientIP(ctx))), Rate: loginRate, Burst: loginBurst}
	res := a.limiter.Take(ctx, bucket, nil)
	if res.Allowed {
		res = a.logins.Take(bucket)
	}
	if res.Allowed {
		return nil
	}
	tellLimit(Header(ctx), res)
	return tooMany(res, "attempts to sign in")
}

// TakeLookup counts, in this process, a look-up of the tenant of a host name. Clients choose the names, and the request
// counts in no other bucket before its tenant is known. The error is the 429.
func TakeLookup(ctx context.Context) error {
	req := requestOf(ctx)
	if req.lookups == nil {
		return nil
	}
	res := req.lookups.Take(ratelimit.Bucket{Key: network(req.clientIP), Rate: anonymousRate, Burst: anonymousBurst})
	if res.Allowed {
		return nil
	}
	tellLimit(req.header, res)
	return tooMany(res, "requests for different host names")
}

// countRefused counts, in this process, a request to a host that has no active tenant. err says why it is refused; the
// result is the 429 if the address has sent too many of them.
func (a *API) countRefused(h http.Header, req *request, err error) error {
	if a.limiter == nil || !a.config.RateLimit || fault.Is(err, fault.TooManyRequests) {
		return err
	}
	res := a.refused.Take(ratelimit.Bucket{Key: network(req.clientIP), Rate: anonymousRate, Burst: anonymousBurst})
	tellLimit(h, res)
	if !res.Allowed {
		return tooMany(res, "requests to a host name without an active library server")
	}
	return err
}

// network returns the key for counting an address: the /64 of an IPv6 address, because a client can use all of it.
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

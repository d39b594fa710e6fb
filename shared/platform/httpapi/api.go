// Package httpapi is the HTTP side of every function: one router, typed operations with permissions, one error format,
// the list envelope, and the middleware that determines tenant, caller and rate limit before a handler runs.
package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"
	"golang.org/x/sync/singleflight"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/environ"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/hops"
	"github.com/longbox/longbox/shared/platform/ratelimit"
)

// maxBody limits a request body, in bytes, unless the operation sets its own limit.
const maxBody = 2 << 20

// bodyPatience limits the time for receiving a body. It allows for a slow phone.
const bodyPatience = 30 * time.Second

// interfaceVersion is the version in the OpenAPI description.
const interfaceVersion = "2.1.0"

// Config sets how requests are received.
type Config struct {
	TrustedProxies int      `env:"TRUSTED_PROXIES" envDefault:"0"` // number of proxies in front that may report the client
	RateLimit      bool     `env:"RATE_LIMIT" envDefault:"true"`
	CORSOrigins    []string `env:"CORS_ORIGINS"` // allowed origins of web clients; * for any, without cookies
}

// Validate returns an error that names the setting out of bounds.
func (c Config) Validate() error {
	if c.TrustedProxies < 0 || c.TrustedProxies > hops.Most {
		return fmt.Errorf("TRUSTED_PROXIES: must be 0 to %d, is %d", hops.Most, c.TrustedProxies)
	}
	return environ.WebOrigins("CORS_ORIGINS", c.CORSOrigins)
}

// Identity determines the tenant and the sender of a request.
type Identity struct {
	// Tenant returns the tenant of a host name, or NotFound.
	Tenant func(ctx context.Context, host string) (Tenant, error)
	// Confirm is Tenant once Redis has reported the tenant's access generation. Entries cached under an earlier
	// generation are looked up again. It may be nil.
	Confirm func(ctx context.Context, host, generation string) (Tenant, error)
	// Known returns the caller if this takes no I/O: for a token, or a cached credential. It returns nil without an
	// error for a credential that needs Resolve.
	Known func(ctx context.Context, c Credential) (*auth.Caller, error)
	// Resolve looks a credential up. It returns Unauthorized for an invalid one.
	Resolve func(ctx context.Context, c Credential) (*auth.Caller, error)
	// Tokens signs the cookies for apps made for Komga. Without it there are none.
	Tokens *auth.Tokens
}

// API is the router of one function with its operations.
type API struct {
	Router     chi.Router
	Operations []*Op

	config   Config
	database *db.DB
	limiter  *ratelimit.Limiter
	identity Identity
	origins  *http.CrossOriginProtection
	attempts singleflight.Group // sign-in attempts with the same user name and password
	logins   ratelimit.Local
	lookups  ratelimit.Local // see TakeLookup
	refused  ratelimit.Local // see countRefused
	expected expected
	ahead    []string // paths of the operations that start ahead
	byCookie []string // paths of those that accept the session cookie
	exempt   []string
	outside  []string // path prefixes outside the API
	public   []string // method and path of public operations
	describe []func(huma.API)
	openAPI  func() *huma.OpenAPI
}

// New makes a router with the middleware. limiter may be nil: no rate limit.
func New(c Config, database *db.DB, limiter *ratelimit.Limiter, id Identity) *API {
	humaErrors()
	a := &API{config: c, database: database, limiter: limiter, identity: id, origins: crossOrigin(c.CORSOrigins),
		exempt: []string{"/health", "/api/v1/health"}}
	r := chi.NewRouter()
	r.Use(headAsGet, a.observe, a.cors, a.spelling, a.identify)
	a.Router = r
	a.openAPI = sync.OnceValue(a.describeAll)
	r.NotFound(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") && auth.CallerOf(r.Context()) == nil {
			WriteError(w, r, errUnauthenticated)
			return
		}
		if r.URL.Path == "/" { // somebody opens the host in a browser
			WriteError(w, r, fault.New(fault.NotFound, "Longbox is running. It has no pages of its own: apps find its interface at /api/v1"))
			return
		}
		WriteError(w, r, fault.New(fault.NotFound, "There is nothing at %s %s", r.Method, r.URL.Path))
	})
	r.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		if auth.CallerOf(r.Context()) == nil && !a.isExempt(r.URL.Path) {
			WriteError(w, r, errUnauthenticated)
			return
		}
		WriteError(w, r, fault.New(fault.NotFound, "There is nothing at %s %s", r.Method, r.URL.Path))
	})
	return a
}

func (a *API) isExempt(path string) bool { return slices.Contains(a.exempt, path) }

// Outside adds a plain handler below a prefix (which begins and ends with a slash) outside the API. The middleware
// finds no tenant by host name, and does no authentication, rate limiting or CORS. The handler authenticates the
// request itself and sets the tenant with SetTenant.
func (a *API) Outside(prefix string, handle func(w http.ResponseWriter, r *http.Request) error) {
	a.outside = append(a.outside, prefix)
	a.Router.Get(prefix+"*", func(w http.ResponseWriter, r *http.Request) {
		if err := handle(w, r); err != nil {
			WriteError(w, r, err)
		}
	})
}

func (a *API) isOutside(path string) bool {
	return slices.ContainsFunc(a.outside, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
}

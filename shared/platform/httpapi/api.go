// Package httpapi is the HTTP side of every function: one router, typed operations with their permission, one
// error shape, the list envelope, and the middleware that knows tenant, caller and rate limit before a handler
// runs.
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

// maxBody is the largest request body, in bytes, unless an operation says otherwise.
const maxBody = 2 << 20

// bodyPatience is how long a body may take to arrive: a whole one of a slow telephone.
const bodyPatience = 30 * time.Second

// interfaceVersion is the version of the published interface description.
const interfaceVersion = "2.1.0"

// Config is how requests are received.
type Config struct {
	TrustedProxies int      `env:"TRUSTED_PROXIES" envDefault:"0"` // how many hops in front may report the client
	RateLimit      bool     `env:"RATE_LIMIT" envDefault:"true"`
	CORSOrigins    []string `env:"CORS_ORIGINS"` // origins of web clients on other hosts; * for any, without cookies
}

// Validate names the setting that is out of its bounds.
func (c Config) Validate() error {
	if c.TrustedProxies < 0 || c.TrustedProxies > hops.Most {
		return fmt.Errorf("TRUSTED_PROXIES: must be 0 to %d, is %d", hops.Most, c.TrustedProxies)
	}
	return environ.WebOrigins("CORS_ORIGINS", c.CORSOrigins)
}

// Identity finds out who sends a request.
type Identity struct {
	// Tenant finds the tenant of a host name; NotFound when there is none.
	Tenant func(ctx context.Context, host string) (Tenant, error)
	// Confirm is the same, after Redis told the tenant's access generation: what is remembered from before that
	// generation is looked up again. It may be nil.
	Confirm func(ctx context.Context, host, generation string) (Tenant, error)
	// Known is the caller when no I/O is needed to tell: a token, or a credential seen before. It is nil with
	// no error for a credential that Resolve has to look at.
	Known func(ctx context.Context, c Credential) (*auth.Caller, error)
	// Resolve looks a credential up; Unauthorized when it is no good.
	Resolve func(ctx context.Context, c Credential) (*auth.Caller, error)
}

// API is the router of one function and the operations on it.
type API struct {
	Router     chi.Router
	Operations []*Op

	config   Config
	database *db.DB
	limiter  *ratelimit.Limiter
	identity Identity
	attempts singleflight.Group // of signing in with the same user name and password
	logins   ratelimit.Local
	expected expected
	early    []string // paths of operations that are Early
	exempt   []string
	outside  []string        // prefixes of paths that are no part of the interface
	public   map[string]bool // method and path of operations that need no credential
	open     []string        // the same, of those with parameters in the path
	describe []func(huma.API)
	openAPI  func() *huma.OpenAPI
}

// New makes a router with the middleware on it. limiter may be nil: no rate limit.
func New(c Config, database *db.DB, limiter *ratelimit.Limiter, id Identity) *API {
	humaErrors()
	a := &API{config: c, database: database, limiter: limiter, identity: id, exempt: []string{"/health", "/api/v1/health"}, public: map[string]bool{}}
	r := chi.NewRouter()
	r.Use(headAsGet, a.observe, a.cors, a.spelling, a.identify)
	a.Router = r
	a.openAPI = sync.OnceValue(a.describeAll)
	r.NotFound(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") && auth.CallerOf(r.Context()) == nil {
			WriteError(w, r, errUnauthenticated)
			return
		}
		if r.URL.Path == "/" { // who opens the address in a browser
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

// Outside adds a plain handler below a prefix (which begins and ends with a slash) that is no part of the interface:
// no tenant is found by host name, nobody is signed in, nothing is counted, no origin is let in. The handler checks
// who asks, and names the tenant with SetTenant.
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

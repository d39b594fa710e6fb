package httpapi

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/cors"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/hops"
	"github.com/longbox/longbox/shared/platform/ratelimit"
	"github.com/longbox/longbox/shared/platform/requestid"
)

// ErrSuspended refuses requests of a suspended tenant.
var ErrSuspended = fault.New(fault.Forbidden, "This library server is suspended; ask its operator")

// headAsGet routes a HEAD request like a GET request.
func headAsGet(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			chi.RouteContext(r.Context()).RouteMethod = http.MethodGet
		}
		next.ServeHTTP(w, r)
	})
}

// observe gives each request an id, one log line, and a response even if a handler panics.
func (a *API) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ww := &writer{ResponseWriter: w, empty: r.ContentLength == 0}
		req := &request{client: r.Context(), id: cmp.Or(requestid.Of(r.Context()), rand.Text()), header: ww.Header(),
			out: ww, started: time.Now(), userAgent: cut.Bytes(r.UserAgent(), 512),
			device: cut.Bytes(r.Header.Get("X-Codex-Device-Id"), 128)}
		req.clientIP = hops.Client(r, a.config.TrustedProxies)
		if a.config.RateLimit {
			req.lookups = &a.lookups
		}
		u := *r.URL
		u.Scheme = "http"
		if hops.Secure(r, a.config.TrustedProxies) {
			u.Scheme = "https"
		}
		req.url, req.host, req.cookies = &u, a.called(r), r.Cookies()
		h := ww.Header()
		h.Set("X-Request-Id", req.id)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		r = r.WithContext(context.WithValue(r.Context(), requestKey{}, req))
		if r.Body != nil {
			req.body.ReadCloser = r.Body
			r.Body = &req.body
		}
		defer func() {
			part := false // part of a response was sent and must not pass for all of it
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler {
					a.log(r, ww, req, slog.LevelWarn)
					panic(p)
				}
				req.fail(fmt.Errorf("panic: %v", p))
				req.note(slog.String("stack", string(debug.Stack())))
				if part = ww.status != 0; !part {
					WriteError(ww, r, req.err)
				}
			}
			level := slog.LevelInfo
			switch {
			case req.err != nil:
				level = slog.LevelError
			case ww.status >= http.StatusInternalServerError:
				level = slog.LevelWarn
			}
			a.log(r, ww, req, level)
			if part {
				panic(http.ErrAbortHandler)
			}
		}()
		next.ServeHTTP(ww, r)
	})
}

func (a *API) log(r *http.Request, w *writer, req *request, level slog.Level) {
	if a.isExempt(r.URL.Path) && level == slog.LevelInfo {
		level = slog.LevelDebug
	}
	attrs := []slog.Attr{slog.String("id", req.id), slog.String("method", r.Method), slog.String("path", r.URL.Path),
		slog.Int("status", max(w.status, 200)), slog.Int64("bytes", w.bytes),
		slog.Float64("ms", float64(time.Since(req.started).Microseconds())/1000),
		slog.String("tenant", req.tenant.Name), slog.String("tenantId", req.tenant.ID.String()), slog.String("ip", req.clientIP)}
	attrs = append(attrs, req.notes...)
	if req.err != nil {
		attrs = append(attrs, slog.String("error", fault.Line(req.err.Error())))
	}
	slog.LogAttrs(context.Background(), level, "request", attrs...) // it names its request and tenant itself
}

// spelling maps query parameters in snake_case to camelCase, and limit to pageSize. The URL of an OPDS catalog, which
// people type into readers, may have a trailing slash.
func (a *API) spelling(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := r.URL.Path
		if p == "/opds/" || p == "/opds/v2/" || p == "/opds/v1/catalog/" {
			p = strings.TrimSuffix(p, "/")
		}
		if strings.HasPrefix(p, "/koreader//") { // KOReader adds /users/auth to what was typed
			p = strings.Replace(p, "//", "/", 1)
		}
		if p != r.URL.Path {
			r.URL.Path, requestOf(r.Context()).url.Path = p, p
		}
		if strings.Contains(r.URL.RawQuery, "_") || strings.Contains(r.URL.RawQuery, "limit=") {
			q, err := url.ParseQuery(r.URL.RawQuery)
			if err != nil { // the operation reports it
				next.ServeHTTP(w, r)
				return
			}
			out := make(url.Values, len(q))
			for _, k := range slices.Sorted(maps.Keys(q)) { // sorted, so that of two other spellings always the same one wins
				if to := parameter(k); !q.Has(to) || to == k {
					out[to] = q[k]
				}
			}
			r.URL.RawQuery = out.Encode()
			requestOf(r.Context()).url.RawQuery = r.URL.RawQuery
		}
		next.ServeHTTP(w, r)
	})
}

func parameter(key string) string {
	if key == "limit" { // the page size of some one-page lists
		return "pageSize"
	}
	return camel(key)
}

// identify determines tenant and caller, and counts the request against the right bucket. It needs no database for a
// cached credential.
func (a *API) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.isExempt(r.URL.Path) || a.isOutside(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		ctx := r.Context()
		req := requestOf(ctx)
		host := a.host(r)
		tenant, err := active(a.identity.Tenant(ctx, host))
		if err != nil { // not counted in Redis: a deleted tenant must get no new data
			WriteError(w, r, a.countRefused(w.Header(), req, err))
			return
		}
		req.tenant = tenant
		cred := a.credentialOf(r, tenant.Prefix)
		req.password = cred.fromPassword()
		var caller *auth.Caller
		var credErr error
		if !cred.Empty() {
			caller, credErr = a.identity.Known(ctx, cred)
		}
		public := a.isPublic(r.Method, r.URL.Path)
		newKey := caller == nil && credErr == nil && !public && cred.isKey()
		c := a.counting(r, tenant, caller, newKey)
		res, answered := a.countAndAnswer(next, w, r, host, c, cred, caller)
		if answered || !a.passes(w, r, c, res) {
			return
		}
		if err := a.confirm(ctx, host); err != nil {
			WriteError(w, r, err)
			return
		}
		if req.tenant.ID != tenant.ID && !cred.Empty() { // the host belongs to another tenant now
			caller, credErr = a.identity.Known(ctx, cred)
		}
		if caller == nil && credErr == nil && !cred.Empty() && !public {
			caller, credErr = a.resolve(inTenant(ctx), cred)
			// The lookup of a credential counts for its address, the request for its user. The request of an unknown
			// key counts for the address, like any anonymous one.
			if (caller != nil || newKey && fault.Is(credErr, fault.Unauthorized)) && !a.passesAgain(w, r, caller) {
				return
			}
		}
		switch {
		case credErr != nil && (cred.Cookie || public): // a stale token must not prevent signing in again
		case credErr != nil:
			WriteError(w, r, credErr)
			return
		case caller != nil:
			r = as(r, cred, caller)
		}
		next.ServeHTTP(w, r)
	})
}

// confirm looks the request's tenant up again if Redis has reported its access generation.
func (a *API) confirm(ctx context.Context, host string) error {
	req := requestOf(ctx)
	if a.identity.Confirm == nil || req.generation == "" {
		return nil
	}
	tenant, err := active(a.identity.Confirm(ctx, host, req.generation))
	if err == nil {
		req.tenant = tenant
	}
	return err
}

// passesAgain is passes after the lookup of a credential: it counts the request again, but not for its tenant.
func (a *API) passesAgain(w http.ResponseWriter, r *http.Request, caller *auth.Caller) bool {
	c := a.counting(r, requestOf(r.Context()).tenant, caller, false)
	c.all = ratelimit.Bucket{}
	return a.passes(w, r, c, a.count(r.Context(), c))
}

// isPublic reports whether an operation needs no credential.
func (a *API) isPublic(method, path string) bool {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	asked := method + " " + path
	return slices.ContainsFunc(a.public, func(p string) bool { return fits(p, asked) })
}

// fits reports whether a path matches a pattern with parameters in braces.
func fits(pattern, path string) bool {
	for more := true; more; {
		var want, got string
		var goesOn bool
		want, pattern, more = strings.Cut(pattern, "/")
		got, path, goesOn = strings.Cut(path, "/")
		if more != goesOn || want != got && (!strings.HasPrefix(want, "{") || got == "") {
			return false
		}
	}
	return true
}

// active refuses a suspended tenant.
func active(t Tenant, err error) (Tenant, error) {
	if err == nil && t.Suspended {
		err = ErrSuspended
	}
	return t, err
}

// resolve looks a credential up. A password counts as a sign-in attempt, whatever the operation.
func (a *API) resolve(ctx context.Context, c Credential) (*auth.Caller, error) {
	if !c.Basic || c.isKey() {
		return a.identity.Resolve(ctx, c)
	}
	return a.attempt(ctx, c)
}

// attempt checks a password. Of concurrent requests with the same one, such as an app that loads a screen of covers,
// one checks it, and the others then find it in the cache. Together they count as one sign-in attempt.
func (a *API) attempt(ctx context.Context, c Credential) (*auth.Caller, error) {
	for {
		var caller *auth.Caller
		mine := false
		_, err, _ := a.attempts.Do(attemptKey(TenantOf(ctx), c), func() (_ any, err error) {
			mine = true
			if caller, err = a.identity.Known(ctx, c); caller == nil && err == nil { // otherwise another request was faster
				if err = a.TakeLogin(ctx); err == nil {
					caller, err = a.identity.Resolve(ctx, c)
				}
			}
			return nil, err
		})
		if mine {
			return caller, err
		}
		if caller, err = a.identity.Known(ctx, c); caller != nil || err != nil {
			return caller, err
		}
	}
}

// attemptKey identifies a user name and password of a tenant.
func attemptKey(t Tenant, c Credential) string {
	h := sha256.New()
	h.Write(t.ID[:])
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(c.Username)))) // so that no two pairs have the same bytes
	h.Write([]byte(c.Username))
	h.Write([]byte(c.Password))
	return string(h.Sum(nil))
}

// cors answers preflight requests and lets configured origins read responses, except those of Outside.
func (a *API) cors(next http.Handler) http.Handler {
	open := cors.Policy{Origins: a.config.CORSOrigins, Methods: "GET, HEAD, POST, PUT, PATCH, DELETE",
		Headers: cors.RequestHeaders,
		Expose:  "Link, ETag, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, Content-Disposition, Accept-Ranges, Content-Range, X-Request-Id",
	}.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.isOutside(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		open.ServeHTTP(w, r)
	})
}

// maxHost is the maximum length of a host name in bytes (RFC 1035). Longer names match no tenant; tenants are cached by
// host.
const maxHost = 253

// called returns the host that the client used, perhaps with a port. URLs are built from it, so a value that is no
// plain host (a:80@b leads to b) is dropped. The server has already checked the Host header.
func (a *API) called(r *http.Request) string {
	if fwd := r.Header.Get("X-Forwarded-Host"); fwd != "" && a.config.TrustedProxies > 0 {
		if strings.ContainsAny(fwd, "@/\\?#%, \t") {
			return ""
		}
		return fwd
	}
	return r.Host
}

func (a *API) host(r *http.Request) string {
	host := a.called(r)
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if host = strings.TrimSuffix(host, "."); len(host) > maxHost {
		return ""
	}
	return strings.ToLower(host)
}

// gone is the status of a response that the client did not wait for. It only appears in the log.
const gone = 499

// Gone reports whether err only means that the client has left.
func Gone(ctx context.Context, err error) bool {
	return errors.Is(err, context.Canceled) && ctx.Err() != nil
}

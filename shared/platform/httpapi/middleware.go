package httpapi

import (
	"cmp"
	"context"
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

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/cors"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/hops"
	"github.com/longbox/longbox/shared/platform/requestid"
)

// ErrSuspended refuses a request of a tenant that is suspended.
var ErrSuspended = fault.New(fault.Forbidden, "This library server is suspended; ask its operator")

// headAsGet finds the operation of a HEAD request where that of GET is.
func headAsGet(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			chi.RouteContext(r.Context()).RouteMethod = http.MethodGet
		}
		next.ServeHTTP(w, r)
	})
}

// observe gives the request its id, one log line, and an answer even when a handler panics.
func (a *API) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ww := &writer{ResponseWriter: w}
		req := &request{client: r.Context(), id: cmp.Or(requestid.Of(r.Context()), newRequestID()), header: ww.Header(), out: ww, started: time.Now(), userAgent: truncate(r.UserAgent(), 512),
			device: truncate(r.Header.Get("X-Codex-Device-Id"), 128)}
		req.clientIP = hops.Client(r, a.config.TrustedProxies)
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
			part := false // of an answer is out that must not be taken for the whole
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
			if req.err != nil {
				level = slog.LevelError
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
		slog.String("tenant", req.tenant.Name), slog.String("ip", req.clientIP)}
	attrs = append(attrs, req.notes...)
	if req.err != nil {
		attrs = append(attrs, slog.String("error", fault.Line(req.err.Error())))
	}
	slog.LogAttrs(r.Context(), level, "request", attrs...)
}

// spelling makes query parameters in snake_case mean the same in camelCase, and limit the same as
// pageSize. The address of a catalog, which people type into readers, may end with a slash.
func (a *API) spelling(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/opds/" || r.URL.Path == "/opds/v2/" {
			r.URL.Path = strings.TrimSuffix(r.URL.Path, "/")
			requestOf(r.Context()).url.Path = r.URL.Path
		}
		if strings.Contains(r.URL.RawQuery, "_") || strings.Contains(r.URL.RawQuery, "limit=") {
			q, err := url.ParseQuery(r.URL.RawQuery)
			if err != nil { // the operation says so
				next.ServeHTTP(w, r)
				return
			}
			out := make(url.Values, len(q))
			for _, k := range slices.Sorted(maps.Keys(q)) { // of two other spellings always the same counts
				if to := parameter(k); !q.Has(to) || to == k {
					out[to] = q[k]
				}
			}
			r.URL.RawQuery = out.Encode()
			*requestOf(r.Context()).url = withScheme(*r.URL, requestOf(r.Context()).url.Scheme)
		}
		next.ServeHTTP(w, r)
	})
}

func parameter(key string) string {
	if key == "limit" { // what short lists have for the size of their one page
		return "pageSize"
	}
	if key == strings.Repeat("_", len(key)) { // some clients add it against caches
		return key
	}
	return camel(key)
}

func withScheme(u url.URL, scheme string) url.URL { u.Scheme = scheme; return u }

// identify finds tenant and caller and counts the request against the right bucket. It does no database work
// for a credential seen before.
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
		if err != nil { // counted nowhere: nothing is kept of a tenant that is being deleted
			WriteError(w, r, err)
			return
		}
		req.tenant = tenant
		counted := tenant.ID
		cred := credentialOf(r)
		var caller *auth.Caller
		var credErr error
		if !cred.Empty() {
			caller, credErr = a.identity.Known(ctx, cred)
		}
		public := a.isPublic(r.Method, r.URL.Path)
		newKey := caller == nil && credErr == nil && !public && cred.isKey()
		c := a.counting(r, tenant, caller, newKey, true)
		res, answered := a.countAndAnswer(next, w, r, host, c, cred, caller)
		if answered || !a.passes(w, r, c, res) {
			return
		}
		if a.identity.Confirm != nil && req.generation != "" {
			if tenant, err = active(a.identity.Confirm(ctx, host, req.generation)); err != nil {
				WriteError(w, r, err)
				return
			}
			req.tenant = tenant
			if tenant.ID != counted && !cred.Empty() { // the host is another tenant's by now
				caller, credErr = a.identity.Known(ctx, cred)
			}
		}
		if caller == nil && credErr == nil && !cred.Empty() && !public {
			caller, credErr = a.resolve(inTenant(ctx), cred)
			// Looking a credential up counts for the address that sends it, the request for its user; that of a key that there
			// is not for the address like any other of nobody.
			if caller != nil || newKey && fault.Is(credErr, fault.Unauthorized) {
				if c = a.counting(r, tenant, caller, false, false); !a.passes(w, r, c, a.count(ctx, c)) {
					return
				}
			}
		}
		switch {
		case credErr != nil && (cred.Cookie || public): // a stale token is no reason to refuse signing in again
		case credErr != nil:
			WriteError(w, r, credErr)
			return
		case caller != nil:
			r = as(r, cred, caller)
		}
		next.ServeHTTP(w, r)
	})
}

// isPublic tells whether an operation needs no credential.
func (a *API) isPublic(method, path string) bool {
	asked := method + " " + path
	return a.public[asked] || slices.ContainsFunc(a.open, func(p string) bool { return fits(p, asked) })
}

// fits tells whether a path is one of a pattern's, which has parameters in braces.
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

// active refuses a tenant that is suspended.
func active(t Tenant, err error) (Tenant, error) {
	if err == nil && t.Suspended {
		err = ErrSuspended
	}
	return t, err
}

// resolve looks a credential up; trying passwords counts like signing in, whatever the operation.
func (a *API) resolve(ctx context.Context, c Credential) (*auth.Caller, error) {
	if !c.Basic || c.isKey() {
		return a.identity.Resolve(ctx, c)
	}
	return a.attempt(ctx, c)
}

// attempt tries a password. Of requests that bring the same one at a time, as of an app that loads a screen of covers,
// one tries it, and the others find it known then: together they are one attempt to sign in.
func (a *API) attempt(ctx context.Context, c Credential) (*auth.Caller, error) {
	for {
		var caller *auth.Caller
		mine := false
		_, err, _ := a.attempts.Do(attemptKey(TenantOf(ctx), c), func() (_ any, err error) {
			mine = true
			if caller, err = a.identity.Known(ctx, c); caller == nil && err == nil { // else another was faster
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

// attemptKey names a user name and password of a tenant.
func attemptKey(t Tenant, c Credential) string {
	h := sha256.New()
	h.Write(t.ID[:])
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(c.Username)))) // so that no two pairs run together alike
	h.Write([]byte(c.Username))
	h.Write([]byte(c.Password))
	return string(h.Sum(nil))
}

// cors answers preflight requests and lets configured web origins read answers, but those of Outside.
func (a *API) cors(next http.Handler) http.Handler {
	open := cors.Policy{Origins: a.config.CORSOrigins, Methods: "GET, HEAD, POST, PUT, PATCH, DELETE",
		Headers: "Authorization, Content-Type, Accept, X-API-Key, X-Codex-Device-Id, Range, If-Range, If-None-Match, If-Match, If-Modified-Since, If-Unmodified-Since, Last-Event-ID",
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

// maxHost is the length of a name in bytes (RFC 1035). What is longer names nobody, and tenants are remembered by host.
const maxHost = 253

// called is the host that the client named, perhaps with a port. Addresses are made of it: what would mean something
// else there than a host (a:80@b leads to b) names nobody. Of the header Host the server has checked as much.
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

func truncate(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

// gone is the status of an answer that nobody waits for; it is for the log alone.
const gone = 499

// Gone tells whether err only says that the client went away.
func Gone(ctx context.Context, err error) bool {
	return errors.Is(err, context.Canceled) && ctx.Err() != nil
}

// Package cors lets web clients on other hosts read responses (Fetch standard, CORS protocol).
package cors

import (
	"net/http"
	"slices"
)

// RequestHeaders are the headers that web clients may send to the api. Requests that are redirected to the CDN still
// have them, so it allows the same.
const RequestHeaders = "Authorization, Content-Type, Accept, X-API-Key, X-Codex-Device-Id, Range, If-Range, " +
	"If-None-Match, If-Match, If-Modified-Since, If-Unmodified-Since, Last-Event-ID"

// Policy says which origins may read what. The origin * allows any, without cookies.
type Policy struct {
	Origins []string
	Methods string // allowed methods, separated by commas
	Headers string // allowed request headers
	Expose  string // readable response headers
}

// Handler adds the CORS headers for the policy's origins to the responses of next, and answers preflight requests.
func (p Policy) Handler(next http.Handler) http.Handler {
	if len(p.Origins) == 0 {
		return next
	}
	anyOrigin := slices.Contains(p.Origins, "*")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, origin := w.Header(), r.Header.Get("Origin")
		switch {
		case anyOrigin:
			h.Set("Access-Control-Allow-Origin", "*") // also without an Origin header, so that caches can share the response
		case origin != "" && slices.Contains(p.Origins, origin):
			h.Add("Vary", "Origin")
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Allow-Credentials", "true")
		default:
			h.Add("Vary", "Origin")
			next.ServeHTTP(w, r)
			return
		}
		h.Set("Access-Control-Expose-Headers", p.Expose)
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			h.Set("Access-Control-Allow-Methods", p.Methods)
			h.Set("Access-Control-Allow-Headers", p.Headers)
			h.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Package cors lets web clients of other hosts read answers (Fetch standard, CORS protocol).
package cors

import (
	"net/http"
	"slices"
)

// Policy is who may read what. An origin * lets any in, without cookies.
type Policy struct {
	Origins []string
	Methods string // that clients may use, with commas
	Headers string // that they may send
	Expose  string // that they may read
}

// Handler adds to the answers of next what lets the policy's origins read them, and answers their preflight requests.
func (p Policy) Handler(next http.Handler) http.Handler {
	if len(p.Origins) == 0 {
		return next
	}
	anyOrigin := slices.Contains(p.Origins, "*")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, origin := w.Header(), r.Header.Get("Origin")
		switch {
		case anyOrigin:
			h.Set("Access-Control-Allow-Origin", "*") // also to who names none: a cache has one answer for all
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

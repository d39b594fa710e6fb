package relay

import (
	"net/http"
	"slices"
)

// cors lets web clients of the configured origins read the answers of next, and answers their preflight requests.
func (s *Server) cors(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin, origins, h := r.Header.Get("Origin"), s.cfg.CORSOrigins, w.Header()
		switch {
		case origin == "":
		case slices.Contains(origins, "*"):
			h.Set("Access-Control-Allow-Origin", "*")
		case slices.Contains(origins, origin):
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Allow-Credentials", "true")
		}
		if h.Get("Access-Control-Allow-Origin") == "" {
			next.ServeHTTP(w, r)
			return
		}
		h.Set("Vary", "Origin")
		h.Set("Access-Control-Expose-Headers", "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, X-Request-Id")
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			h.Set("Access-Control-Allow-Methods", "GET")
			h.Set("Access-Control-Allow-Headers", "Authorization, Accept, X-API-Key, X-Codex-Device-Id, Last-Event-ID")
			h.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

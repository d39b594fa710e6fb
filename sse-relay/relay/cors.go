package relay

import (
	"net/http"

	"github.com/longbox/longbox/shared/platform/cors"
)

// cors allows web clients of the configured origins to read streams and error responses.
func (s *Server) cors(next http.Handler) http.Handler {
	return cors.Policy{Origins: s.cfg.CORSOrigins, Methods: "GET",
		Headers: "Authorization, Accept, X-API-Key, X-Codex-Device-Id, Last-Event-ID",
		Expose:  "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, X-Request-Id",
	}.Handler(next)
}

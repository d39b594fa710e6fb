package httpapi

import (
	"crypto/subtle"
	"net/http"

	"github.com/longbox/longbox/shared/platform/environ"
	"github.com/longbox/longbox/shared/platform/fault"
)

// OriginHeader carries the secret that identifies the CDN.
const OriginHeader = "X-Origin-Secret"

// Origin makes a function behind a CDN accept only requests with a secret, if nothing else keeps other callers away.
// Otherwise a client could bypass the CDN and report any address as its own.
type Origin struct {
	Secrets []string `env:"ORIGIN_SECRET"` // two during a rotation
}

// Validate returns an error that says what is wrong.
func (o Origin) Validate() error { return environ.Secrets("ORIGIN_SECRET", o.Secrets) }

// Shown reports whether a request carries a valid secret.
func (o Origin) Shown(r *http.Request) bool {
	shown, good := []byte(r.Header.Get(OriginHeader)), 0
	for _, s := range o.Secrets {
		good |= subtle.ConstantTimeCompare(shown, []byte(s))
	}
	return good == 1
}

// Guard passes requests with a valid secret to next, or all requests if no secret is configured. Probes of the process
// do not come through the CDN, so /health, which everybody may read there, needs no secret.
func (o Origin) Guard(next http.Handler) http.Handler {
	if len(o.Secrets) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health" && !o.Shown(r) {
			WriteError(w, r, fault.New(fault.Forbidden, "Send requests only to the public address of this library server"))
			return
		}
		r.Header.Del(OriginHeader)
		next.ServeHTTP(w, r)
	})
}

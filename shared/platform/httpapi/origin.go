package httpapi

import (
	"crypto/subtle"
	"fmt"
	"net/http"

	"github.com/longbox/longbox/shared/platform/fault"
)

// OriginHeader is where the CDN shows that it is the CDN.
const OriginHeader = "X-Origin-Secret"

// Origin is what a function behind a CDN asks of whoever calls it, where nothing else keeps others away. Without it a
// client could go around the CDN and report any address as its own.
type Origin struct {
	Secrets []string `env:"ORIGIN_SECRET"` // two while it is being changed
}

const minSecret = 32 // characters

// Validate names what is wrong.
func (o Origin) Validate() error {
	if len(o.Secrets) > 2 {
		return fmt.Errorf("ORIGIN_SECRET: must be one secret, or two separated by a comma; there are %d", len(o.Secrets))
	}
	for _, s := range o.Secrets {
		if len(s) < minSecret {
			return fmt.Errorf("ORIGIN_SECRET: needs at least %d characters, has %d", minSecret, len(s))
		}
	}
	return nil
}

// Shown tells whether a request shows a secret.
func (o Origin) Shown(r *http.Request) bool {
	shown, good := []byte(r.Header.Get(OriginHeader)), 0
	for _, s := range o.Secrets {
		good |= subtle.ConstantTimeCompare(shown, []byte(s))
	}
	return good == 1
}

// Guard lets through to next who shows a secret; anybody where there is none.
func (o Origin) Guard(next http.Handler) http.Handler {
	if len(o.Secrets) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !o.Shown(r) {
			WriteError(w, r, fault.New(fault.Forbidden, "Requests come by the public address of this library server only"))
			return
		}
		r.Header.Del(OriginHeader)
		next.ServeHTTP(w, r)
	})
}

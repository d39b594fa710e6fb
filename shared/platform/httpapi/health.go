package httpapi

import (
	"net/http"
)

// Health adds the health endpoints at the root and below /api/v1: `OK`, or 503 while check fails.
func (a *API) Health(check func(r *http.Request) error) {
	serve := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		if err := check(r); err != nil {
			requestOf(r.Context()).fail(err)
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte("Service Unavailable\n")) // the client has left
			return
		}
		_, _ = w.Write([]byte("OK\n")) // the client has left
	}
	for _, path := range a.exempt {
		a.Router.Get(path, serve)
	}
}

package app

import (
	"log/slog"
	"net/http"
)

// Health serves GET /health for programs that serve nothing else.
func Health(b *Base) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, r *http.Request) {
		if err := b.Check(r); err != nil {
			slog.Error("health check failed", "error", err)
			http.Error(w, "Service Unavailable", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("OK\n")) // the client has left
	})
	return mux
}

package relay

import (
	"context"
	"net/http"
	"runtime/debug"
	"time"
)

// health answers 200 while the relay serves, even without Redis: open connections are worth keeping.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	if s.stopping.Load() {
		writeJSON(w, http.StatusServiceUnavailable, map[string]any{"status": "stopping"})
		return
	}
	status := "ok"
	if !s.hub.sub.alive.Load() {
		status = "degraded"
	}
	writeJSON(w, http.StatusOK, map[string]any{"status": status})
}

// report logs activity once a minute, if there was any.
func (s *Server) report(ctx context.Context) {
	ticker := time.NewTicker(time.Minute)
	defer ticker.Stop()
	var lastOpened int64
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		line, ended := []any{"connections", s.limits.open()}, int64(0)
		for why := range reasonCount {
			n := int64(0)
			for _, shard := range s.hub.shards {
				n += shard.closed[why].Swap(0)
			}
			ended += n
			line = append(line, "ended_"+why.String(), n)
		}
		opened := s.opened.Load()
		if opened != lastOpened || ended > 0 {
			s.log.Info("streams", append(line, "opened", opened-lastOpened)...)
		}
		lastOpened = opened
	}
}

// trim releases memory after a wave of connects. Each connect leaves about 20 KB of garbage, and an idle relay runs no
// garbage collection for minutes.
func (s *Server) trim(ctx context.Context) {
	const wave, often = 200, 10 * time.Second
	ticker := time.NewTicker(often)
	defer ticker.Stop()
	var last int64
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if opened := s.opened.Load(); opened-last >= wave {
			last = opened
			debug.FreeOSMemory()
		}
	}
}

package relay

import (
	"context"
	"net/http"
	"runtime/debug"
	"time"
)

// health answers 200 while the relay serves, also without Redis: its connections are worth keeping.
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

// report logs once a minute what happened, if anything did.
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

// trim gives memory back after a wave of connects: each leaves some 20 KB of garbage behind, and a
// relay whose connections are idle collects nothing by itself for minutes.
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

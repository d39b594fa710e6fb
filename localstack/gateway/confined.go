package gateway

import (
	"context"
	"os"
	"time"

	"github.com/longbox/longbox/localstack/library"
	"github.com/longbox/longbox/shared/platform/confine"
)

// every is the interval at which Follow checks the roots.
const every = 5 * time.Second

// Confined returns why the gateway can read files outside the roots through links, or nil if it cannot.
func (g *Gateway) Confined() error { return confine.Possible(g.program) }

// Follow restarts the gateway when another folder appears at a root, for example when a disk is mounted: the gateway
// may only read the folders that existed at its start. It returns when ctx ends.
func (g *Gateway) Follow(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now := look(g.roots)
		for i, was := range g.seen {
			if same(was, now[i]) {
				continue
			}
			g.seen = now
			why := "there is now a different folder at "
			if now[i] == nil {
				why = "there is no longer a folder at "
			}
			select {
			case g.renew <- why + g.roots[i].Folder:
			case <-ctx.Done():
				return
			}
			break
		}
	}
}

// look returns the folders at the roots now; nil for a missing one.
func look(roots []library.Root) []os.FileInfo {
	out := make([]os.FileInfo, len(roots))
	for i, r := range roots {
		if info, err := os.Stat(r.Folder); err == nil {
			out[i] = info
		}
	}
	return out
}

func same(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b)
}

func folders(roots []library.Root) []string {
	out := make([]string, len(roots))
	for i, r := range roots {
		out[i] = r.Folder
	}
	return out
}

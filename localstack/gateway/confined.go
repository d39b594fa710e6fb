package gateway

import (
	"context"
	"os"
	"time"

	"github.com/longbox/longbox/localstack/library"
	"github.com/longbox/longbox/shared/platform/confine"
)

// every is how often Follow looks at the roots.
const every = 5 * time.Second

// Confined tells why the gateway may read files outside of the roots, to which links in them lead; nil where it may
// not.
func (g *Gateway) Confined() error { return confine.Possible(g.program) }

// Follow has the gateway started again when another folder has taken the place of a root, as when a disk is mounted:
// it may read the folders that were there when it was started. It returns when the context ends.
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
			why := "another folder is at "
			if now[i] == nil {
				why = "there is no folder any more at "
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

// look is what is at the roots now; nil where nothing is.
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

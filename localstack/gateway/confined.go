package gateway

import (
	"context"
	"encoding/binary"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/longbox/longbox/localstack/library"
	"github.com/longbox/longbox/shared/platform/confine"
)

// every is the interval at which Follow checks the roots.
const every = 5 * time.Second

// Confined returns why the gateway can read files outside the roots through links, or nil if it cannot.
func (g *Gateway) Confined() error { return confine.Possible(g.program) }

// Follow restarts the gateway when another folder appears at a root, for example when a disk is mounted: the gateway
// may only read the folders that existed at its start. It returns when ctx ends. It waits for a root that does not
// answer, although others may change meanwhile: a restarted gateway opens every root before it serves (see confine), so
// that one would then take all of them away.
func (g *Gateway) Follow(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		i := g.seen.changed(g.roots)
		if i < 0 {
			continue
		}
		g.seen.close()
		g.seen = look(g.roots)
		why := "there is now a different folder at "
		if g.seen.folders[i] == nil {
			why = "there is no longer a folder at "
		}
		select {
		case g.renew <- why + g.roots[i].Folder:
		case <-ctx.Done():
			return
		}
	}
}

// view is what was at the roots at one time. A disk that is unmounted and mounted again may have the same numbers (of
// device and inode) as before, but is closed to the gateway. So inotify reports the end of each folder as well.
type view struct {
	folders []os.FileInfo // nil for a missing one
	ends    int           // descriptor of inotify, or -1
	watches []int         // one for each folder
}

// look returns what is at the roots now.
func look(roots []library.Root) view {
	v := view{folders: stat(roots), watches: make([]int, len(roots))}
	v.ends, _ = unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	for i, r := range roots {
		v.watches[i], _ = unix.InotifyAddWatch(v.ends, r.Folder, unix.IN_DELETE_SELF)
	}
	return v
}

func stat(roots []library.Root) []os.FileInfo {
	out := make([]os.FileInfo, len(roots))
	for i, r := range roots {
		if info, err := os.Stat(r.Folder); err == nil {
			out[i] = info
		}
	}
	return out
}

func (v view) close() { _ = unix.Close(v.ends) }

// changed returns a root with another folder than in the view, or -1.
func (v view) changed(roots []library.Root) int {
	for i, now := range stat(roots) {
		if !same(v.folders[i], now) {
			return i
		}
	}
	var event [unix.SizeofInotifyEvent]byte // an end has no name
	if n, _ := unix.Read(v.ends, event[:]); n != len(event) {
		return -1
	}
	return slices.Index(v.watches, int(int32(binary.NativeEndian.Uint32(event[:]))))
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

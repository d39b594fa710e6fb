// Package deaf ends connections whose peer takes nothing of what it is sent, and bounds what waits for slow ones.
package deaf

import "time"

// After is how long a peer may take none of what waits for it. Whoever reads, however slowly, is not cut off.
const After = 2 * time.Minute

// How many bytes wait for a slow reader between two programs. Left to itself the kernel keeps 4 MB to be sent and 6 MB
// received for each connection on the way of an answer, of the memory that it has for all of them: a few dozen slow
// downloads use that up, and then every connection of the machine crawls, those to Postgres too.
const (
	unsent   = 256 << 10 // beyond what is on its way, which long and fast lines need
	received = 256 << 10 // of what comes from this machine
)

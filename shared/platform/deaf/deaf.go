// Package deaf closes connections whose peer does not read, and limits the buffers for slow readers.
package deaf

import "time"

// After is how long a peer may accept nothing of the pending bytes. A slow reader is not cut off.
const After = 2 * time.Minute

// Socket buffer sizes for a slow reader, in bytes. By default the kernel buffers up to 4 MB to send and 6 MB received
// per connection, from memory that all connections share. A few dozen slow downloads use that up, and then every
// connection of the machine crawls, even those to Postgres.
const (
	unsent   = 256 << 10 // besides the bytes in flight, of which long and fast lines need many
	received = 256 << 10 // received from this machine
)

// Package deaf ends connections whose peer takes nothing of what it is sent.
package deaf

import "time"

// After is how long a peer may take none of what waits for it. Whoever reads, however slowly, is not cut off.
const After = 2 * time.Minute

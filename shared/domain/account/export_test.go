package account

import "time"

// Evenly is how long it takes to answer who wants another mail.
const Evenly = 50 * time.Millisecond

func init() { evenly = Evenly }

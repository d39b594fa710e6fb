package account

import "time"

// Evenly is the minimum response time of a request for another mail.
const Evenly = 50 * time.Millisecond

func init() { evenly = Evenly }

var DeleteRead = deleteRead

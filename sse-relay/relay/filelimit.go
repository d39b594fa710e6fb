package relay

import "syscall"

// fileLimit is how many connections the limit of open files leaves room for.
func fileLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1 << 30 // unknown: let MAX_CONNECTIONS decide
	}
	const others = 256 // the API, Redis, listeners, requests that are not streams yet
	return int(min(max(limit.Cur, others+1)-others, 1<<30))
}

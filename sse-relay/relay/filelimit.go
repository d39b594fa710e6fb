package relay

import "syscall"

// fileLimit returns how many connections the limit of open files allows.
func fileLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1 << 30 // unknown: MAX_CONNECTIONS decides
	}
	const others = 256 // files for the API, Redis, listeners, and requests that are not streams yet
	return int(min(max(limit.Cur, others+1)-others, 1<<30))
}

//go:build !linux

package lambdahttp

import "syscall"

func unpaced(_, _ string, _ syscall.RawConn) error { return nil }

//go:build !linux

package deaf

import "syscall"

// Limit does nothing here: the system's defaults apply.
func Limit(_, _ string, _ syscall.RawConn) error { return nil }

// Near does nothing here: the system's defaults apply.
func Near(_, _ string, _ syscall.RawConn) error { return nil }

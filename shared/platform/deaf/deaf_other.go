//go:build !linux

package deaf

import "syscall"

// Limit leaves it to the system how long a peer may take nothing.
func Limit(_, _ string, _ syscall.RawConn) error { return nil }

// Near leaves it to the system how much of what is not read yet it keeps.
func Near(_, _ string, _ syscall.RawConn) error { return nil }

// Package socket decides whether the servers of the one-machine system are reached by Unix sockets. A round trip takes
// half the time of TCP, and only the server's own user can connect.
package socket

import (
	"net"
	"os"
	"path/filepath"
)

// longest is Linux's limit for a socket path (unix(7)), in bytes.
const longest = 107

// Usable reports whether a server can listen at path. Some file systems have no sockets, and some paths are too long;
// then TCP is used.
func Usable(path string) bool {
	if len(path) > longest {
		return false
	}
	try := filepath.Join(filepath.Dir(path), ".s") // not longer than any server's path
	_ = os.Remove(try)                             // left by an interrupted try; if it stays, this one fails too
	l, err := net.Listen("unix", try)
	return err == nil && l.Close() == nil
}

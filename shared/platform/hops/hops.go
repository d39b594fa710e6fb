// Package hops tells what the proxies in front of a server know of a client: each adds to X-Forwarded-For the address
// that it saw, and says in X-Forwarded-Proto how it was reached. Only the entries of trusted proxies count; a client
// may write any others.
package hops

import (
	"net"
	"net/http"
	"strings"
)

// Most is how many proxies may be trusted.
const Most = 16

// Client is the address that the outermost of so many trusted proxies saw, without a port: the n-th entry of
// X-Forwarded-For from the right. It is the peer of the connection where there are fewer, as the request came past a
// proxy, or where the entry is none.
func Client(r *http.Request, trusted int) string {
	peer, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		peer = r.RemoteAddr
	}
	entries := list(r, "X-Forwarded-For")
	if trusted == 0 || len(entries) < trusted {
		return peer
	}
	entry := entries[len(entries)-trusted]
	if host, _, err := net.SplitHostPort(entry); err == nil { // some balancers tell the client's port too
		entry = host
	}
	ip := net.ParseIP(strings.Trim(entry, "[]"))
	if ip == nil {
		return peer
	}
	return ip.String()
}

// Secure tells whether the client came by https: to this server, or to the outermost of so many trusted proxies. Most
// proxies say it once for all, some each for itself.
func Secure(r *http.Request, trusted int) bool {
	entries := list(r, "X-Forwarded-Proto")
	return r.TLS != nil || trusted > 0 && strings.EqualFold(entries[max(0, len(entries)-trusted)], "https")
}

// list are the entries of a header that may be there several times; at least one, which may be empty.
func list(r *http.Request, name string) []string {
	entries := strings.Split(strings.Join(r.Header.Values(name), ","), ",")
	for i := range entries {
		entries[i] = strings.TrimSpace(entries[i])
	}
	return entries
}

// Package hops reads what proxies report about a client. Each proxy appends the address that it saw to X-Forwarded-For,
// and reports the scheme in X-Forwarded-Proto. Only entries of trusted proxies count, because a client may send any
// others.
package hops

import (
	"net"
	"net/http"
	"strings"
)

// Most is the maximum number of trusted proxies.
const Most = 16

// Client returns the address that the outermost trusted proxy saw, without a port: the n-th entry of X-Forwarded-For
// from the right for n trusted proxies. It returns the connection's peer if there are fewer entries, because the
// request bypassed a proxy, or if the entry is no address.
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
	if host, _, err := net.SplitHostPort(entry); err == nil { // some load balancers add the client's port
		entry = host
	}
	ip := net.ParseIP(strings.Trim(entry, "[]"))
	if ip == nil {
		return peer
	}
	return ip.String()
}

// Secure reports whether the client used https, to this server or to the outermost trusted proxy. Most proxies send one
// value for the whole chain, some append one each.
func Secure(r *http.Request, trusted int) bool {
	entries := list(r, "X-Forwarded-Proto")
	return r.TLS != nil || trusted > 0 && strings.EqualFold(entries[max(0, len(entries)-trusted)], "https")
}

// list returns the entries of a header that may occur several times. There is at least one, possibly empty.
func list(r *http.Request, name string) []string {
	entries := strings.Split(strings.Join(r.Header.Values(name), ","), ",")
	for i := range entries {
		entries[i] = strings.TrimSpace(entries[i])
	}
	return entries
}

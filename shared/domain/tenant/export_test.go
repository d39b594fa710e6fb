package tenant

import "time"

// Expire makes the resolver look up all hosts again with the next request.
func (r *Resolver) Expire() {
	for host, e := range r.hosts {
		e.expires = time.Time{}
		r.hosts[host] = e
	}
}

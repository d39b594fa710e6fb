// Package relay streams a tenant's events to its clients as Server-Sent Events.
//
// A request passes through access (the API tells its user and permissions). It then takes over its socket, joins the
// hub's topic and is handed to a shard. From then on no goroutine belongs to it: each shard is one goroutine that owns
// the sockets of its connections and writes without blocking. A shard drops a client that does not read. The client
// reconnects with Last-Event-ID and loses nothing.
//
//	Redis ── subscriber ──► topic (one per tenant and name) ──► shards ──► sockets
//	                          └ reads the stream after every subscription, so that a lost
//	                            connection to Redis loses no event
//
// Ownership: a connection's fields belong to its shard. The one exception is the goroutine of its request, which writes
// to the socket until it has the shard open the stream. Shards never take the lock of a topic or of the hub. They take
// only locks that are held briefly (limits, access, watcher), and never wait for another goroutine. Everything else may
// wait for a shard.
package relay

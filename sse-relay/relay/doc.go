// Package relay streams a tenant's events to its clients as Server-Sent Events.
//
// A request passes through access (the API says who it is and what it may read), takes over its
// socket, joins the hub's topic and is handed to a shard. From then on no goroutine belongs to it:
// each shard is one goroutine that owns the sockets of its connections, writes without ever waiting,
// and drops a client that does not take its data; the client comes back with Last-Event-ID and
// loses nothing.
//
//	Redis ── subscriber ──► topic (one per tenant and name) ──► shards ──► sockets
//	                          └ reads the stream after every subscription, so that a lost
//	                            connection to Redis loses no event
//
// Ownership: a connection's fields belong to its shard, except that the goroutine of its request
// writes to the socket until it sends the open command. Shards never take a topic's or the hub's
// lock, of others only those that are held for a moment (limits, access, watcher), and never wait for
// another goroutine; everything else may wait for a shard.
package relay

// Package events sends change events from the functions to the relay, which delivers them to clients.
//
// After the commit that caused it, an event is appended to a bounded Redis stream of its tenant and topic, and
// published on the channel of the same name. One script does both, so stream and channel have the same order. Clients
// that reconnect replay from the stream. The channel makes delivery immediate.
//
// Publishing never fails a request. When Redis is down, the first call waits for at most [Config.Timeout], later ones
// not at all. Events are kept in memory, in order, and sent exactly once when Redis is back, within the limits of
// [Config]. If events were dropped, the listeners of their stream get a resync event once Redis is back.
package events

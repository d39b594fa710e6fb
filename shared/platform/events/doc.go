// Package events carries what changed from the functions to the listeners of the relay.
//
// An event is written, after the commit that caused it, to a bounded Redis stream of its tenant and
// topic and published on the channel of the same name, both in one script, so that the order of the
// stream is the order of the channel. The stream is what a client that lost its connection replays
// from; the channel is what makes delivery immediate.
//
// Publishing is soft: it never fails a request. With Redis away the first call waits for at most
// [Config.Timeout], later ones not at all; events are kept in memory in order and sent exactly once
// when Redis answers again, up to the limits of [Config]. Where events were dropped, listeners of their stream get a
// resync event once Redis takes events again.
package events

// Package supervise runs child processes: it starts them, waits until they answer, writes their logs, starts them again
// when they crash, stops them in order, and makes sure that none outlives the supervisor, even one that is killed.
package supervise

// Package supervise runs child processes. It starts them, waits until they are ready, writes their logs, restarts them
// after a crash and stops them in order. No child outlives the supervisor, even if that is killed.
package supervise

// Package plug asks plugins: programs of others that know about books, in the JSON-RPC protocol of docs/plugins.md.
//
// Plugins run in the function plugin, which has no way to the database, to Redis, to the stores or to the signing key,
// so that what is not Longbox's own code meets nothing but what it is told. The other functions ask it with a Client:
// over HTTP on one machine, by an invocation in Lambda. Package host runs the processes.
package plug

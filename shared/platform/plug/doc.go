// Package plug calls plugins: third-party programs that know about books. They speak the JSON-RPC protocol of
// docs/plugins.md.
//
// Plugins run in the function plugin, which cannot reach the database, Redis, the stores or the signing key. So
// third-party code sees only what it is given. The other functions call it with a Client: over HTTP on one machine, by
// invocation in Lambda. Package host runs the processes.
package plug

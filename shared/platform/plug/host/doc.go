// Package host runs plugins: it starts their processes, speaks their protocol, and fetches the pictures that they name.
//
//   - Messages are JSON-RPC 2.0 objects (https://www.jsonrpc.org/specification), one per line, on the process's
//     standard input and output. Its standard error goes to the log.
//   - A new process gets an initialize request and responds with its manifest. It then serves calls with the same
//     Start, until it is idle for some minutes, others need its slot, or it breaks the protocol.
//   - A process that does not answer in time is killed with all its children: it may hang forever.
//   - It has its own environment, data folder and process group, and dies with this program.
package host
